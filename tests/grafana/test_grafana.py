"""The dashboards in a real Grafana and a real browser, over a made-up fleet."""

import re
from typing import Any
from urllib.parse import unquote_plus

import pytest
from fleet import BUSIEST, CHEAPER, unknown
from harness.dashboards import boards, panels
from harness.paths import ROOT
from visit import WINDOW, Visit, visit

PICTURES = ROOT / "target" / "pictures"
BOARDS = boards()
WIDTHS = (1600, 1000)

NOT_OF_A_SERVICE = {"Steps measured", "Firing alerts"}
"""Panels of Service about hosts."""


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


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("uid", BOARDS)
def test_every_panel_shows_data(uid, theme, dashboards, browser):
    PICTURES.mkdir(parents=True, exist_ok=True)
    with visit(browser, dashboards.board(uid, **WINDOW), theme, WIDTHS[0]) as opened:
        opened.open_rows()
        for width in WIDTHS:
            opened.resize(width)
            opened.picture(PICTURES / f"{uid}-{theme}-{width}.png")
            assert sorted(opened.titles()) == sorted(panel["title"] for panel in panels(BOARDS[uid]))
            assert without_data(uid, opened) == set()
            assert cut_off(opened) == []
        assert opened.complaints == []


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
        assert without_data("tlsprof-service", opened) == set()


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
                assert without_data(other, there) == set(), address


def test_cells_lead_to_the_service_and_to_pages_that_are_there(dashboards, browser):
    with visit(browser, dashboards.board("tlsprof-overview", **WINDOW)) as opened:
        for title in ("Findings", "Firing alerts"):
            links = opened.panel(title).locator("a").evaluate_all("found => found.map(one => one.href)")
            pages = [link.split("/docs/")[1] for link in links if "/docs/" in link]
            assert pages and all((ROOT / "docs" / page).exists() for page in pages), (title, pages)
        for title, missing in (
            # The alert is on another host.
            ("Services with TLS", {"Firing alerts"}),
            ("Findings", set()),
        ):
            opened.panel(title).get_by_role("link", name=BUSIEST).first.click()
            opened.page.wait_for_url("**/d/tlsprof-service**")
            opened.settled()
            assert opened.values("service_name") == [BUSIEST]
            assert without_data("tlsprof-service", opened) == missing
            opened.page.go_back()
            opened.settled()
        assert opened.complaints == []


FIGURES = (
    ("tlsprof-service", "Failed", "tlsprof-service", {"Alerts"}),
    ("tlsprof-agent-health", "Agents up", "tlsprof-agent-health", {"Agents by host"}),
    ("tlsprof-agent-health", "Missing", "tlsprof-agent-health", {"Missing capabilities"}),
    ("tlsprof-overview", "Hosts up", "tlsprof-agent-health", {"Agents by host"}),
    ("tlsprof-overview", "Least resumed", "tlsprof-service", {"Attempts to resume"}),
    ("tlsprof-overview", "Most failures", "tlsprof-service", {"Failed"}),
)
"""A figure of a dashboard, and what a click on it shows: panels of a dashboard."""
OF_A_SERVICE = {"Least resumed", "Most failures"}
"""Figures that name one."""


@pytest.mark.parametrize("uid, figure, other, shown", FIGURES, ids=[figure for _, figure, _, _ in FIGURES])
def test_figures_lead_to_what_explains_them(uid, figure, other, shown, dashboards, browser):
    with visit(browser, dashboards.board(uid, **WINDOW)) as opened:
        service = opened.text(figure).replace(figure, "", 1).split()[0]
        opened.panel(figure).locator("a").first.click()
        opened.page.wait_for_url(f"**/d/{other}/**")
        opened.panel(next(iter(shown))).wait_for()
        opened.settled()
        assert opened.complaints == []
        assert shown <= set(opened.titles())
        # One panel alone, or a whole page, of the service that the figure is of.
        assert uid != other or set(opened.titles()) == shown
        assert figure not in OF_A_SERVICE or opened.values("service_name") == [service]


CELLS = {
    ("tlsprof-overview", "Services with TLS"),
    ("tlsprof-overview", "Findings"),
    ("tlsprof-service", "Findings"),
    ("tlsprof-overview", "Firing alerts"),
    ("tlsprof-service", "Firing alerts"),
    ("tlsprof-load-test", "Load tests"),
}
"""Tables with links; Service has two of Overview's."""


def test_no_link_goes_untested():
    links = {
        (uid, panel["title"])
        for uid, board in BOARDS.items()
        for panel in panels(board)
        for override in panel["fieldConfig"]["overrides"]
        if any(entry["id"] == "links" for entry in override["properties"])
    }
    assert links == CELLS | {(uid, figure) for uid, figure, _, _ in FIGURES}


def test_overview_reads_raw_series_only_of_hosts_without_recorded_ones(dashboards, browser):
    with visit(browser, dashboards.board("tlsprof-overview", **WINDOW)) as opened:
        raw = [one for one in opened.expressions if "service:tlsprof_cpu:rate5m" in one]
        assert raw and all('instance=~"web-2:9843"' in one for one in raw)


def test_a_service_that_is_not_there_is_said_in_words(dashboards, browser):
    """Each panel says what no data means: the sentence, in a stat a dash."""
    nobody = {**WINDOW, "var-service_name": "nobody"}
    with visit(browser, dashboards.board("tlsprof-service", **nobody)) as opened:
        opened.open_rows()
        assert opened.complaints == []
        every = {panel["title"] for panel in panels(BOARDS["tlsprof-service"])}
        assert without_data("tlsprof-service", opened) == every - NOT_OF_A_SERVICE


def test_load_tests_are_compared(dashboards, browser):
    """At first the last two; what came between them is seen. Each can be chosen, and its time selected."""
    with visit(browser, dashboards.board("tlsprof-load-test", **WINDOW)) as opened:
        (after,), (before,) = opened.values("after"), opened.values("before")
        ends = [int(unquote_plus(value).split("@")[1]) for value in (after, before)]
        assert ends[0] - ends[1] == 15 * 60
        assert "Did it help? After: 20" in opened.page.content()
        change = re.search(r"change\s+(-[\d.]+)%", opened.text("CPU/request"))
        assert change and float(change[1]) == pytest.approx(100 * (CHEAPER - 1), abs=5)
        rows = opened.panel("Load tests").get_by_role("link")
        assert rows.count() == 2
        opened.picture(PICTURES / "load-tests.png")
        rows.first.click()
        opened.page.wait_for_url(re.compile(r"from=\d+"))
        opened.settled()
        assert without_data("tlsprof-load-test", opened) == set()


def test_without_load_tests_the_selected_time_is_compared_with_the_time_before(dashboards, browser):
    recent = {"from": "now-4m", "to": "now"}
    with visit(browser, dashboards.board("tlsprof-load-test", **recent)) as opened:
        assert unquote_plus(opened.values("after")[0]) == "[240s] @ end()"
        assert unquote_plus(opened.values("before")[0]) == "[240s] @ end() offset 240s"
        assert opened.complaints == []
        assert without_data("tlsprof-load-test", opened) == {"Load tests"}


def test_marks_of_load_tests_have_titles(dashboards, browser):
    with visit(browser, dashboards.board("tlsprof-load-test", **WINDOW)) as opened:
        mark = opened.panel("CPU over time").locator('[data-testid="data-testid annotation-marker"]').first
        mark.hover()
        opened.page.get_by_text("Load test on web-1:9843").first.wait_for()


def test_the_fleet_has_no_metric_that_agents_have_not():
    assert unknown() == []
