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
