"""The HTML report in a real browser, on screen and on paper: that of the snapshot, which a unit test
keeps."""

import re
import shutil
import subprocess

import pytest

from harness import browser
from harness.paths import ROOT

pytestmark = pytest.mark.harness

REPORT = ROOT / "agent" / "tests" / "snapshots" / "report.html"

PHONE = {"width": 400, "height": 800}

PAGES = 4
"""Of paper, at most, for eight services."""


@pytest.fixture(scope="module")
def chromium():
    with browser.launched() as launched:
        yield launched


@pytest.fixture
def page(chromium):
    with chromium.new_context(color_scheme="light") as context:
        yield context.new_page()


def of_eight_services() -> str:
    """The report with its three services once more, and two of little CPU time. Of these, five are shown
    in detail on paper, as in the text."""
    text = REPORT.read_text()
    sections = re.findall(r"<section.*?</section>", text, re.S)
    assert len(sections) == 3
    more = f'<div class="more">{sections[2]}</div>'
    folded = f"<details><summary>2 services</summary>{''.join(sections[:2])}</details>"
    last = sections[-1]
    before, after = text.split(last)
    return "".join([before, last, *sections[:2], more, folded, after])


def test_eight_services_take_four_pages_of_paper(page):
    page.set_content(of_eight_services())
    assert page.locator("section").count() == 8
    # Chromium leaves the objects of pages readable.
    printed = page.pdf(format="A4")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= PAGES


@pytest.mark.skipif(not shutil.which("pdftotext"), reason="needs pdftotext (poppler-utils)")
def test_a_service_begins_on_paper_where_its_text_does(page, tmp_path):
    page.set_content(of_eight_services())
    names = page.locator("section > h2").all_inner_texts()
    printed = tmp_path / "report.pdf"
    page.pdf(format="A4", path=printed)
    text = subprocess.run(["pdftotext", "-layout", printed, "-"], capture_output=True, check=True, text=True)
    last = [page.strip().splitlines()[-1].strip() for page in text.stdout.split("\f") if page.strip()]
    assert len(last) >= 2 and names
    assert not set(names) & set(last), last


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_shows_all_columns(page, theme):
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size(PHONE)
    page.goto(REPORT.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"
    assert page.locator(".scroll").evaluate_all(wide) == []


def test_only_headlines_are_bold(page):
    page.goto(REPORT.as_uri())
    weights = "all => all.map(one => Number(getComputedStyle(one).fontWeight))"
    paragraphs = page.locator(".finding p, .finding summary").evaluate_all(weights)
    assert paragraphs and max(paragraphs) < 600
    assert min(page.locator(".finding h3").evaluate_all(weights)) >= 600


def test_a_finding_leads_to_its_page_in_the_report(page):
    page.goto(REPORT.as_uri())
    about = page.locator("#about-slow-key-exchange")
    assert not about.is_visible()
    page.get_by_role("link", name="about slow-key-exchange").first.click()
    about.wait_for(state="visible")
    assert "How tlsprof knows" in about.inner_text()
