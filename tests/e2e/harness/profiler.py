"""tlsprof itself: profiles as objects, and the agent."""

import json
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Optional, Sequence

from .load import Load, Seen, run_load
from .paths import TLSPROF
from .processes import Argument, Process
from .waiting import wait_until

ATTACH_SECONDS = 60.0
"""Bound for attaching to every process of the host and for the last drain."""

LOST_BY_OTHERS = {"began_before_attach", "mapping_record_lost"}
"""Losses that other processes of the host cause: handshakes that they had begun before, and mappings of programs that they
start by the hundred, as compilers do."""

LOG = ("--log", "debug")
"""Options for a log that says when probes are attached."""


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

    def wait_seconds(self, reason: str, role: str = "server") -> float:
        return sum(
            row["seconds"]
            for row in self.data["waits"]
            if row["reason"] == reason and row["role"] == role
        )

    def outcomes(self, role: str, **also: str) -> dict[str, int]:
        return {
            outcome: self.count(role=role, outcome=outcome, **also)
            for outcome in ("completed", "failed", "abandoned")
        }

    def __repr__(self) -> str:
        return f"Service({json.dumps(self.data, indent=1)})"


class Report:
    """The JSON report."""

    def __init__(self, data: dict[str, Any]):
        self.data = data
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

    def losses_of_events(self) -> dict[str, int]:
        """Losses by reason, but for those that other processes of the host cause."""
        return {
            loss["reason"]: loss["count"]
            for loss in self.data["losses"]
            if loss["reason"] not in LOST_BY_OTHERS
        }


class Profiling:
    """A profile of the host that lasts as long as the `with` block.

    The block begins when all probes are attached: tlsprof starts its command
    only then, and the command here says that it runs and waits for a word.
    `report` is there after the block.
    """

    COMMAND = 'echo started; read -r _ < "$1"'

    def __init__(
        self,
        folder: Path,
        *options: Argument,
        timeout: float = ATTACH_SECONDS,
        launcher: Sequence[Argument] = (),
        form: str = "json",
    ):
        """`launcher`: a command that runs tlsprof, given as its arguments; `form`: of the report."""
        self._launcher = launcher
        self._form = form
        self._output = folder / f"report.{form}"
        self._fifo = folder / "finish"
        self._options = options
        self._timeout = timeout
        self._process: Optional[Process] = None
        self._report: Optional[Report] = None

    @property
    def report(self) -> Report:
        assert self._report, "the profile has not ended"
        return self._report

    @property
    def text(self) -> str:
        """The report as it was written."""
        return self._output.read_text()

    @property
    def pid(self) -> int:
        assert self._process, "the profile has not begun"
        return self._process.pid

    @property
    def log(self) -> str:
        """What tlsprof has logged so far."""
        assert self._process, "the profile has not begun"
        return self._process.stderr

    def wait_for_line(self, text: str) -> str:
        """What tlsprof says while it profiles."""
        assert self._process, "the profile has not begun"
        return self._process.wait_for_line(text)

    def wait_attached(self, library: Argument) -> None:
        """Waits for probes in an image whose path ends so; `LOG` must be among the options."""
        attached = re.compile(rf"probes attached path=\S*{re.escape(str(library))}$", re.MULTILINE)
        wait_until(lambda: attached.search(self.log), f"probes in {library}", ATTACH_SECONDS)

    def __enter__(self) -> "Profiling":
        self._fifo.unlink(missing_ok=True)
        os.mkfifo(self._fifo)
        command = ["sh", "-c", self.COMMAND, "sh", self._fifo]
        self._process = Process(
            [*self._launcher, TLSPROF, "report", "--format", self._form, "--output", self._output]
            + [*self._options, "--", *command]
        )
        try:
            self._process.wait_for_line("started", timeout=self._timeout)
        except BaseException:
            self._process.stop()
            raise
        return self

    def finish(self) -> None:
        """Ends the profile before the block does: for servers that the report must find alive."""
        assert self._process
        self._fifo.write_text("\n")
        status = self._process.wait(self._timeout)
        assert status == 0, self._process.describe()
        if self._form == "json":
            self._report = Report(json.loads(self.text))

    def __exit__(self, exception, *_rest) -> None:
        assert self._process
        with self._process:
            if not exception and self._process.alive():
                self.finish()


def profile_load(folder: Path, port: int, *loads: Load, options: Sequence[Argument] = ()) -> tuple[Report, Seen]:
    """Profiles the host while the loads run one after another on `port`."""
    with Profiling(folder, *options) as profiling:
        seen = [run_load(load, port) for load in loads]
    return profiling.report, sum(seen, Seen.nothing())


UNLIMITED = Path(__file__).with_name("unlimited.toml")


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


def start_agent(
    options: Sequence[Argument] = (),
    port: int = 0,
    launcher: Sequence[Argument] = (),
    **process_options,
) -> Agent:
    """Starts the agent on that port, or on a free one; returns when it has attached and listens.
    Without a configuration it has no budget: on a busy host it would take step probes out."""
    if "--config" not in options:
        options = ["--config", UNLIMITED, *options]
    command = [*launcher, TLSPROF, "agent", "--listen", f"127.0.0.1:{port}", *options]
    process = Process(command, **process_options)
    try:
        line = process.wait_for_line("listening on ", timeout=ATTACH_SECONDS)
    except BaseException:
        process.stop()
        raise
    match = re.search(r"https?://\S+/metrics", line)
    assert match, line
    return Agent(process, match.group())
