"""The live page in a real browser, on an agent that profiles a real server."""

import json
import re
import shutil
import urllib.parse
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Iterator

import pytest

from harness import browser, metrics, servers
from harness.browser import Tab, tab
from harness.load import Load, Seen, run_load
from harness.network import free_port
from harness.paths import SELFTIMED
from harness.profiler import Agent, start_agent
from harness.together import together
from harness.waiting import wait_until
from harness.web_servers import nginx

SLOW, RESUMED, FAST = 240, 120, 150

HANDSHAKES = "tlsprof_handshakes_total"

JUDGED_SECONDS = 45.0
"""Services are judged each 15 s; three times that, on a busy machine."""

HOSTILE_NAME = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def chromium():
    with browser.launched() as launched:
        yield launched


@dataclass(frozen=True)
class Scene:
    """An agent, and a server that has had its load."""

    agent: Agent
    service: str
    seen: Seen

    @property
    def page(self) -> str:
        return self.agent.url.removesuffix("metrics")

    @property
    def selected(self) -> str:
        return f"{self.page}#service={self.service}"

    def state(self) -> dict[str, Any]:
        return state(self.agent, self.service)


def state(agent: Agent, service: str) -> dict[str, Any]:
    """What the page is told."""
    url = agent.url.removesuffix("metrics") + f"api/v1/state?service={service}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def scene(certificates, tmp_path_factory) -> Iterator[Scene]:
    """nginx that prefers P-384, and a server of a hostile name, each in a program of its own, and so
    in a service of its own."""
    folder = tmp_path_factory.mktemp("live-page")
    folder.chmod(0o755)
    rsa = certificates["rsa2048"]
    hostile = shutil.copy(SELFTIMED, folder / HOSTILE_NAME)
    extra = "ssl_ecdh_curve secp384r1:X25519;"
    starts = {"nginx": nginx(folder, rsa, workers=1, extra=extra)}
    starts["hostile"] = servers.selftimed("epoll", rsa, program=hostile)
    with together(starts) as running:
        server = running["nginx"]
        with start_agent() as agent:
            run_load(Load(full=20), running["hostile"].port)
            slow = Load(full=SLOW, resume=RESUMED, tls="1.3", groups="P-384:X25519")
            seen = [run_load(load, server.port) for load in (slow, Load(full=FAST, groups="X25519"))]
            service = service_on(agent, server.port)
            scene = Scene(agent, service, sum(seen, Seen.nothing()))
            wait_until(lambda: in_points(scene.state()) == scene.seen.completed, "all of the load")
            yield scene


def service_on(agent: Agent, port: int) -> str:
    """The name of the service that listens on `port`."""

    def found() -> list[str]:
        services = state(agent, "")["services"]
        return [one["service_name"] for one in services if port in one["ports"]]

    return wait_until(found, f"a service on port {port}", JUDGED_SECONDS)[0]


def sum_of(answer: dict[str, Any], beginning: str) -> float:
    """All that the history of the selected service holds in the columns of that beginning."""
    series = answer["selected"]["series"] or {"columns": {}}
    named = (values for name, values in series["columns"].items() if name.startswith(beginning))
    return sum(sum(values) for values in named)


def in_points(answer: dict[str, Any]) -> float:
    return sum_of(answer, "handshakes/server/completed/")


def wait_for_page(opened: Tab, service: str) -> None:
    opened.page.wait_for_selector('#status[data-state="live"]')
    opened.wait_until("name => document.querySelector('#service-heading').textContent === name", value=service)
    opened.page.wait_for_selector("#mixes table")


def test_the_history_is_what_metrics_count(scene):
    ours = {"service_name": scene.service, "role": "server"}
    samples = metrics.scrape(scene.agent.url)
    created = metrics.total(samples, "tlsprof_time_wait_created_total", **ours)
    # The last connection may have ended after its handshake's point.
    wait_until(lambda: sum_of(scene.state(), "time_wait_created/server") == created, "the last TIME_WAIT in a point")
    answer = scene.state()
    assert in_points(answer) == scene.seen.completed
    for column, name, labels in [
        ("handshakes/server/completed/none", HANDSHAKES, {"resumption": "none"}),
        ("handshakes/server/completed/psk", HANDSHAKES, {"resumption": "psk"}),
        ("opened/server", "tlsprof_connections_opened_total", {}),
        ("time_wait_created/server", "tlsprof_time_wait_created_total", {}),
    ]:
        counted = metrics.total(samples, name, **ours, **labels)
        assert sum_of(answer, column) == counted > 0, column
    cpu = metrics.total(samples, "tlsprof_service_cpu_seconds_total", service_name=scene.service)
    assert sum_of(answer, "cpu/") == pytest.approx(cpu, rel=0.05)


def test_tables_show_what_clients_and_metrics_count(scene, chromium):
    with tab(chromium, scene.selected) as opened:
        wait_for_page(opened, scene.service)
        seen = scene.seen
        assert [row[0::3] for row in opened.rows("TLS version")] == [["TLS1.3", str(seen.completed)]]
        resumption = {row[0]: row[3] for row in opened.rows("Resumption")}
        assert resumption == {"none (full)": str(seen.full), "psk": str(seen.resumed)}
        groups = {row[0]: row[3] for row in opened.rows("Key exchange group")}
        assert groups == {"secp384r1": str(SLOW + RESUMED), "x25519": str(FAST)}
        means = {row[0]: row[1] for row in opened.rows("CPU and wall time per completed handshake")}
        details = scene.state()["selected"]["details"]["service"]
        full = next(one for one in details["handshake_costs"] if one["resumption"] == "none")
        assert in_seconds(means["CPU, mean"]) == pytest.approx(full["cpu"]["mean"], rel=0.01)


def in_seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"µs": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def test_charts_have_their_figures_in_a_table(scene, chromium):
    with tab(chromium, scene.selected) as opened:
        wait_for_page(opened, scene.service)
        mean = {row[0]: float(row[2].removesuffix("/s")) for row in opened.rows("TLS handshakes")}
        # Over the same time, whichever it is; they are rounded to hundredths.
        seen = scene.seen
        assert mean["full"] / mean["resumed"] == pytest.approx(seen.full / seen.resumed, rel=0.1)
        shares = {row[0]: row[3] for row in opened.rows("CPU by activity") if row[3]}
        total = sum(float(share.strip("<%")) for share in shares.values())
        assert total == pytest.approx(100, abs=0.5), shares
        assert float(shares["TLS handshakes"].strip("%")) > 50


def test_a_person_chooses_theme_window_and_service_by_keyboard(scene, chromium):
    with tab(chromium, scene.page, theme="dark") as opened:
        opened.page.wait_for_selector("#service-list a")
        theme = "document.documentElement.dataset.theme"
        assert opened.page.evaluate(theme) == "dark"
        opened.page.focus("#theme")
        opened.page.keyboard.press("Enter")
        assert opened.page.evaluate(theme) == "light"
        opened.page.reload()
        opened.page.wait_for_selector("#service-list a")
        assert opened.page.evaluate(theme) == "light", "the choice is kept"
        opened.page.locator("#service-list a", has_text=scene.service).first.focus()
        opened.page.keyboard.press("Enter")
        wait_for_page(opened, scene.service)
        opened.page.focus('input[name="window"]:checked')
        opened.page.keyboard.press("ArrowRight")
        assert opened.page.locator('input[value="3600"]').is_checked()
        # What is focused stays focused while figures change under it.
        opened.page.wait_for_event("requestfinished")
        assert opened.page.evaluate("document.activeElement.value") == "3600"


def test_nobody_is_asked_while_nobody_looks(scene, chromium):
    with tab(chromium, scene.selected, own_clock=True) as opened:
        wait_for_page(opened, scene.service)
        hide = "hidden => {{ Object.defineProperty(document, 'hidden', {{ value: {0}, configurable: true }}); "
        hide += "document.dispatchEvent(new Event('visibilitychange')); }}"
        opened.page.evaluate(hide.format("true"))
        opened.page.wait_for_load_state("networkidle")
        before = len(opened.requests)
        # Several periods of the page's clock, and a request that comes after all that it made.
        opened.page.clock.run_for(int(10 * browser.SECONDS))
        with opened.page.expect_response("**/metrics"):
            opened.page.evaluate("fetch('/metrics').then(answer => answer.text())")
        made = opened.requests[before:]
        assert made[-1].endswith("/metrics") and len(made) <= 2, made
        opened.page.evaluate(hide.format("false"))
        wait_until_requests(opened, before + len(made) + 1)
        seen = len(opened.requests)
        opened.page.clock.run_for(int(10 * browser.SECONDS))
        wait_until_requests(opened, seen + 1)


def wait_until_requests(opened: Tab, number: int) -> None:
    while len(opened.requests) < number:
        opened.page.wait_for_event("request", timeout=30 * browser.SECONDS)


def test_names_of_services_are_text(scene, chromium):
    url = f"{scene.page}#service={urllib.parse.quote(HOSTILE_NAME)}"
    with tab(chromium, url) as opened:
        wait_for_page(opened, HOSTILE_NAME)
        assert HOSTILE_NAME in opened.texts("#service-list a")
        assert opened.page.locator("img").count() == 0


def test_the_address_holds_service_and_time_range(scene, chromium):
    url = f"{scene.page}#service={urllib.parse.quote(HOSTILE_NAME)}&window=3600"
    with tab(chromium, url) as opened:
        wait_for_page(opened, HOSTILE_NAME)
        chosen = opened.page.locator('input[name="window"]:checked')
        assert chosen.get_attribute("value") == "3600"
        opened.page.locator('input[value="300"]').check()
        opened.page.reload()
        wait_for_page(opened, HOSTILE_NAME)
        assert chosen.get_attribute("value") == "300"
        # The range stays when another service is chosen, and Back leads to the first.
        opened.page.locator("#service-list a", has_text=scene.service).first.click()
        wait_for_page(opened, scene.service)
        assert chosen.get_attribute("value") == "300"
        opened.page.go_back()
        wait_for_page(opened, HOSTILE_NAME)


def test_clients_and_services_without_tls_are_apart(scene, chromium):
    """The load generator runs on this host, beside services that do no TLS, such as the tests."""
    services = {one["service_name"]: one for one in scene.state()["services"]}
    clients = {name for name, one in services.items() if one["tls_roles"] == ["client"] and not one["ports"]}
    assert clients and scene.service not in clients
    with tab(chromium, scene.selected) as opened:
        wait_for_page(opened, scene.service)
        listed = opened.page.locator("#service-list > table a").all_text_contents()
        assert scene.service in listed and HOSTILE_NAME in listed
        group = opened.page.locator('#service-list .group[data-key="clients"]')
        assert not group.evaluate("element => element.open")
        assert set(group.locator("a").all_text_contents()) >= clients
        others = opened.page.locator('#service-list .group[data-key="others"] a').all_text_contents()
        assert not {scene.service, HOSTILE_NAME, *clients} & set(others)
        group.locator("summary").click()
        client = sorted(clients)[0]
        group.locator("a", has_text=client).first.click()
        opened.wait_until("name => document.querySelector('#service-heading').textContent === name", value=client)
        opened.page.wait_for_selector("#mixes table, #mixes .empty")
        assert state(scene.agent, client)["selected"]["details"]["findings"] == []
        assert opened.page.locator(".finding").count() == 0


WIDER = r"""() => {
    for (const cell of document.querySelectorAll("td.number:not(:has(*))")) {
        cell.textContent = cell.textContent.replace(/\d+/, (digits) => `8${digits}`);
    }
    const room = (element) => {
        const style = getComputedStyle(element);
        return element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    };
    return [...document.querySelectorAll("table")]
        .filter((table) => table.offsetWidth > room(table.parentElement))
        .map((table) => table.caption.textContent);
}"""
"""The tables that stick out where each number has a digit more."""


def test_numbers_of_busy_services_fit_a_phone(scene, chromium):
    with tab(chromium, scene.selected, 360) as opened:
        wait_for_page(opened, scene.service)
        assert opened.page.evaluate(WIDER) == []


@pytest.mark.parametrize("width", [1280, 360])
def test_a_finding_has_a_page(scene, chromium, width):
    with tab(chromium, f"{scene.page}findings/costly-certificate", width, site=scene.page) as opened:
        assert opened.page.locator("h1").inner_text() == "Costly certificate"
        assert not browser.violations(opened)
        assert not opened.beyond()
        opened.page.get_by_role("link", name="slow key exchange").click()
        assert opened.page.locator("h1").inner_text() == "Slow key exchange"


# Services are judged each 15 s: what waits for that comes last.


def test_a_finding_comes_with_its_remedy(scene, chromium):
    with tab(chromium, scene.selected) as opened:
        wait_for_page(opened, scene.service)
        finding = opened.page.locator(".finding", has_text="slow-key-exchange")
        # It may have been there before the load ended.
        whole = finding.filter(has_text=f"{SLOW + RESUMED} handshakes used P-384")
        whole.wait_for(state="attached", timeout=JUDGED_SECONDS * browser.SECONDS)
        text = finding.text_content()
        assert "ssl_ecdh_curve X25519" in finding.locator("pre").text_content()
        assert re.search(r"Would save [\d.]+% of its CPU", text), text
        if not finding.evaluate("element => element.open"):
            finding.locator("summary").first.click()
        assert finding.get_by_role("link").get_attribute("href") == "/findings/slow-key-exchange"
        estimate = finding.locator("details")
        assert not estimate.evaluate("element => element.open") and "Estimate: " in estimate.text_content()
        opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        finding.get_by_role("button").click()
        copied = opened.page.evaluate("navigator.clipboard.readText()")
        assert copied == finding.locator("pre").text_content()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_axe_finds_nothing(scene, chromium, theme, width):
    with tab(chromium, scene.selected, width, theme) as opened:
        wait_for_page(opened, scene.service)
        opened.page.wait_for_selector(".finding", timeout=JUDGED_SECONDS * browser.SECONDS)
        opened.page.evaluate("document.querySelectorAll('.finding, .finding details').forEach(one => { one.open = true; })")
        assert not browser.violations(opened)
        assert not opened.beyond()


@pytest.mark.long
def test_a_restart_of_the_agent_is_outlived_and_histories_do_not_mix(certificates, chromium):
    port = free_port()
    with servers.selftimed("epoll", certificates["rsa2048"]) as server, ExitStack() as stack:
        with start_agent(port=port) as agent:
            run_load(Load(full=40), server.port)
            service = service_on(agent, server.port)
            wait_until(lambda: in_points(state(agent, service)) == 40, "a point with the load")
            url = f"{agent.url.removesuffix('metrics')}#service={service}"
            opened = stack.enter_context(tab(chromium, url, agent_may_be_away=True))
            wait_for_page(opened, service)
            first = state(agent, service)["run"]
        opened.page.wait_for_selector('#status[data-state="lost"]', timeout=30 * browser.SECONDS)
        assert "trying again" in opened.page.text_content("#status")
        assert opened.rows("TLS version"), "what was known stays"
        with start_agent(port=port) as agent:
            opened.page.wait_for_selector('#status[data-state="live"]', timeout=30 * browser.SECONDS)
            assert state(agent, service)["run"] != first
            opened.wait_until(NO_HANDSHAKE, 60.0)
            run_load(Load(full=30), server.port)
            wait_until(lambda: in_points(state(agent, service)) == 30, "a point with the load")
            opened.wait_until(COUNTED, 60.0, "30")


NO_HANDSHAKE = """() => {
    const told = document.querySelector('#panel-handshakes').parentElement.querySelector('.empty');
    return document.querySelector('#charts').hidden || !told.hidden;
}"""
"""What is shown is that of an agent that has seen none."""

COUNTED = """number => [...document.querySelectorAll('#mixes table')].some(table =>
    table.caption.textContent === 'TLS version' && table.textContent.includes(number))"""
