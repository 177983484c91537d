"""The live page's scripts that need no browser, by the tests beside them in tests/page."""

import shutil

import pytest

from harness.paths import ROOT, TESTS
from harness.processes import run

PAGE = ROOT / "agent" / "outlet" / "src" / "http" / "page"


@pytest.mark.harness
def test_the_pages_scripts(tmp_path):
    # Node takes a file for a module by a package.json beside it, which the page has no use for.
    (tmp_path / "package.json").write_text('{"type": "module"}')
    tests = sorted((TESTS / "page").glob("*.test.mjs"))
    assert tests
    for file in [*PAGE.glob("*.js"), *tests]:
        shutil.copy(file, tmp_path)
    done = run(["node", "--test"], cwd=tmp_path)
    assert done.child.returncode == 0, done.describe()
