"""Descriptions of panels."""

import re
from dataclasses import dataclass
from typing import Optional

from .thresholds import Limits

REPOSITORY = "https://github.com/tlsprof/tlsprof/blob/main"
"""Base of links to pages of the documentation, as in the alerts' runbook_url."""

_PAGE = re.compile(r"docs/[\w/.-]+\.md")


@dataclass(frozen=True)
class Text:
    """What a panel shows, good values, what to do otherwise, and the meaning of no data."""

    shows: str
    good: str
    remedy: str
    no_data: str

    def markdown(self, limits: Optional[Limits]) -> str:
        parts = [self.shows, f"**Good:** {self.good}", f"**What to do:** {self.remedy}"]
        if limits:
            parts.append(f"**Colours:** {limits.reason}")
        parts.append(f"**No data:** {self.no_data}")
        return with_links("\n\n".join(parts))


def with_links(text: str) -> str:
    """Pages of the documentation as links."""
    return _PAGE.sub(lambda page: f"[{page.group()}]({REPOSITORY}/{page.group()})", text)
