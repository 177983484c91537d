"""The Prometheus rules: sound, and firing when they should."""

import pytest

from harness.paths import TESTS
from harness.processes import run

RULES = TESTS.parent / "dashboards" / "rules"


@pytest.mark.parametrize("arguments", [["check", "rules", "tlsprof.rules.yml"], ["test", "rules", "tlsprof.test.yml"]])
def test_promtool_agrees(arguments):
    *command, file = arguments
    done = run(["promtool", *command, RULES / file])
    assert done.child.returncode == 0, done.describe()
