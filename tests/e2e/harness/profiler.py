"""tlsprof itself: profiles as objects, and the agent."""

import json
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Optional, Sequence

from .load import Load, Seen
from .paths import TLSPROF
from .processes import Argument, Process, run

ATTACH_SECONDS = 60.0
"""Bound for attaching to every process of the host and for the last drain."""


class Service:
    """One service of a report."""

    def __init__(self, data: dict[str, Any]):
        self.data = data
        self.name: str = data["service_name"]
        self.ports: list[int] = data["ports"]

    def groups(self, **labels: str) -> Iterator[dict[str, Any]]:
        """Handshake groups whose fields equal `labels`."""
        for group in self.data["handshakes"]:
            if all(group[label] == value for label, value in labels.items()):
                yield group

    def count(self, **labels: str) -> int:
        return sum(group["count"] for group in self.groups(**labels))

    def cpu_seconds(self, **labels: str) -> float:
        return sum(group["cpu_seconds"] for group in self.groups(**labels))

    def resumed(self, role: str) -> int:
        return sum(
            group["count"]
            for group in self.groups(role=role, outcome="completed")
            if group["resumption"] not in ("none", "unknown")
        )

    def step_seconds(self, step: str, role: str = "server") -> float:
        """CPU seconds of a step for each handshake that it speaks for."""
        for row in self.data["steps"]:
            if row["step"] == step and row["role"] == role:
                return row["cpu_seconds"] / row["handshakes"]
        return 0.0

    def outcomes(self, role: str) -> dict[str, int]:
        return {
            outcome: self.count(role=role, outcome=outcome)
            for outcome in ("completed", "failed", "abandoned")
        }

    def __repr__(self) -> str:
        return f"Service({json.dumps(self.data, indent=1)})"


class Report:
    """The JSON report."""

    def __init__(self, data: dict[str, Any], seen: Optional[Seen] = None, progress: str = ""):
        self.data = data
        self.seen = seen
        self.progress = progress
        self.services = [Service(service) for service in data["services"]]

    def service(self, name: str) -> Service:
        found = [service for service in self.services if service.name == name]
        assert len(found) == 1, f"{len(found)} services named {name}: {self.names()}"
        return found[0]

    def on_port(self, port: int) -> Service:
        found = [service for service in self.services if port in service.ports]
        assert len(found) == 1, f"{len(found)} services on port {port}: {self.names()}"
        return found[0]

    def names(self) -> list[str]:
        return [f"{service.name} {service.ports}" for service in self.services]

    @property
    def losses(self) -> dict[str, int]:
        return {loss["reason"]: loss["count"] for loss in self.data["losses"]}


def profile(
    command: Sequence[Argument],
    folder: Path,
    options: Sequence[Argument] = (),
    timeout: float = 90.0,
) -> Report:
    """Profiles the host for as long as `command` runs."""
    output = folder / "report.json"
    done = run(
        [TLSPROF, "report", "--format", "json", "--output", output, *options, "--", *command],
        timeout=timeout + ATTACH_SECONDS,
    )
    assert done.child.returncode == 0, done.describe()
    data = json.loads(output.read_text())
    assert data["command"]["exit_status"] == 0, done.describe()
    return Report(data, progress=done.stderr)


def profile_load(load: Load, port: int, folder: Path, options: Sequence[Argument] = ()) -> Report:
    """Profiles a load on `port`; `seen` of the report is what the client saw."""
    result = folder / "loadgen.json"
    shell = ["sh", "-c", 'out=$1; shift; exec "$@" > "$out"', "sh", result]
    report = profile([*shell, *load.command(port)], folder, options)
    report.seen = Seen.parse(result.read_text())
    return report


@dataclass(frozen=True)
class Agent:
    """A running `tlsprof agent`."""

    process: Process
    url: str

    def kill(self) -> None:
        """Ends it as the kernel's memory killer would, without a chance to clean up."""
        self.process.send(signal.SIGKILL)
        self.process.child.wait(ATTACH_SECONDS)

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_exception) -> None:
        self.process.stop()


def start_agent(options: Sequence[Argument] = (), **process_options) -> Agent:
    """Starts the agent on a free port; returns when it has attached and listens."""
    process = Process([TLSPROF, "agent", "--listen", "127.0.0.1:0", *options], **process_options)
    try:
        line = process.wait_for_line("listening on ", timeout=ATTACH_SECONDS)
    except BaseException:
        process.stop()
        raise
    match = re.search(r"http://\S+/metrics", line)
    assert match, line
    return Agent(process, match.group())
