"""CPU time that the hypervisor gave to other guests while this one wanted to run. The clock of a handshake
runs on meanwhile, but the kernel keeps it out of the CPU time of processes (proc_stat(5), `steal`)."""

from pathlib import Path
from typing import Callable

USER, NICE, SYSTEM, SOFTIRQ, STEAL = 0, 1, 2, 6, 7


def _ticks() -> list[list[int]]:
    """By CPU."""
    lines = (line.split() for line in Path("/proc/stat").read_text().splitlines())
    return [[int(ticks) for ticks in numbers] for name, *numbers in lines if name[:3] == "cpu" and name != "cpu"]


def watch_steal() -> Callable[[], float]:
    """The returned function tells the share of the wanted CPU time that was stolen since this call, 0 to 1, on the
    CPU where it is greatest, of those that were wanted for half as long as the busiest."""
    before = _ticks()

    def share() -> float:
        spent = [[now - then for then, now in zip(*cpu)] for cpu in zip(before, _ticks())]
        wanted = [sum(cpu[kind] for kind in (USER, NICE, SYSTEM, SOFTIRQ, STEAL)) for cpu in spent]
        busy = [(cpu[STEAL], all_of_it) for cpu, all_of_it in zip(spent, wanted) if all_of_it >= max(1, max(wanted) / 2)]
        return max((stolen / all_of_it for stolen, all_of_it in busy), default=0.0)

    return share


def without_stolen(ratio: float, stolen: float) -> float:
    """A ratio of CPU time by the clock of handshakes to that by the kernel, nearer to 1 by as much as may have been stolen."""
    return min(ratio, max(1.0, ratio * (1 - stolen)))


def assert_agree(by_clock: float, by_kernel: float, tolerance: float, stolen: float, *more: object) -> None:
    """Of the same CPU time by the clock of handshakes and by the kernel: up to the tolerance, and to what was stolen
    of the former. `more` is said if they do not."""
    least, greatest = by_kernel * (1 - tolerance), by_kernel * (1 + tolerance) / (1 - stolen)
    assert least <= by_clock <= greatest, (by_clock, by_kernel, stolen, *more)
