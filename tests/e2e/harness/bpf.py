"""What the kernel holds of a process's BPF programs and probes."""

import json
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

from .processes import LONG_SECONDS
from .tracefs import mounted
from .waiting import wait_until

STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")


def _objects(kind: str) -> list[dict]:
    output = subprocess.run(["bpftool", "-j", kind, "list"], check=True, capture_output=True, timeout=LONG_SECONDS)
    return json.loads(output.stdout or b"[]")


@contextmanager
def statistics() -> Iterator[None]:
    """The kernel measures each run of a BPF program meanwhile."""
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        yield
    finally:
        STATISTICS.write_text(before)


def runs(wanted: Callable[[dict], bool]) -> tuple[int, float]:
    """Runs of those programs, and seconds in them, as far as statistics were kept."""
    those = [one for one in _objects("prog") if wanted(one)]
    return sum(one.get("run_cnt", 0) for one in those), sum(one.get("run_time_ns", 0) for one in those) / 1e9


def descriptors(pid: int) -> Iterator[tuple[int, dict[str, str]]]:
    """What a process has open, by number, as the kernel describes it."""
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = entry.read_text()
        except FileNotFoundError:
            continue  # a descriptor that was closed since: files are opened and read all the time
        lines = (line.split(":", 1) for line in text.splitlines() if ":" in line)
        yield int(entry.name), {name: value.strip() for name, value in lines}


def owned_by(pid: int, kind: str) -> set[int]:
    """Ids of the programs (`prog`), maps (`map`) or links (`link`) to which a process holds a descriptor."""
    ids = set()
    for _, fields in descriptors(pid):
        if f"{kind}_id" in fields and ("link_type" in fields) == (kind == "link"):
            ids.add(int(fields[f"{kind}_id"]))
    return ids


def entries(pid: int, name: str) -> int:
    """How many there are in the map of that name to which a process holds a descriptor."""
    (found,) = [one["id"] for one in _objects("map") if one.get("name") == name and one["id"] in owned_by(pid, "map")]
    command = ["bpftool", "-j", "map", "dump", "id", str(found)]
    return len(json.loads(subprocess.run(command, check=True, capture_output=True, timeout=LONG_SECONDS).stdout))


def wait_unloaded(programs: set[int], links: set[int]) -> None:
    """Waits until the kernel has dropped all of them: it does so some time after the close."""
    for kind, ids in (("prog", programs), ("link", links)):
        wait_until(
            lambda: ids.isdisjoint(found["id"] for found in _objects(kind)),
            f"kernel to drop the {kind}s {sorted(ids)}",
        )


def uprobe_events() -> str:
    """Uprobes made through tracefs, the way of older kernels."""
    with mounted() as tracing:
        return (tracing / "uprobe_events").read_text()
