"""The dashboards in a real Grafana and a real browser, over a made-up fleet."""

from typing import Any

import pytest
from fleet import BUSIEST, unknown
from harness.dashboards import boards, panels
from harness.paths import ROOT
from visit import WINDOW, Visit, visit

PICTURES = ROOT / "target" / "pictures"
BOARDS = boards()
LOOKS = [("light", 1600), ("dark", 1600), ("light", 1000)]

EMPTY = {
    "Firing alerts": "nothing is wrong for as long as alerts want",
}
"""Panels that show their text for no data, and why."""


def sentence(uid: str, title: str) -> str:
    """What a panel shows if it has no data."""
    found = next(panel for panel in panels(BOARDS[uid]) if panel["title"] == title)
    return found["fieldConfig"]["defaults"]["noValue"]


def without_data(uid: str, opened: Visit) -> set[str]:
    """Panels of the page that have no data."""
    empty = set()
    for title in opened.titles():
        shown = opened.text(title).replace(title, "", 1)
        nothing = sentence(uid, title)
        if nothing in shown.split("\n") or (len(nothing) > 1 and nothing in shown) or "No data" in shown:
            empty.add(title)
    return empty


@pytest.mark.parametrize("theme, width", LOOKS, ids=[f"{theme}-{width}" for theme, width in LOOKS])
@pytest.mark.parametrize("uid", BOARDS)
def test_every_panel_shows_data(uid, theme, width, dashboards, browser):
    PICTURES.mkdir(parents=True, exist_ok=True)
    with visit(browser, dashboards.board(uid, **WINDOW), theme, width) as opened:
        opened.open_rows()
        opened.picture(PICTURES / f"{uid}-{theme}-{width}.png")
        assert opened.complaints == []
        assert sorted(opened.titles()) == sorted(panel["title"] for panel in panels(BOARDS[uid]))
        assert without_data(uid, opened) <= set(EMPTY)
        assert cut_off(opened) == []


def cut_off(opened: Visit) -> list[str]:
    """Titles of panels, heads of columns, and names and values of stats that do not fit."""
    return opened.page.evaluate(
        """() => {
            const heads = [...document.querySelectorAll('h2, [role="columnheader"] button, [role="columnheader"] div')]
                .filter(one => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflow !== 'visible');
            const beyond = stat => {
                const panel = stat.closest('[data-testid^="data-testid Panel header"]').getBoundingClientRect();
                const own = stat.getBoundingClientRect();
                return own.right > panel.right || own.bottom > panel.bottom;
            };
            const stats = [...document.querySelectorAll('[data-testid^="data-testid Panel header"] span')]
                .filter(one => one.title && beyond(one));
            return [...heads, ...stats].map(one => one.innerText);
        }"""
    )


def test_service_opens_on_the_busiest_and_takes_all(dashboards, browser):
    with visit(browser, dashboards.board("tlsprof-service", **WINDOW)) as opened:
        assert opened.values("service_name") == [BUSIEST]
    everything = {**WINDOW, "var-service_name": "$__all"}
    with visit(browser, dashboards.board("tlsprof-service", **everything)) as opened:
        assert without_data("tlsprof-service", opened) <= set(EMPTY)


@pytest.mark.parametrize("uid", BOARDS)
def test_the_menu_leads_to_dashboards_with_data(uid, dashboards, browser):
    with visit(browser, dashboards.board(uid, **WINDOW)) as opened:
        opened.page.get_by_role("button", name="tlsprof", exact=True).click()
        entry = opened.page.locator('[data-testid="data-testid Dashboard link"]')
        entry.first.wait_for()
        entries = entry.evaluate_all("found => found.map(one => one.href)")
        assert len(entries) == len(BOARDS) - 1, "the others"
        for address in entries:
            other = address.split("/d/")[1].split("/")[0].split("?")[0]
            with visit(browser, address) as there:
                assert there.complaints == []
                assert without_data(other, there) <= set(EMPTY), address


def test_cells_lead_to_the_service_and_to_pages_that_are_there(dashboards, browser):
    with visit(browser, dashboards.board("tlsprof-overview", **WINDOW)) as opened:
        links = opened.panel("Findings").locator("a").evaluate_all("found => found.map(one => one.href)")
        pages = [link.split("/docs/")[1] for link in links if "/docs/" in link]
        assert pages and all((ROOT / "docs" / page).exists() for page in pages), pages
        opened.panel("Services with TLS").get_by_role("link", name=BUSIEST).first.click()
        opened.page.wait_for_url("**/d/tlsprof-service**")
        opened.settled()
        assert opened.values("service_name") == [BUSIEST]
        assert without_data("tlsprof-service", opened) <= set(EMPTY)


def test_the_fleet_has_no_metric_that_agents_have_not():
    assert unknown() == []
