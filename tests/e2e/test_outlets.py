"""Every outlet says the same of the same servers: counts, rates, CPU time, and the share of handshakes.

Servers of many kinds run side by side under a paced load, and profilers of several settings watch them
all at once. Counts are those of the client and rates those of its log; CPU time is that of the kernel's
clock for a process; what a connection takes besides its handshake is measured at the same pace."""

import os
import time
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping

import pytest

from harness import estimate, metrics, other_stacks, outlets, web_servers
from harness.estimate import Besides
from harness.load import Load, Seen, run_load
from harness.metrics import Sample
from harness.outlets import IN_TEXT
from harness.profiler import Agent, Report
from harness.servers import Server
from harness.steal import watch_steal
from harness.targets import TARGETS
from harness.together import own_folder, side_by_side, together
from harness.waiting import wait_until
from harness.watching import Watching

pytestmark = pytest.mark.host

RATE = 15
"""Connections a second, to each server."""
CONNECTIONS = 14 * RATE
WARM_UP = 20
COMPILES = {"node": 150, "java": 150}
"""Those that compile as they go are left to it first."""
INTERVAL_SECONDS = 5
EDGES = 10
"""Handshakes at one end of a window that have begun and are not counted: four threads of the client may each be
in one, and the agent takes evidence ten times a second."""
RATES_AGREE = 0.2
"""Over the whole load of 14 s: an interval ends with a reading, of which there is one each second. It may be longer by
that at one end of the load and not at the other, and on a busy machine by a second more or two."""
TICKS = 0.02
"""CPU seconds for each process: the kernel shows user and system time in whole ticks of 10 ms."""
CPU_AGREES = 0.03
AGREE = 0.10
ESTIMATE_AGREES = 0.15
"""It is of another time: beside other work, the same requests take more or less."""
PROFILERS_AGREE = 0.03
"""Of one setting, beside each other. They were up to 1.3% apart in 88 comparisons."""
SIGMAS = 5
"""Of the error of samples: there are 33 comparisons."""
SETTLED_SECONDS = 120.0

STARTS = {
    **{name: TARGETS[name].start for name in ("nginx", "haproxy", "node", "stunnel", "go", "rustls")},
    **{name: TARGETS[name].start for name in ("gnutls-serv", "selfserv")},
    "apache": lambda *where: web_servers.apache(*where, "event", extra="KeepAlive On\nMaxKeepAliveRequests 0"),
    "java": lambda *where: other_stacks.java(*where, options=["-XX:TieredStopAtLevel=1"]),
    "static": lambda *where: other_stacks.static_http(*where, options=["--requests", 100_000]),
}
KINDS = [name for name in STARTS if name not in TARGETS or not TARGETS[name].missing]
PROCESSES = {"nginx": 3, "apache": 3}
BESIDES = {name: "/" for name in ("nginx", "apache", "haproxy", "static")}
BESIDES |= {name: "" for name in ("gnutls-serv", "selfserv", "rustls") if name in KINDS}
"""For which path servers keep connections open; empty for those that do not. stunnel is not among them, which
connects to its backend only for a new connection, nor Go, whose scheduler's own thread (a tenth of the CPU
time by perf) is awake as long as handshakes compute, nor those that compile as they go: what a request
costs Java halves within a minute, and a bare connection costs Node.js a sixth more or less each time."""

OFTEN = "sample_frequency = 997\n"
SETTINGS = {
    "default": OFTEN,
    "steps-off": f'{OFTEN}steps = "off"',
    "library-off": f'{OFTEN}library = "off"',
    "samples-off": "sample_frequency = 0",
}
SAMPLED = [name for name in SETTINGS if name != "samples-off"]

SCENES = [name if name == "default" else pytest.param(name, marks=pytest.mark.long) for name in SETTINGS]
"""By the setting of report and `top`; each has an agent of every setting."""


@dataclass(frozen=True)
class Told:
    """What the outlets of one agent say about a service."""

    samples: list[Sample]
    live: dict[str, Any]


@dataclass(frozen=True)
class Paced:
    """What a client saw, when it began each connection, and what they took of the server's CPU time."""

    seen: Seen
    begun: list[float]
    cpu: float

    def begun_between(self, first: float, last: float) -> int:
        return bisect_left(self.begun, last) - bisect_left(self.begun, first)


@dataclass(frozen=True)
class Scene:
    watched: str
    """The setting of report and `top`."""
    paced: Mapping[str, Paced]
    besides: Mapping[str, Besides]
    names: Mapping[str, str]
    told: Mapping[tuple[str, str], Told]
    """By setting and server."""
    scrapes: list[tuple[float, float, list[Sample]]]
    """Of that setting, while the load ran: when each was asked for, and when it was there."""
    screens: list[str]
    """The list of `top` in each of its intervals, from before the load to after it."""
    stolen: float
    """The share of the CPU time that the hypervisor took meanwhile."""
    report: Report
    text: str
    top: Mapping[str, str]
    """Its pages on handshakes, by server."""


def load(folder: Path, kind: str, server: Server) -> Paced:
    log = folder / f"{kind}.begun"
    before = estimate.cpu_seconds(server.pid)
    seen = run_load(Load(full=CONNECTIONS, tls="1.3", rate=RATE, log=log), server.port)
    times = sorted(map(float, log.read_text().split()))
    return Paced(seen, times, estimate.cpu_seconds(server.pid) - before)


Servers = Mapping[str, Server]


def under_load(folder: Path, servers: Servers, twins: Servers, watching: Watching):
    """The load, and on servers of their own all of it but handshakes, with what is read meanwhile."""
    scrapes, screens, steal = [], {}, watch_steal()

    def look() -> int:
        screen = watching.top.screen()
        interval = outlets.elapsed_of(screen) // INTERVAL_SECONDS
        screens[interval] = screen
        return interval

    besides = lambda kind: estimate.measure_besides(twins[kind], BESIDES[kind], RATE, CONNECTIONS)
    with ThreadPoolExecutor(2) as pool:
        others = pool.submit(side_by_side, besides, twins, len(twins))
        loads = pool.submit(side_by_side, lambda kind: load(folder, kind, servers[kind]), servers, len(servers))
        while not loads.done():
            time.sleep(1.0)
            asked = time.monotonic()
            samples = metrics.scrape(watching.agents[watching.watched].url)
            scrapes.append((asked, time.monotonic(), samples))
            now = look()
        # It shows an interval in the next one, and takes the last handshakes a little later.
        wait_until(lambda: look() >= now + 2, "the whole load in intervals of `top`")
    return loads.result(), others.result(), scrapes, list(screens.values()), steal()


def settle(agent: Agent, names: Mapping[str, str]) -> None:
    """Once all is in the history of the live page, its last point closed."""

    def is_in() -> bool:
        found = (outlets.in_live_page(outlets.live_state(agent, name)) for name in names.values())
        return all(one.completed >= CONNECTIONS for one in found)

    wait_until(is_in, "the load in the live page", SETTLED_SECONDS)


def told(agent: Agent, name: str, samples: list[Sample]) -> Told:
    return Told(samples, outlets.live_state(agent, name))


@pytest.fixture(scope="module", params=SCENES)
def scene(request, rsa, tmp_path_factory) -> Iterator[Scene]:
    watched = request.param
    folder = tmp_path_factory.mktemp("outlets")
    folder.chmod(0o755)
    homes = {(kind, twin): own_folder(folder, kind, twin, os.getpid()) for kind in KINDS for twin in ("new", "open")}
    starts = {key: STARTS[key[0]](home, rsa) for key, home in homes.items() if key[1] == "new" or key[0] in BESIDES}
    with ExitStack() as stack:
        running = stack.enter_context(together(starts))
        servers, twins = ({kind: one for (kind, twin), one in running.items() if twin == of} for of in ("new", "open"))
        warm_up = lambda key: run_load(Load(full=COMPILES.get(key[0], WARM_UP), tls="1.3"), running[key].port)
        side_by_side(warm_up, running)
        programs = [Path(f"/proc/{server.pid}/exe").readlink().name for server in servers.values()]
        watching = Watching(folder, stack, SETTINGS, watched, programs, INTERVAL_SECONDS)
        paced, besides, scrapes, screens, stolen = under_load(folder, servers, twins, watching)
        watching.report.finish()
        watching.text.finish()
        report = watching.report.report
        names = {kind: report.on_port(server.port).name for kind, server in servers.items()}
        for agent in watching.agents.values():
            settle(agent, names)
        by_agent = {
            (setting, kind): told(agent, name, samples)
            for setting, agent in watching.agents.items()
            for samples in [metrics.scrape(agent.url)]
            for kind, name in names.items()
        }
        pages = {kind: watching.page(name, CONNECTIONS) for kind, name in names.items()}
        text = watching.text.text
        yield Scene(watched, paced, besides, names, by_agent, scrapes, screens, stolen, report, text, pages)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_metrics_and_live_page_count_what_the_client_did(scene, setting, kind):
    told, name = scene.told[setting, kind], scene.names[kind]
    for figures in (outlets.in_metrics(told.samples, name), outlets.in_live_page(told.live)):
        assert (figures.handshakes, figures.completed) == (CONNECTIONS, CONNECTIONS)


@pytest.mark.parametrize("kind", KINDS)
def test_reports_and_top_count_what_the_client_did(scene, kind):
    name = scene.names[kind]
    assert scene.paced[kind].seen.completed == CONNECTIONS
    report = outlets.in_report(scene.report.service(name))
    assert (report.handshakes, report.completed) == (CONNECTIONS, CONNECTIONS)
    assert outlets.row_of(scene.text, name).handshakes == CONNECTIONS
    shown = IN_TEXT.search(scene.top[kind])
    assert [int(shown.group(at)) for at in (1, 3, 4, 5)] == [CONNECTIONS, CONNECTIONS, 0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_rates_are_those_of_the_client(scene, kind):
    """Between two scrapes, in the points of the live page, and in the intervals of `top`.

    On a busy machine a scrape shows fewer handshakes than have begun, never more: of the first and of the
    last third those that are least behind are compared.
    """
    paced, name = scene.paced[kind], scene.names[kind]
    counted = [(*when, outlets.in_metrics(samples, name).handshakes) for *when, samples in scene.scrapes]
    under_way = [one for one in counted if 0 < one[-1] < CONNECTIONS]
    behind = lambda scrape: sum(begun <= scrape[1] for begun in paced.begun) - scrape[-1]
    third = len(under_way) // 3
    first, last = (min(some, key=behind) for some in (under_way[:third], under_way[-third:]))
    assert last[0] - first[1] > CONNECTIONS / RATE / 4
    # What a scrape counts is of a moment between the question and the answer.
    least, greatest = paced.begun_between(first[1], last[0]), paced.begun_between(first[0], last[1])
    assert least - EDGES <= last[-1] - first[-1] <= greatest + EDGES
    series = scene.told[scene.watched, kind].live["selected"]["series"]
    rows = zip(*(row for column, row in series["columns"].items() if column.startswith("handshakes/server")))
    in_points = [count / length for count, length in zip(map(sum, rows), series["lengths"])]
    in_top = [row.per_second for row in rows_of_top(scene, kind)]
    for rates in (in_points, in_top):
        assert sum(rates) * INTERVAL_SECONDS == pytest.approx(CONNECTIONS, rel=RATES_AGREE)


def rows_of_top(scene: Scene, kind: str) -> list[outlets.Now]:
    """Of each interval; there is none of a server until the first has ended."""
    name = scene.names[kind]
    return [outlets.now_of(screen, name) for screen in scene.screens if f" {name} " in screen]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_cpu_time_is_what_the_kernel_says(scene, setting, kind):
    """All outlets read it in ticks."""
    expected, name = scene.paced[kind].cpu, scene.names[kind]
    told = scene.told[setting, kind]
    of_report = scene.report.service(name)
    figures = [outlets.in_metrics(told.samples, name), outlets.in_live_page(told.live), outlets.in_report(of_report)]
    for cpu in (*(one.cpu for one in figures), outlets.row_of(scene.text, name).cpu):
        assert abs(cpu - expected) <= CPU_AGREES * expected + TICKS * PROCESSES.get(kind, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_outlets_say_the_same_share(scene, setting, kind):
    """As far as figures are rounded, and programs of six other profilers run at each call."""
    told, name = scene.told[setting, kind], scene.names[kind]
    figures, live = outlets.in_metrics(told.samples, name), outlets.in_live_page(told.live)
    assert live.handshake_cpu == pytest.approx(figures.handshake_cpu, rel=1e-6)
    ways = outlets.shares_in_metrics(told.samples, name)
    assert ways == pytest.approx({way: figures.share for way in ways}, rel=1e-6)
    if setting == scene.watched:
        report, row = outlets.in_report(scene.report.service(name)), outlets.row_of(scene.text, name)
        assert report.handshake_cpu == pytest.approx(figures.handshake_cpu, rel=PROFILERS_AGREE)
        assert row.handshake_cpu == pytest.approx(figures.handshake_cpu, rel=PROFILERS_AGREE)
        assert row.share == pytest.approx(row.handshake_cpu / row.cpu, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("setting", SAMPLED)
def test_samples_say_the_same_share(scene, setting, kind):
    told, name = scene.told[setting, kind], scene.names[kind]
    by_activity, counts = (outlets.by_samples(told.samples, one, name) for one in (outlets.ACTIVITIES, outlets.SAMPLES))
    share = by_activity["handshake"] / sum(by_activity.values())
    error = (share * (1 - share) / sum(counts.values())) ** 0.5
    known = outlets.in_metrics(told.samples, name).handshake_cpu / scene.paced[kind].cpu
    uncertain = AGREE * known + SIGMAS * error
    assert known * (1 - scene.stolen) - uncertain <= share <= known + uncertain


@pytest.mark.parametrize("kind", KINDS)
def test_top_shows_the_share_of_tls(scene, kind):
    """Over the load, as far as its samples are other ones than those of the agent."""
    name = scene.names[kind]
    rows = rows_of_top(scene, kind)
    assert rows
    if scene.watched not in SAMPLED:
        assert [one.tls for one in rows] == [None] * len(rows)
        return
    samples = scene.told[scene.watched, kind].samples
    by_activity, counts = (outlets.by_samples(samples, one, name) for one in (outlets.ACTIVITIES, outlets.SAMPLES))
    known = (by_activity["handshake"] + by_activity["encryption"]) / sum(by_activity.values())
    error = (2 * known * (1 - known) / sum(counts.values())) ** 0.5
    busy = [one for one in rows if one.tls is not None]
    shown = sum(one.cores * one.tls for one in busy) / sum(one.cores for one in busy)
    assert abs(shown - known) <= AGREE * known + SIGMAS * error


@pytest.mark.parametrize("kind", BESIDES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_an_estimate_without_tlsprof_says_the_same_share(scene, setting, kind):
    """CPU time of new connections, less that of the same requests on open ones."""
    paced = scene.paced[kind]
    least, greatest = scene.besides[kind].bounds(paced.cpu / CONNECTIONS)
    share = outlets.in_metrics(scene.told[setting, kind].samples, scene.names[kind]).handshake_cpu / paced.cpu
    assert least * (1 - ESTIMATE_AGREES) <= share <= greatest / (1 - scene.stolen)
