"""Changes of TCP states that no BPF program can see.

The kernels of some virtual machines run no BPF program, and count none as skipped, while a thread of process
1 is the current task: there it is the supervisor of the machine. A softirq that interrupts it, such as the
timer of a delayed ACK, may end connections, and no BPF program is told. ftrace is.
"""

import os
import re
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Sequence

from .tracefs import in_sight, mounted

NOT_MEASURED = "not measured: this kernel hid"
"""So begins the reason of a skip after such a change. `.ci/tests` counts these, and allows few."""

WATCH_SECONDS = 10
"""Long enough for a supervisor to run several times."""


@dataclass(frozen=True)
class Watched:
    """Changes of TCP states while one of these threads is the current task."""

    threads: Sequence[int]
    trace: Path

    def changes(self) -> int:
        return sum(not line.startswith("#") for line in self.trace.read_text().splitlines())

    def hidden_changes(self) -> int:
        """The same, if no BPF program runs then."""
        changes = self.changes()
        return changes if changes and are_hidden(self.threads) else 0


def supervisor() -> list[int]:
    """The threads of process 1."""
    return [int(name) for name in os.listdir("/proc/1/task")]


def are_hidden(threads: Sequence[int], seconds: int = WATCH_SECONDS) -> bool:
    """Whether a BPF program at context switches sees these threads begin to run, and none of them end."""
    program = f"""
        tracepoint:sched:sched_switch {{
            if ({any_of("args->next_pid", threads)}) {{ @begun = count(); }}
            if ({any_of("tid", threads)}) {{ @ended = count(); }}
        }}
        interval:s:{seconds} {{ exit(); }}
    """
    seen = subprocess.run(in_sight(["bpftrace", "-e", program]), capture_output=True, text=True).stdout
    counts = {name: int(count) for name, count in re.findall(r"@(\w+): (\d+)", seen)}
    return counts.get("begun", 0) > 0 and counts.get("ended", 0) == 0


def any_of(field: str, threads: Sequence[int]) -> str:
    return " || ".join(f"{field} == {thread}" for thread in threads)


@contextmanager
def watched(threads: Sequence[int]) -> Iterator[Watched]:
    """Watches them by ftrace, in an instance of its own."""
    with mounted() as tracing:
        folder = Path(tempfile.mkdtemp(prefix="tlsprof-tests-", dir=tracing / "instances"))
        event = folder / "events" / "sock" / "inet_sock_set_state"
        try:
            (event / "filter").write_text(any_of("common_pid", threads))
            (event / "enable").write_text("1")
            yield Watched(threads, folder / "trace")
        finally:
            folder.rmdir()
