"""A dashboard of Grafana in a browser."""

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator
from urllib.parse import urlsplit

SECONDS = 1000.0
"""In the browser's unit."""
TALL = 5200
"""Pixels: Grafana draws only panels that are in view."""
WINDOW = {"from": "now-1h", "to": "now"}


CHOSEN = r"() => /[?&]var-/.test(location.search) && !/[?&]var-\w+=(&|$)/.test(location.search)"
"""Every variable has a value."""
DRAWN = """() => {
    const panels = [...document.querySelectorAll('[data-testid^="data-testid Panel header"]')];
    const words = one => one?.innerText.trim();
    return panels.length > 0 && !document.querySelector('[aria-label="Panel loading bar"]') && panels.every(
        panel => panel.querySelector('canvas') || words(panel) !== words(panel.querySelector('h2')));
}"""
"""Every panel has something under its title: a drawing, or words."""
FITS = """() => {
    const panels = [...document.querySelectorAll('[data-testid^="data-testid Panel header"]')];
    const right = one => one.getBoundingClientRect().right;
    const edge = Math.max(...panels.map(right));
    return edge <= innerWidth && edge > 0.9 * innerWidth && panels.every(
        panel => [...panel.querySelectorAll('canvas')].every(drawing => right(drawing) <= right(panel)));
}"""
"""Panels fill the width of the window, and drawings their panels."""


@dataclass
class Visit:
    """A dashboard in the browser, and what went wrong in it."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    expressions: list[str] = field(default_factory=list)
    """Of the queries that it made."""

    @property
    def queries(self) -> int:
        return len(self.expressions)

    def titles(self) -> list[str]:
        return self.page.locator('[data-testid^="data-testid Panel header"]').evaluate_all(
            "found => found.map(one => one.dataset.testid.replace('data-testid Panel header ', ''))"
        )

    def text(self, title: str) -> str:
        """What a panel shows."""
        return self.panel(title).inner_text()

    def panel(self, title: str) -> Any:
        return self.page.locator(f'[data-testid="data-testid Panel header {title}"]')

    def values(self, variable: str) -> list[str]:
        """What is chosen for a variable."""
        return re.findall(rf"[?&]var-{variable}=([^&]*)", self.page.url)

    def settled(self) -> None:
        """Waits until nothing is being loaded."""
        self.page.wait_for_load_state("networkidle", timeout=120 * SECONDS)
        self.page.wait_for_function(CHOSEN, timeout=60 * SECONDS)
        self.page.wait_for_load_state("networkidle", timeout=120 * SECONDS)
        self.page.wait_for_function(DRAWN, timeout=60 * SECONDS)

    def picture(self, path: Path) -> None:
        """Of what there is, without the rest of the window."""
        low = self.page.evaluate(
            """() => Math.max(...[...document.querySelectorAll('[data-testid^="data-testid Panel header"]')]
                .map(panel => panel.getBoundingClientRect().bottom))"""
        )
        width = self.page.viewport_size["width"]
        self.page.screenshot(path=path, clip={"x": 0, "y": 0, "width": width, "height": low + 20})

    def resize(self, width: int) -> None:
        """Panels are laid out anew; what they show is not asked for again."""
        self.page.set_viewport_size({"width": width, "height": TALL})
        self.page.wait_for_function(FITS, timeout=60 * SECONDS)
        self.settled()

    def open_rows(self) -> None:
        """Opens the rows that are collapsed."""
        closed = 'button[aria-label="Expand row"]'
        while self.page.locator(closed).count():
            self.page.locator(closed).first.click()
        self.settled()


@contextmanager
def visit(browser: Any, url: str, theme: str = "light", width: int = 1600) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": width, "height": TALL})
    with context:
        opened = Visit(context.new_page())
        opened.page.set_default_timeout(120 * SECONDS)

        def said(message: Any) -> None:
            where = message.location.get("url", "")
            # Grafana's own pages ask its maker's site for news now and then, which needs the internet.
            if message.type == "error" and urlsplit(where).netloc in ("", urlsplit(url).netloc):
                opened.complaints.append(f"{message.text} ({where})")

        def answered(response: Any) -> None:
            if response.status >= 400:
                opened.complaints.append(f"{response.status} {response.url}")
            if "/api/ds/query" in response.url:
                made = json.loads(response.request.post_data)["queries"]
                opened.expressions += [query["expr"] for query in made]

        opened.page.on("console", said)
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on("response", answered)
        opened.page.goto(f"{url}&theme={theme}")
        opened.settled()
        yield opened
