"""Marks of tests with a Prometheus of today. Apart from `observatory`, which programs without pytest use, too."""

from typing import Any

import pytest

from .observatory import TODAY

NEEDS_TODAY = pytest.mark.skipif(
    not TODAY.exists(), reason="no Prometheus of today: deploy/packages/tools.sh prometheus"
)


def of_today(value: str) -> Any:
    """A parameter of tests with that Prometheus: long ones, where it was built."""
    return pytest.param(value, marks=[pytest.mark.long, NEEDS_TODAY])
