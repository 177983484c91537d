# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Windows with something attached and without, in turns, under one load that goes on.

Each window with it is compared with the mean of its neighbours without. So what changes on the
machine more slowly than that is in both. An operation is a write of the server's process, CPU time
is the scheduler's own count. Windows differ in length, so that they keep no step with what the agent
does every two seconds.
"""

import random
import re
import time
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from statistics import mean, median
from typing import Callable, ContextManager

from harness.waiting import wait_until

SETTLING_SECONDS = 0.03
"""Attaching patches the code of the kernel, and of processes."""
RESAMPLINGS = 2000


def writes(pid: int) -> int:
    return int(re.search(r"^syscw: (\d+)", Path(f"/proc/{pid}/io").read_text(), re.MULTILINE)[1])


def on_cpu(pid: int) -> float:
    """Seconds, of all its threads."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


@dataclass(frozen=True)
class Both:
    """The two ends of a load."""

    server: int
    client: int


@dataclass(frozen=True)
class Window:
    """CPU seconds an operation, and operations a second."""

    server: float
    client: float
    throughput: float


def _window(ends: Both, seconds: float) -> Window:
    """With at least one operation: on a busy machine the server may not run for a while."""
    time.sleep(SETTLING_SECONDS)
    began, done = time.monotonic(), writes(ends.server)
    server, client = on_cpu(ends.server), on_cpu(ends.client)
    time.sleep(seconds * random.uniform(0.5, 1.5))
    wait_until(lambda: writes(ends.server) > done, "an operation")
    seconds, done = time.monotonic() - began, writes(ends.server) - done
    server, client = on_cpu(ends.server) - server, on_cpu(ends.client) - client
    return Window(server / done, client / done, done / seconds)


def _between(one: Window, other: Window) -> Window:
    return Window(
        mean((one.server, other.server)),
        mean((one.client, other.client)),
        mean((one.throughput, other.throughput)),
    )


@dataclass
class Turns:
    """Windows with it, and for each the mean of those without just before and after it."""

    attached: list[Window] = field(default_factory=list)
    without: list[Window] = field(default_factory=list)

    def ratios(self, of: Callable[[Window], float]) -> list[float]:
        return [of(one) / of(other) for one, other in zip(self.attached, self.without)]

    def server(self) -> float:
        """CPU seconds of the server for an operation, without."""
        return median(one.server for one in self.without)

    def added(self) -> list[float]:
        """CPU seconds of both ends for an operation."""
        pairs = zip(self.attached, self.without)
        return [one.server + one.client - other.server - other.client for one, other in pairs]


def in_turns(
    ends: Both, attach: Callable[[], ContextManager], length: float, seconds: float
) -> Turns:
    """Windows of about `length` for `seconds` in all."""
    turns, end = Turns(), time.monotonic() + seconds
    before = _window(ends, length)
    while time.monotonic() < end:
        with attach():
            turns.attached.append(_window(ends, length))
        after = _window(ends, length)
        turns.without.append(_between(before, after))
        before = after
    return turns


def resampled(values: list[float]) -> tuple[float, float, float]:
    """Median, and the least and the greatest of 95% of resamplings."""
    medians = sorted(median(random.choices(values, k=len(values))) for _ in range(RESAMPLINGS))
    return median(values), medians[RESAMPLINGS // 40], medians[-RESAMPLINGS // 40 - 1]


def text(values: list[float]) -> str:
    likely, low, high = resampled(values)
    return f"{likely:.3f} ({low:.3f}..{high:.3f})"


def text_of_share(whole: float, parts: list[float]) -> str:
    """How many times the median of the parts the whole is; `inf` where they may be nothing."""
    likely, most, least = (whole / part if part > 0 else inf for part in resampled(parts))
    return f"{likely:.2f} ({least:.2f}..{most:.2f})"
