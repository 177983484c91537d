"""CPU time that the hypervisor gave to other guests while this one wanted to run. The clock of a handshake
runs on meanwhile, but the kernel keeps it out of the CPU time of processes (proc_stat(5), `steal`)."""

from pathlib import Path
from typing import Callable, TypeVar

T = TypeVar("T")

MOST_EXCUSED = 0.25
DISTURBED = 0.02
"""Of the wanted CPU time."""
MOST_DISCARDED = 5

USER, NICE, SYSTEM, SOFTIRQ, STEAL = 0, 1, 2, 6, 7


def _ticks() -> list[list[int]]:
    """By CPU."""
    lines = (line.split() for line in Path("/proc/stat").read_text().splitlines())
    return [[int(ticks) for ticks in numbers] for name, *numbers in lines if name[:3] == "cpu" and name != "cpu"]


def watch_steal() -> Callable[[], float]:
    """Returns a function that tells which share of the wanted CPU time was stolen since this call, on the busy CPU with the most.
    It is `MOST_EXCUSED` at most: a test that allows for it still says something."""
    before = _ticks()

    def share() -> float:
        spent = [[now - then for then, now in zip(*cpu)] for cpu in zip(before, _ticks())]
        wanted = [sum(cpu[kind] for kind in (USER, NICE, SYSTEM, SOFTIRQ, STEAL)) for cpu in spent]
        busy = [(cpu[STEAL], all_of_it) for cpu, all_of_it in zip(spent, wanted) if all_of_it >= max(1, max(wanted) / 2)]
        return min(MOST_EXCUSED, max((stolen / all_of_it for stolen, all_of_it in busy), default=0.0))

    return share


def undisturbed(measure: Callable[[], T]) -> T:
    """Measures again if too much was stolen meanwhile: by that alone, whatever the result is, and some times at most."""
    for _ in range(MOST_DISCARDED):
        steal = watch_steal()
        measured = measure()
        if steal() <= DISTURBED:
            return measured
    return measure()


def assert_agree(by_clock: float, by_kernel: float, tolerance: float, stolen: float, *more: object) -> None:
    """Asserts that CPU time by the clock of handshakes is that by the kernel within the tolerance, and what was stolen. `more` is
    added to the message."""
    least, greatest = by_kernel * (1 - tolerance), by_kernel * (1 + tolerance) / (1 - stolen)
    assert least <= by_clock <= greatest, (by_clock, by_kernel, stolen, *more)
