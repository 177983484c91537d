"""The pages of docs/guide: the commands, findings and pages that they name exist."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from harness.paths import ROOT, TLSPROF
from harness.processes import run

pytestmark = pytest.mark.harness

GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))

_CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
_FINDING = re.compile(r"^ +(?:high|medium|low|info) · \S+ · ([a-z-]+)$", re.MULTILINE)


def commands(page: Path) -> list[list[str]]:
    """What a reader is told to type, in words, without sudo."""
    blocks = "".join(_CONSOLE.findall(page.read_text())).replace("\\\n", " ")
    lines = [line.removeprefix("$ ") for line in blocks.splitlines() if line.startswith("$ ")]
    return [shlex.split(line.removeprefix("sudo ")) for line in lines]


def profiles(page: Path) -> list[list[str]]:
    return [command for command in commands(page) if command[0] == "tlsprof"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_have_the_options_that_they_are_given(page):
    for _, subcommand, *arguments in profiles(page):
        done = run([TLSPROF, subcommand, "--help"])
        assert done.child.returncode == 0, done.describe()
        own = arguments[: arguments.index("--")] if "--" in arguments else arguments
        for option in (argument for argument in own if argument.startswith("--")):
            assert re.search(rf"{option}\b", done.stdout), f"{subcommand} has no {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_programs_that_make_load_are_installed(page):
    """Those of the reader's own, such as a test plan, excepted: these have a path."""
    for command in profiles(page):
        if "--" in command:
            program = command[command.index("--") + 1]
            assert "/" in program or shutil.which(program), program


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_pages_point_at_exists(page):
    text = page.read_text()
    for link in _LINK.findall(text):
        assert link.startswith("http") or (GUIDE / link).is_file(), link
    for name in _FINDING.findall(text):
        assert (ROOT / "docs" / "findings" / f"{name}.md").is_file(), name


DOMINO = "domino.md"
"""About one server, and not one of the five questions."""


def test_each_page_shows_a_command_a_finding_and_the_proof():
    for page in PAGES:
        if page.name == "README.md":
            assert all(f"]({other.name})" in page.read_text() for other in PAGES if other != page)
            continue
        if page.name == DOMINO:
            continue
        assert profiles(page) and _FINDING.search(page.read_text()), page.name
        assert "## The proof" in page.read_text(), page.name
