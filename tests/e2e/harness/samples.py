"""CPU samples as tlsprof counts them, and programs that know what CPU time they used."""

import json
import os
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple

from .paths import HOG
from .processes import Argument, Process, private_copy, run

STOP_SECONDS = 60.0

_COUNTED = re.compile(r'CPU samples service="(.*)" activity=(\w+) mode=(\w+) count=(\d+)')


class Shown(NamedTuple):
    """What samples show."""

    service: str
    activity: str
    mode: str


@dataclass(frozen=True)
class Samples:
    """Samples as tlsprof counted them, before they are scaled to CPU time."""

    counts: Counter[Shown]

    @staticmethod
    def parse(log: str) -> "Samples":
        """From what tlsprof writes to its log at level `debug`."""
        counts: Counter[Shown] = Counter()
        for service, activity, mode, count in _COUNTED.findall(log):
            counts[Shown(Path(service).name, activity, mode)] += int(count)
        return Samples(counts)

    def count(self, **labels: str) -> int:
        """How many of those whose labels equal `labels`."""
        wanted = labels.items()
        return sum(
            count
            for shown, count in self.counts.items()
            if all(getattr(shown, name) == value for name, value in wanted)
        )

    def __repr__(self) -> str:
        return "\n".join(f"{count:6} {shown}" for shown, count in sorted(self.counts.items()))


def cpu_seconds(pid: int) -> float:
    """What a process and its ended children used (proc_pid_stat(5), fields 14 to 17)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def perf_shares(
    folder: Path, pid: int, frequency: int, command: Iterable[Argument]
) -> dict[str, float]:
    """Shares of a process's CPU time by module, as perf samples them while `command` runs: by a clock of each CPU,
    as tlsprof's. One that runs while the process does sees more of its system calls, by 5 points beside a busy loop
    (docs/journal/2026-11-29-clocks-that-sample.md)."""
    data = folder / "perf.data"
    record = ["perf", "record", "-q", "-o", data, "-e", "cpu-clock", "-F", frequency, "-a", "--no-bpf-event"]
    done = run([*record, "--", *command])
    assert done.child.returncode == 0, done.describe()
    script = run(["perf", "script", "-i", data, "-F", "ip,dso", "--pid", pid])
    assert script.child.returncode == 0, script.describe()
    modules = [line.rpartition("(")[2].rstrip(")") for line in script.stdout.splitlines()]
    counts = Counter(Path(module).name for module in modules)
    return {module: count / len(modules) for module, count in counts.items()}


@dataclass
class Hog:
    """A program that uses CPU time in a known way."""

    name: str
    process: Process
    cpu_seconds: float = 0.0

    def used(self) -> float:
        """CPU seconds so far, ended children included."""
        return cpu_seconds(self.process.pid)

    def finish(self) -> None:
        """Ends it; `cpu_seconds` is then what the kernel accounted to it and its children."""
        self.process.child.stdin.close()
        status = self.process.wait(STOP_SECONDS)
        assert status == 0, self.process.describe()
        self.cpu_seconds = json.loads(self.process.stdout.splitlines()[-1])["cpu_seconds"]


@contextmanager
def hog(folder: Path, name: str, *options: Argument) -> Iterator[Hog]:
    """A hog that waits for a line; `name` becomes its service."""
    program = private_copy(str(HOG), folder).rename(folder / name)
    with Process([program, *options]) as process:
        process.wait_for_line("ready")
        yield Hog(name, process)
