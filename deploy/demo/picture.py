#!/usr/bin/env python3
"""Takes the picture of the live page in README.md: `make picture`.

    picture.py PAGE SERVICE FILE    PAGE: the agent's address, such as http://127.0.0.1:9843/
"""

import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "e2e"))

from harness import browser

WIDTH, HEIGHT, MARGIN = 1200, 920, 16
JUDGED_SECONDS = 60.0
"""The agent looks for findings every 15 s."""


def take(page: str, service: str, file: str) -> None:
    """Of that service, once its findings, charts and tables are there; other services of the host are cut off."""
    address = f"{page}#service={urllib.parse.quote(service)}"
    with browser.launched() as chromium, browser.tab(chromium, address, width=WIDTH) as opened:
        opened.page.check('#windows input[value="300"]')
        opened.page.wait_for_selector("#mixes table")
        opened.page.wait_for_selector("#findings .finding", timeout=JUDGED_SECONDS * browser.SECONDS)
        # Folded: all titles and the charts fit.
        opened.page.click("#findings .finding[open] summary")
        top = opened.page.locator("#service").bounding_box()["y"]
        area = {"x": 0, "y": top - MARGIN, "width": WIDTH, "height": HEIGHT}
        opened.page.screenshot(path=file, full_page=True, clip=area)


def shrink(file: str) -> None:
    """Reduces the picture to a palette, where pngquant is installed."""
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--output", file, "64", file], check=True)


if __name__ == "__main__":
    take(*sys.argv[1:])
    shrink(sys.argv[3])
