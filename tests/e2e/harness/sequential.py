"""A sequential test for figures that noise disturbs, such as ratios of CPU times.

A measurement is repeated until one of two things is decided: the figure is right, or it is off by twice
its tolerance. The number of repeats depends on the outcome, so a rule decides, and the rule has error
rates. It is Wald's sequential probability ratio test of one proportion.

- A repeat is *inside* if its figure is at most the tolerance off what is expected, else *outside*. A
  count goes up by one for each inside, down by one for each outside.
- At `ACCEPT` the figure is right. At `-REJECT`, or after `MOST` repeats without a decision, it is wrong.
- No distribution is assumed, in particular no tails. One number is: a repeat lies further from the
  figure than the tolerance, in either direction, with a probability of at most q. A right figure then
  is outside at most q of the time, and one that is off by twice its tolerance inside at most q.
  `ASSUMED` is that q. Each test prints its repeats; by these the machine's own can be judged.
- False alarms: at most (q / (1 - q)) ** REJECT per figure: 1e-6 for q = 0.2, 2e-5 for q = 0.25. `FIGURES`
  is more than all tests have together (counted by hand): 1.2e-4 per run of the whole suite.
- Missed errors: at most (q / (1 - q)) ** ACCEPT, 0.4% for q = 0.2: power 99.6% at twice the tolerance.
- Rejecting takes more than accepting because a disturbance may last for several repeats. A wrong figure
  costs more repeats, a right one needs four.

The control is in each test: its own measurements, moved so that their median is off by twice the
tolerance, up and down, must make the count fall, so that more of them would be rejected. Where they are
too noisy for that, more are made.

What follows from that: a figure that is off by the tolerance or a little more may pass or fail. The
tolerance of a test is chosen so that the true figure, with its known bias, is well inside.
"""

from itertools import islice
from statistics import median
from typing import Callable, Generic, Iterable, Iterator, Optional, Sequence, TypeVar

from .steal import undisturbed

T = TypeVar("T")
F = TypeVar("F")

ACCEPT = 4
REJECT = 10
MOST = 80
ASSUMED = 0.2
FIGURES = 120


def decide(offsets: Iterable[float], within: float) -> Optional[bool]:
    """Whether the rule accepts a figure with these offsets from what is expected; None: undecided."""
    count = 0
    for offset in islice(offsets, MOST):
        count += 1 if abs(offset) <= within else -1
        if count == ACCEPT:
            return True
        if count == -REJECT:
            return False
    return None


def would_be_rejected(offsets: Sequence[float], within: float) -> bool:
    """The control: whether the count falls if the median of these offsets is twice the tolerance."""
    middle = median(offsets)
    return all(
        2 * sum(abs(offset - middle + moved) <= within for offset in offsets) < len(offsets)
        for moved in (-2 * within, 2 * within)
    )


def accepted(figures: Iterator[float], *, expected: float, within: float) -> tuple[bool, list[float]]:
    """The decision, and the figures that it took."""
    offsets: list[float] = []
    for figure in islice(figures, MOST):
        offsets.append(figure - expected)
        decision = decide(offsets, within)
        if decision is False:
            break
        if decision and would_be_rejected(offsets, within):
            return True, [expected + offset for offset in offsets]
    return False, [expected + offset for offset in offsets]


def assert_agrees(figures: Iterator[float], *, expected: float, within: float, name: str = "") -> None:
    """Asserts that a figure is what is `expected`, by as many repeats as the decision needs."""
    right, seen = accepted(figures, expected=expected, within=within)
    each = " ".join(f"{figure:.4g}" for figure in seen)
    print(f"{name or 'figure'}: median {median(seen):.4g} of {each}; {expected:g} +- {within:g}")
    assert right, f"{name or 'figure'} is not {expected:g} +- {within:g}, or too noisy: {each}"


def repeats(measure: Callable[[], T]) -> Iterator[T]:
    """Measures each time that it is asked. A hypervisor steals CPU time for longer than a repeat takes, and one after another would be
    outside: such a repeat is made again."""
    while True:
        yield undisturbed(measure)


class Rounds(Generic[T]):
    """Repeats of a measurement that has several figures: each is made when first asked for."""

    def __init__(self, measure: Callable[[], T]):
        self._repeats = repeats(measure)
        self.made: list[T] = []

    def each(self, figure: Callable[[T], F]) -> Iterator[F]:
        """One figure of each repeat."""
        number = 0
        while True:
            if number == len(self.made):
                self.made.append(next(self._repeats))
            yield figure(self.made[number])
            number += 1
