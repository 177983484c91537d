"""Control groups: where processes go, and what the kernel accounts to all that were in them."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Optional

from .waiting import wait_until


def version_2() -> Optional[Path]:
    """Where control groups of version 2 are mounted."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return next((Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)


@contextmanager
def control_group() -> Iterator[Optional[Path]]:
    """A control group (version 2) of these tests, removed afterwards with all that are in it; None
    where none can be made."""
    hierarchy = version_2()
    root = hierarchy / f"tlsprof-tests-{os.getpid()}" if hierarchy else None
    try:
        if root:
            root.mkdir()
    except OSError:
        root = None
    try:
        yield root
    finally:
        if root:
            for folder, _folders, _files in os.walk(root, topdown=False):
                wait_until(lambda: removed(Path(folder)), f"control group {folder} to be empty")


@contextmanager
def limited_memory(most: int) -> Iterator[Optional[Path]]:
    """A control group whose processes may have `most` bytes, the kernel's memory for them included;
    None where none can be made. Version 1 or 2, whichever has the memory controller."""
    parent, limit = _memory_controller()
    group = parent / f"tlsprof-tests-memory-{os.getpid()}" if parent else None
    try:
        if group:
            group.mkdir()
            (group / limit).write_text(str(most))
    except OSError:
        group = None
    try:
        yield group
    finally:
        if group:
            wait_until(lambda: removed(group), f"control group {group} to be empty")


def _memory_controller() -> tuple[Optional[Path], str]:
    """Where groups with a limit can be made, and the file that sets it."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    for fields in mounts:
        if fields[2] == "cgroup" and "memory" in fields[3].split(","):
            return Path(fields[1]), "memory.limit_in_bytes"
    hierarchy = version_2()
    if hierarchy and "memory" in (hierarchy / "cgroup.subtree_control").read_text().split():
        return hierarchy, "memory.max"
    return None, ""


def removed(group: Path) -> bool:
    """A group stays busy until the kernel has done away with its last process."""
    try:
        group.rmdir()
    except OSError:
        return False
    return True


def cpu_seconds(group: Path) -> float:
    """What all processes used while they were in the group, those that nobody waited for included."""
    fields = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(fields["usage_usec"]) / 1e6
