"""Servers whose threads hand connections over: one reads a ClientHello and does the work, another one
writes the answer (Tomcat, and so Spring Boot; Jetty). What a handshake costs is known all the same, and
every figure says the same.

The truth is the CPU time of the calls to each TLS engine, measured by the server itself. What a connection
costs with TLS less what it costs without is no measure of it: here it is 4 to 10 points of the share more.
Making and closing an engine and its session tickets are 1 to 2 of these; most is in threads that do no TLS
(Tomcat's poller and acceptor, the compiler and collector of the virtual machine)."""

import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Iterator

import pytest

from harness import metrics, other_stacks, scenarios
from harness.certificates import Certificate
from harness.processes import name_of_copy
from harness.profiler import start_agent
from harness.scenarios import Profiled, http_client

pytestmark = pytest.mark.alone

CONNECTIONS, THREADS = 50, 4
MADE = CONNECTIONS * THREADS
KEPT = 100
"""Requests on a connection that the finding predicts for."""
FINDING = "keep-alive-off"
SERVERS = {"tomcat": other_stacks.tomcat, "jetty": other_stacks.jetty}

AGREE = 0.10


@dataclass(frozen=True)
class Scene:
    profiled: Profiled
    truth: float
    """CPU seconds of a handshake by the server's own clocks."""
    by_agent: list[metrics.Sample]
    kept: float
    """CPU seconds of a request with so many on a connection."""


@contextmanager
def scene(name: str, folder, certificate: Certificate) -> Iterator[Scene]:
    load = http_client(CONNECTIONS, certificate.cert, "--no-keep-alive", threads=THREADS)
    keeping = http_client(KEPT, certificate.cert, threads=THREADS)
    with SERVERS[name](folder, certificate) as (server, plain):
        load(server.port)
        keeping(server.port)
        kept = scenarios.spend(server, keeping).each
        with start_agent(["--service", name_of_copy("java", folder)]) as agent:
            before = other_stacks.engine_times(plain)
            profiled = scenarios.profile(folder, server, load, *scenarios.sampled_often(folder))
            after = other_stacks.engine_times(plain)
            by_agent = metrics.scrape(agent.url)
    assert after["engines"] - before["engines"] == MADE
    yield Scene(profiled, (after["handshake"] - before["handshake"]) / MADE / 1e9, by_agent, kept)


@pytest.mark.parametrize("name", SERVERS)
def test_every_figure_of_handshakes_is_what_the_engines_measured(name, rsa, tmp_path):
    if not shutil.which("mvn"):
        pytest.skip("not installed: mvn, which brings Tomcat and Jetty")
    with scene(name, tmp_path, rsa) as seen:
        service = seen.profiled.service
    groups = list(service.groups(role="server", outcome="completed"))
    assert sum(group["count"] for group in groups) == MADE == service.count(role="server")
    assert sum(group["offloaded"] for group in groups) <= MADE / 10, groups

    whole = sum(service.data["cpu_seconds"].values())
    (unit,) = [cost for cost in service.data["unit_costs"] if cost["unit"] == "handshake"]
    by_agent = lambda metric: metrics.total(seen.by_agent, metric, service_name=service.name, role="server")
    assert by_agent("tlsprof_handshakes_total") == MADE
    each = {
        "headline": service.cpu_seconds(role="server") / MADE,
        "activity": seen.profiled.share_of("handshake") * whole / MADE,
        "unit cost": unit["cpu_seconds"],
        "histogram": by_agent("tlsprof_handshake_cpu_seconds_sum") / MADE,
        "outcomes": by_agent("tlsprof_handshake_outcome_cpu_seconds_total") / MADE,
    }
    for figure, seconds in each.items():
        assert seconds == pytest.approx(seen.truth, rel=AGREE), (figure, seen.truth, each)

    saved = seen.profiled.spent.each - seen.kept
    assert seen.profiled.saving(FINDING) == pytest.approx(saved, rel=scenarios.TOLERANCE)
