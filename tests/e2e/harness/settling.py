"""Estimates that need more or fewer repeats, by how noisy the machine is just now."""

from statistics import median
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


def assert_median(
    measure: Callable[[], float], *, expected: float, within: float, least: int, most: int
) -> None:
    """Asserts that the median of repeats is at most `within` off what is `expected`: of ratios 1.0,
    of differences 0.0."""

    def agree(results: list[float]) -> bool:
        return abs(median(results) - expected) <= within

    results = measure_until(agree, measure, least=least, most=most)
    assert agree(results), results
