"""Waiting for conditions, bounded in time."""

import time
from typing import Callable, TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.02


class NotReached(AssertionError):
    """A condition that did not hold in time: what a test asked for is not so."""


def wait_until(condition: Callable[[], T], what: str, timeout: float = 60.0) -> T:
    """Returns the first true value of `condition`; fails with `what` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise NotReached(f"{what}: not within {timeout:g} s")
        time.sleep(POLL_SECONDS)
