"""docs/security.md: every test that it names is there."""

import re

import pytest

from harness.paths import TESTS

ROOT = TESTS.parent
NAMED = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+){2,})`")
NO_TESTS = {"no_new_privs"}


@pytest.mark.harness
def test_every_test_that_the_page_names_is_there():
    named = set(NAMED.findall((ROOT / "docs/security.md").read_text())) - NO_TESTS
    assert len(named) > 30
    sources = [*(ROOT / "agent").rglob("*.rs"), *(ROOT / "tests").rglob("*.py")]
    defined = re.compile(r"(?:fn|def) ([a-z0-9_]+)\(")
    known = {name for source in sources for name in defined.findall(source.read_text())}
    assert named - known == set()
