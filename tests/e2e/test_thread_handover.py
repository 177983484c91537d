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

from harness import metrics, other_stacks, scenarios, servers
from harness.certificates import Certificate
from harness.load import Load, run_load
from harness.processes import name_of_copy
from harness.profiler import Profiling, start_agent
from harness.scenarios import Profiled, http_client
from harness.steal import assert_agree, undisturbed, watch_steal

CONNECTIONS, THREADS = 50, 4
MADE = CONNECTIONS * THREADS
KEPT = 100
"""Requests on a connection that the finding predicts for."""
FINDING = "keep-alive-off"
SERVERS = {"tomcat": other_stacks.tomcat, "jetty": other_stacks.jetty}

AGREE = 0.10
WITHOUT_A_MEAN = 20
"""So many have to be in a single thread first, every other one."""
INTERRUPTED = 10
"""What a thread did before it lost its CPU is not seen: in one run of twelve, beside two busy loops, 2 of the later ones
were taken for offloaded. Without the rule it is all 80 of them."""
BETWEEN = 0.30
"""The server's clock leaves out how its threads wake up and wait for each other: 10 to 19% beside two busy loops. Without
the work of the thread that answers the figure would be half the truth."""
TAKEN_FOR_WHOLE = 24
"""Handshakes count as whole while at least one in eight so far proves it (`SHARE` in agent/evidence). Something that interrupts one may
give it the CPU time of one whose work was all seen, a false proof: three of them at the start excuse 24. None or one of 100 was taken
for whole in eight runs alone, 6 in one beside other tests; without the rule it is all."""


@dataclass(frozen=True)
class Scene:
    profiled: Profiled
    truth: float
    """CPU seconds of a handshake by the server's own clocks."""
    by_agent: list[metrics.Sample]
    kept: float
    """CPU seconds of a request with so many on a connection."""
    stolen: float
    """The share of the CPU time that the hypervisor took while handshakes were profiled."""


@contextmanager
def scene(name: str, folder, certificate: Certificate) -> Iterator[Scene]:
    load = http_client(CONNECTIONS, certificate.cert, "--no-keep-alive", threads=THREADS)
    keeping = http_client(KEPT, certificate.cert, threads=THREADS)
    with SERVERS[name](folder, certificate) as (server, plain):
        load(server.port)
        keeping(server.port)
        kept = scenarios.spend(server, keeping).each

        def measure() -> Scene:
            with start_agent(["--service", name_of_copy("java", folder)]) as agent:
                before, steal = other_stacks.engine_times(plain), watch_steal()
                profiled = scenarios.profile(folder, server, load, *scenarios.sampled_often(folder))
                after, stolen = other_stacks.engine_times(plain), steal()
                by_agent = metrics.scrape(agent.url)
            assert after["engines"] - before["engines"] == MADE
            return Scene(profiled, (after["handshake"] - before["handshake"]) / MADE / 1e9, by_agent, kept, stolen)

        # Handshakes are 94% of its CPU time: with what is stolen, which their clocks have in them, it would be all.
        seen = undisturbed(measure)
    yield seen


@pytest.mark.parametrize("name", ["jetty", pytest.param("tomcat", marks=pytest.mark.long)])
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
    by_clock = {
        "headline": service.cpu_seconds(role="server") / MADE,
        "histogram": by_agent("tlsprof_handshake_cpu_seconds_sum") / MADE,
        "outcomes": by_agent("tlsprof_handshake_outcome_cpu_seconds_total") / MADE,
    }
    by_samples = {
        "activity": seen.profiled.share_of("handshake") * whole / MADE,
        "unit cost": unit["cpu_seconds"],
    }
    for figure, seconds in by_clock.items():
        assert_agree(seconds, seen.truth, AGREE, seen.stolen, figure, by_clock, by_samples)
    for figure, seconds in by_samples.items():
        assert seconds == pytest.approx(seen.truth, rel=AGREE), (figure, seen.truth, by_clock, by_samples)

    saved = seen.profiled.spent.each - seen.kept
    assert seen.profiled.saving(FINDING) == pytest.approx(saved, rel=scenarios.TOLERANCE)


@pytest.mark.parametrize("way", ["answered", "offloaded"])
def test_work_of_a_third_thread_is_told_from_a_wait_for_a_cpu(way, rsa, tmp_path):
    """Whether all CPU time of a handshake was seen is told from what others took in a single thread."""
    config = tmp_path / "tlsprof.toml"
    config.write_text('[profile]\nlibrary = "off"\n')
    with servers.python(tmp_path, "handing_server.py", rsa, way) as server:
        with Profiling(tmp_path, "--config", config) as profiling:
            steal = watch_steal()
            run_load(Load(full=MADE, tls="1.3", threads=1), server.port)
            stolen = steal()
        service = profiling.report.on_port(server.port)
        lines = [line.split() for line in server.process.stdout.splitlines() if "seconds" in line]
    read, computed, sent = ([float(line[at]) for line in lines] for at in (1, 2, 3))
    (group,) = service.groups(role="server")
    assert (len(lines), group["count"], group["outcome"]) == (MADE, MADE, "completed")
    (seen,) = service.data["socket_handshakes"]
    truth = sum(read + computed + sent)
    if way == "answered":
        assert group["offloaded"] <= WITHOUT_A_MEAN + INTERRUPTED
        assert_agree(seen["first_flight_seconds"], truth, BETWEEN, stolen)
    else:
        assert group["offloaded"] >= MADE // 2 - TAKEN_FOR_WHOLE
        assert service.data["handshake_cpu_is_lower_bound"]
        assert seen["first_flight_seconds"] < truth / (1 - stolen)
