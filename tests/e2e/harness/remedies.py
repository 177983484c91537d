"""The remedies that the pages in docs/findings have."""

import re
from typing import Iterator

import pytest

from .paths import ROOT

PAGES = ROOT / "docs" / "findings"


def directives(server: str) -> Iterator[tuple[str, str]]:
    """Page and directive of each remedy for that server."""
    for page in sorted(PAGES.glob("*.md")):
        for block in page.read_text().split("\n**")[1:]:
            name, _, rest = block.partition(".**")
            advice = rest.split("\n**")[0]
            for code in re.findall(r"\n```\n(.*?)\n```", advice, re.S) if name == server else ():
                yield page.stem, code


def named(server: str, least: int = 8, word: str = "") -> list:
    found = [(page, directive) for page, directive in directives(server) if word in directive]
    assert len(found) >= least, f"{server}: the pages have changed their form"
    return [pytest.param(directive, id=page) for page, directive in found]
