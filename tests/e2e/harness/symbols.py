"""What CPU time goes to by perf's samples and symbols, although what runs has none.

A stripped image has the addresses of the same image before it was stripped. The Java virtual
machine tells by itself where it put what it compiled.
"""

import re
import shlex
import subprocess
from bisect import bisect_right
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterable, Iterator, Mapping, NamedTuple

from .paths import PROGRAMS
from .processes import Argument, Process, run
from .servers import Server

ET_EXEC = 2

MOST_SECONDS = 600.0
"""Bound of what perf records: gigabytes, on a busy machine."""


class Place(NamedTuple):
    """Where a sample was."""

    module: str
    address: int


class Names:
    """Names of functions by address; each ends where the next one begins, or at its end."""

    def __init__(self, functions: Iterable[tuple[int, int, str]]):
        """Begin, end and name of each."""
        self._functions = sorted(functions)
        self._begins = [begin for begin, _end, _name in self._functions]

    def name(self, address: int) -> str:
        index = bisect_right(self._begins, address)
        if not index:
            return ""
        _begin, end, name = self._functions[index - 1]
        return name if address < end else ""


def perf_places_of_each(
    folder: Path, pids: Iterable[int], frequency: int, commands: Iterable[Iterable[Argument]]
) -> dict[int, Counter[Place]]:
    """Where perf samples each process while `commands` run one after another.

    By a clock on each CPU: that of a task starts and stops with it. In threads that often wait, it saw
    up to 3 points more of the kernel (docs/journal/2026-11-22-poly1305-compiled-from-java.md).
    """
    data = folder / "perf.data"
    record = ["perf", "record", "-q", "-o", data, "-e", "cpu-clock", "-F", frequency, "-a"]
    script = "set -e; " + "; ".join(
        shlex.join(str(argument) for argument in command) for command in commands
    )
    done = run([*record, "--", "sh", "-c", script], timeout=MOST_SECONDS)
    assert done.child.returncode == 0, done.describe()
    found = {pid: Counter() for pid in pids}
    wanted = ",".join(map(str, found))
    listed = run(["perf", "script", "-i", data, "--pid", wanted, "-F", "pid,ip,dso"], timeout=MOST_SECONDS)
    rows = re.findall(r"^\s*(\d+)\s+([0-9a-f]+) \((.*)\)$", listed.stdout, re.MULTILINE)
    for pid, address, module in rows:
        # perf lets through a process of the host now and then that nobody asked for.
        if int(pid) in found:
            found[int(pid)][Place(module, int(address, 16))] += 1
    assert all(found.values()), listed.describe()
    return found


def perf_calls(
    folder: Path, pid: int, frequency: int, command: Iterable[Argument], library: Path, functions: Mapping[str, str]
) -> Counter[str]:
    """Where perf samples a process while `command` runs: in which of the functions, or what they called, that this
    library calls. `functions`: expressions by name; the others have an empty one.

    perf copies 16 KiB of each stack, and follows that with the unwind tables.
    """
    returns = _returns(library, functions)
    data = folder / "perf.data"
    record = ["perf", "record", "-q", "-o", data, "-e", "cpu-clock", "-F", frequency, "-a", "-m", 4096]
    done = run([*record, "--call-graph", "dwarf,16384", "--", *command], timeout=MOST_SECONDS)
    assert done.child.returncode == 0, done.describe()
    fields = ["--no-inline", "-F", "pid,ip,sym,dso"]
    listed = run(["perf", "script", "-i", data, "--pid", pid, *fields], timeout=MOST_SECONDS)
    found: Counter[str] = Counter()
    for sample in re.split(r"\n\n+", listed.stdout.strip()):
        frames = re.findall(rf"^\s+([0-9a-f]+) .*\({re.escape(str(library))}\)$", sample, re.MULTILINE)
        # The last byte of each call.
        names = [returns[int(address, 16) + 1] for address in frames if int(address, 16) + 1 in returns]
        found[names[0] if names else ""] += 1
    assert found, listed.describe()
    return found


def _returns(library: Path, functions: Mapping[str, str]) -> dict[int, str]:
    """Addresses behind the calls of functions that another image has."""
    listed = run(["objdump", "-d", "--no-show-raw-insn", library]).stdout
    calls = re.findall(r"call.*<(\w+)@plt>\n\s+([0-9a-f]+):", listed)
    found = {
        int(address, 16): name
        for function, address in calls
        for name, expression in functions.items()
        if re.fullmatch(expression, function)
    }
    assert set(found.values()) == set(functions), calls
    return found


def stripped_functions(places: Counter[Place], pid: int, symbols: Path) -> Counter[str]:
    """Samples by function of the process's own image; `symbols` is that before it was stripped.
    The process is alive."""
    image = str(Path(f"/proc/{pid}/exe").readlink())
    names, base = _symbols(symbols), _base(pid, image, symbols)
    found: Counter[str] = Counter()
    for place, count in places.items():
        own = place.module == image
        found[names.name(place.address - base) if own else place.module] += count
    return found


def _base(pid: int, image: str, symbols: Path) -> int:
    """What its addresses in a process are larger by than in the file."""
    if symbols.read_bytes()[16] == ET_EXEC:
        return 0
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return min(int(line.split("-")[0], 16) for line in maps if line.endswith(image))


Functions = Callable[[Counter[Place], Server], Counter[str]]
"""Samples by function, of a server that is alive."""


def stripped(program: str) -> Functions:
    """Of a program of ours that was stripped."""
    return lambda places, server: stripped_functions(places, server.pid, PROGRAMS / f"{program}.symbols")


def _symbols(image: Path) -> Names:
    listed = run(["nm", "--numeric-sort", "--defined-only", image])
    lines = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    rows = [(int(address, 16), name) for address, kind, name in lines if kind in "tTwWi"]
    assert rows, listed.describe()
    ends = [address for address, _name in rows[1:]] + [rows[-1][0] + 1]
    return Names((begin, end, name) for (begin, name), end in zip(rows, ends))


JAVA_OPTIONS = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+PrintStubCode"]
"""With these it prints where the code is that it does not compile from Java."""


@contextmanager
def java_map(pid: int) -> Iterator[Path]:
    """Has a Java virtual machine write the names of the code that it has compiled, for perf."""
    written = Path(f"/tmp/perf-{pid}.map")
    try:
        subprocess.run(["jcmd", str(pid), "Compiler.perfmap"], check=True, capture_output=True)
        yield written
    finally:
        written.unlink(missing_ok=True)


def java_functions(places: Counter[Place], java: Process) -> Counter[str]:
    """Samples by method or stub of a Java virtual machine with `JAVA_OPTIONS` that is alive, and by its own functions."""
    stubs = re.findall(r"^(\S.*) \[0x([0-9a-f]+), 0x([0-9a-f]+)\]", java.stdout, re.MULTILINE)
    assert stubs, "no stubs"
    with java_map(java.pid) as written:
        lines = [line.split(" ", 2) for line in written.read_text().splitlines()]
    compiled = Names((int(at, 16), int(at, 16) + int(size, 16), name) for at, size, name in lines)
    built_in = Names((int(begin, 16), int(end, 16), name) for name, begin, end in stubs)
    (machine,) = {place.module for place in places if place.module.endswith("/libjvm.so")}
    own, base = _symbols(Path(machine)), _base(java.pid, machine, Path(machine))
    found: Counter[str] = Counter()
    for place, count in places.items():
        name = built_in.name(place.address) or compiled.name(place.address)
        if place.module == machine:
            name = own.name(place.address - base)
        found[name or place.module] += count
    return found
