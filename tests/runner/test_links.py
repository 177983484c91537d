"""Links between the documents lead somewhere, headings included."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = "https://github.com/tlsprof/tlsprof/blob/main/"

_FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)

pytestmark = pytest.mark.harness


def documents() -> list[Path]:
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return [ROOT / line for line in listed.stdout.splitlines()]


def prose(text: str) -> str:
    return _FENCED.sub("", text)


def anchors(text: str) -> set[str]:
    """What GitHub makes of the headings of a page."""
    found: dict[str, int] = {}
    for heading in _HEADING.findall(prose(text)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        if found[name]:
            found[f"{name}-{found[name]}"] = 0
    return set(found)


@cache
def anchors_of(page: Path) -> set[str]:
    return anchors(page.read_text())


def broken(page: Path, text: str) -> list[str]:
    """Links of a page, and to this repository on GitHub, that lead nowhere."""
    wrong = []
    for link in _LINK.findall(prose(text)):
        path, _, anchor = link.removeprefix(OURS).partition("#")
        if "://" in path or path.startswith("mailto:"):
            continue
        target = ROOT / path if link.startswith(OURS) else (page.parent / path if path else page)
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            wrong.append(link)
    return wrong


def test_links_between_documents_lead_somewhere():
    wrong = {page.relative_to(ROOT): broken(page, page.read_text()) for page in documents()}
    assert not {page: links for page, links in wrong.items() if links}


def test_a_broken_link_or_anchor_is_found():
    text = "[a](README.md) [b](missing.md) [c](README.md#install) [d](README.md#nowhere)\n"
    text += f"```\n[e](in-a-block.md)\n```\n[f]({OURS}missing.md) [g](https://example.org/missing)\n"
    assert broken(ROOT / "one.md", text) == ["missing.md", "README.md#nowhere", f"{OURS}missing.md"]


def test_anchors_are_those_of_github():
    text = "# A `b`, [c](d)\n## What's new?\n## Same\n```\n# no heading\n```\n## Same\n"
    assert anchors(text) == {"a-b-c", "whats-new", "same", "same-1"}
