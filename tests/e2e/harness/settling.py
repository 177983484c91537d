"""Estimates that need more or fewer repeats, by how noisy the machine is just now."""

from typing import Callable, TypeVar

T = TypeVar("T")


def measure_until(
    agree: Callable[[list[T]], bool], measure: Callable[[], T], *, least: int, most: int
) -> list[T]:
    """Results of `least` measurements, and of more, up to `most`, while all so far do not agree.

    For estimates that noise leaves alone in the long run, as medians of ratios and least
    times: a disturbance on a shared machine lasts for seconds and passes, a wrong figure
    stays wrong however often it is measured. The caller asserts on what is returned.
    """
    results = [measure() for _ in range(least)]
    while not agree(results) and len(results) < most:
        results.append(measure())
    return results
