"""Scenarios are long tests; what the pages say needs no server."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents and item.path.name != "test_guide.py":
            item.add_marker(pytest.mark.long)
