"""CPU time that the hypervisor gave to other guests while this one wanted to run. The clock of a handshake
runs on meanwhile, but the kernel keeps it out of the CPU time of processes (proc_stat(5), `steal`)."""

from pathlib import Path
from typing import Callable

USER, NICE, SYSTEM, SOFTIRQ, STEAL = 0, 1, 2, 6, 7


def _ticks() -> list[int]:
    return [int(ticks) for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]


def watch_steal() -> Callable[[], float]:
    """The returned function tells the share of the wanted CPU time that was stolen since this call, 0 to 1."""
    before = _ticks()

    def share() -> float:
        spent = [after - earlier for earlier, after in zip(before, _ticks())]
        wanted = sum(spent[kind] for kind in (USER, NICE, SYSTEM, SOFTIRQ, STEAL))
        return spent[STEAL] / wanted if wanted else 0.0

    return share
