"""The error rates of the sequential test, by calculation and by simulation; needs no tlsprof."""

import math
from collections import defaultdict
from itertools import chain, cycle, repeat
from random import Random

import pytest

from harness.sequential import ACCEPT, ASSUMED, FIGURES, MOST, REJECT
from harness.sequential import Rounds, accepted, assert_agrees, would_be_rejected

pytestmark = pytest.mark.harness

RUNS = 4000
WITHIN = 0.05

POWER = 0.99
FALSE_ALARMS = 1e-3
"""At most, per run of all tests."""


def not_accepted(outside: float) -> float:
    """The probability that a figure is not accepted, by how often a repeat is outside. Exact."""
    counts = {0: 1.0}
    right = 0.0
    for _ in range(MOST):
        following: dict[int, float] = defaultdict(float)
        for count, probability in counts.items():
            following[count + 1] += probability * (1 - outside)
            following[count - 1] += probability * outside
        right += following.pop(ACCEPT, 0.0)
        following.pop(-REJECT, None)
        counts = following
    return 1 - right


def test_false_alarms_are_rare():
    assert FIGURES * not_accepted(ASSUMED) < FALSE_ALARMS / 5
    assert FIGURES * not_accepted(0.25) < 2.5 * FALSE_ALARMS


def test_a_figure_that_is_off_is_rejected():
    assert not_accepted(1 - ASSUMED) > POWER


NOISE = {
    "normal": lambda random: random.gauss(0.0, 1.0),
    # Student's t with two degrees of freedom: its variance is infinite.
    "heavy tails": lambda random: random.gauss(0.0, 1.0) / math.sqrt(random.expovariate(1.0)),
    # A neighbour makes one repeat in ten take far longer.
    "one-sided": lambda random: random.gauss(0.0, 0.8) + (random.random() < 0.1) * random.expovariate(0.1),
}


def scaled(noise, random: Random) -> list[float]:
    """Draws, of which `ASSUMED` are further off than the tolerance in the worse direction."""
    drawn = [noise(random) for _ in range(20_000)]
    most = sorted(abs(one) for one in drawn)[int((1 - ASSUMED) * len(drawn))]
    return [one * WITHIN / most for one in drawn]


@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("off, right", [(0.0, True), (2 * WITHIN, False), (-2 * WITHIN, False)])
def test_simulated(name, off, right):
    """As strong noise as is assumed, with the control."""
    random = Random(20261123)
    noise = scaled(NOISE[name], random)
    wrong = repeats_made = 0
    for _ in range(RUNS):
        figures = (1.0 + off + random.choice(noise) for _ in repeat(None))
        decision, seen = accepted(figures, expected=1.0, within=WITHIN)
        wrong += decision != right
        repeats_made += len(seen)
    print(f"{name}, off by {off:g}: {wrong} wrong, {repeats_made / RUNS:.1f} repeats")
    assert wrong <= (0 if right else (1 - POWER) * RUNS)


def test_a_disturbance_of_some_repeats_is_outlived():
    figures = chain(repeat(1.3, REJECT - 1), cycle([1.0, 1.01, 0.99]))
    assert accepted(figures, expected=1.0, within=WITHIN)[0]


def test_figures_that_say_nothing_are_not_accepted():
    """As many far above as far below: their median is right."""
    assert not accepted(cycle([0.5, 1.5]), expected=1.0, within=WITHIN)[0]


def test_the_control_wants_more_where_the_noise_is_wide():
    """Moved by twice the tolerance, as many of these are inside as outside."""
    assert not would_be_rejected([-0.1, 0.1, -0.1, 0.1], WITHIN)
    assert would_be_rejected([0.01, -0.02, 0.03, 0.0], WITHIN)


def test_few_repeats_are_enough_where_there_is_little_noise():
    decision, seen = accepted(cycle([1.0, 1.01, 0.99]), expected=1.0, within=WITHIN)
    assert decision and len(seen) == ACCEPT


def test_a_wrong_figure_is_told():
    with pytest.raises(AssertionError, match="share is not 1"):
        assert_agrees(repeat(1.11), expected=1.0, within=WITHIN, name="share")


def test_rounds_are_measured_once():
    made = iter(range(100))
    rounds = Rounds(lambda: next(made))
    first, second = rounds.each(float), rounds.each(lambda one: one * 2.0)
    assert [next(first) for _ in range(3)] == [0.0, 1.0, 2.0]
    assert [next(second) for _ in range(4)] == [0.0, 2.0, 4.0, 6.0]
    assert len(rounds.made) == 4
