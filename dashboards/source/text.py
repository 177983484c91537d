"""What a panel says of itself."""

import re
from dataclasses import dataclass
from typing import Optional

from .thresholds import Limits

REPOSITORY = "https://github.com/tlsprof/tlsprof/blob/main"
"""Where the pages are that descriptions point to; the base of the alerts' runbook_url."""

_PAGE = re.compile(r"docs/[\w/.-]+\.md")


@dataclass(frozen=True)
class Text:
    """What a panel shows, what is good, what to do if it is not so, and what no data means."""

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
