"""A real browser on the live page: Debian's Chromium, driven by Playwright.

Playwright's own download of a browser is not used. Its Python package is in target/browser
(deploy/setup), made with the Python that runs these tests."""

import os
import shutil
import site
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Optional

import pytest

from .paths import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

PACKAGES = ROOT / "target" / "browser"
CHROMIUM = "chromium"
FILES = Path("/usr/lib/chromium")
LARGE = 1 << 20
"""In bytes."""

# Chromium asks hosts of its maker for updates by itself; that is not the page's doing.
OPTIONS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

SECONDS = 1000.0
"""In the browser's unit."""
PATIENCE = 120.0
"""Seconds, on a busy host with a slow disk."""


@dataclass
class Tab:
    """A page in the browser, and what went on in it."""

    page: "Page"
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """What stands in the console, but for requests that failed."""

    def texts(self, selector: str) -> list[str]:
        return [text.strip() for text in self.page.locator(selector).all_inner_texts()]

    def rows(self, caption: str) -> list[list[str]]:
        """The body of the table of that caption, cell by cell."""
        table = self.page.locator("table", has=self.page.locator(f'caption:text-is("{caption}")'))
        rows = table.locator("tbody tr").all()
        return [[cell.strip() for cell in row.locator("th, td").all_inner_texts()] for row in rows]

    def beyond(self) -> list[str]:
        """What ends to the right of the window, so that the page scrolls sideways; each in a few words."""
        return self.page.evaluate(
            """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.body.querySelectorAll("*")]
                .filter((one) => one.getBoundingClientRect().right > innerWidth)
                .map((one) => `${one.tagName} ${one.className}: ${one.textContent.slice(0, 80)}`)"""
        )

    def wait_until(self, expression: str, timeout: float = PATIENCE, value: Any = None) -> None:
        """Waits for a JavaScript condition."""
        self.page.wait_for_function(expression, arg=value, timeout=timeout * SECONDS)


def launched() -> Any:
    """A context manager of a browser; skips the test where there is none."""
    for folder in PACKAGES.glob("lib/python3*/site-packages"):
        site.addsitedir(str(folder))
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright (deploy/setup)")
    program = shutil.which(CHROMIUM)
    if program is None:
        pytest.skip("no Chromium (deploy/setup)")
    return _launched(playwright.sync_playwright, program)


@contextmanager
def _launched(start: Any, program: str) -> "Iterator[Browser]":
    for folder in (FILES, PACKAGES):
        _read_ahead(folder)
    with start() as playwright:
        # Its sandbox does not work for root, who runs these tests.
        browser = playwright.chromium.launch(
            executable_path=program, args=list(OPTIONS), chromium_sandbox=os.geteuid() != 0, timeout=PATIENCE * SECONDS
        )
        with browser:
            yield browser


def _read_ahead(folder: Path) -> None:
    """Large files of a program are mapped and read in small pieces as they are needed, which takes most of a minute on a slow disk.
    In one piece each they are here within a second."""
    for file in (file for file in folder.rglob("*") if file.is_file() and file.stat().st_size > LARGE):
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)


@contextmanager
def tab(
    browser: "Browser",
    url: str,
    width: int = 1280,
    theme: str = "light",
    agent_may_be_away: bool = False,
    own_clock: bool = False,
    site: str = "",
) -> Iterator[Tab]:
    """The page at `url`, of a site that is at `site` if not there. At the end, all that it asked for was there, and the console is empty;
    with `agent_may_be_away`, requests may have failed. With `own_clock`, a test can let the page's
    time pass."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=theme, reduced_motion="reduce"
    )
    with context:
        context.set_default_timeout(PATIENCE * SECONDS)
        opened = Tab(context.new_page())
        _listen(opened, agent_may_be_away)
        if own_clock:
            opened.page.clock.install()
        opened.page.goto(url)
        yield opened
        origin = (site or url.split("/#")[0]).rstrip("/")
        foreign = [asked for asked in opened.requests if not asked.startswith(f"{origin}/")]
        assert not foreign, foreign
        assert not opened.complaints, opened.complaints


def _listen(opened: Tab, agent_may_be_away: bool) -> None:
    def failed(request: "Request") -> None:
        if not agent_may_be_away:
            opened.complaints.append(f"{request.url}: {request.failure}")

    def said(message: Any) -> None:
        away = agent_may_be_away and "Failed to load resource" in message.text
        if not away:
            opened.complaints.append(f"{message.type}: {message.text}")

    def asked(request: "Request") -> None:
        opened.requests.append(request.url)

    opened.page.on("request", asked)
    opened.page.on("requestfailed", failed)
    opened.page.on("console", said)
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.on("dialog", lambda dialog: opened.complaints.append(f"dialog: {dialog.message}"))


def violations(opened: Tab, within: Optional[str] = None) -> list[str]:
    """What axe finds wrong with the page's accessibility, in lines."""
    from axe_playwright_python.sync_playwright import Axe

    results = Axe().run(opened.page, context=within)
    return [
        f"{found['id']}: {found['help']}: {[node['target'] for node in found['nodes']][:5]}"
        for found in results.response["violations"]
    ]
