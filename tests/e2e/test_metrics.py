"""The agent's metrics, read by a parser of ours, by promtool and by Prometheus."""

import urllib.parse
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Iterator

import pytest

from harness import metrics, servers
from harness.certificates import Certificate
from harness.load import Load, Seen, run_load
from harness.paths import SELFTIMED
from harness.processes import name_of_copy, private_copy
from harness.profiler import Agent, start_agent
from harness.servers import SelfTimed
from harness.steal import watch_steal
from harness.waiting import wait_until

LOADS = [Load(tls=tls, full=100, resume=100, garbage=10, abort_flight=10) for tls in ("1.2", "1.3")]
HANDSHAKES = "tlsprof_handshakes_total"
CPU = "tlsprof_handshake_cpu_seconds"


@pytest.fixture(scope="module")
def agent(tmp_path_factory) -> Iterator[Agent]:
    config = tmp_path_factory.mktemp("metrics") / "tlsprof.toml"
    # Without a budget: the kind of resumption is known for every handshake.
    config.write_text('[agent]\nbudget = 1.0\n[profile]\nsteps = "always"\n')
    with start_agent(["--config", config]) as running:
        yield running


def selftimed(form: str, rsa: Certificate, folder: Path) -> AbstractContextManager[SelfTimed]:
    """Each is a service of its own."""
    return servers.selftimed(form, rsa, program=private_copy(str(SELFTIMED), folder))


def test_metrics_equal_the_clients_counts(agent, rsa, tmp_path):
    with selftimed("epoll", rsa, tmp_path) as server:
        steal = watch_steal()
        seen = sum((run_load(load, server.port) for load in LOADS), start=Seen.nothing())
        stolen = steal()
        ours = dict(service_name=name_of_copy(SELFTIMED, tmp_path), role="server")
        wait_until(
            lambda: metrics.total(metrics.scrape(agent.url), HANDSHAKES, **ours) >= seen.completed + 40,
            "all handshakes in the metrics",
        )
        samples = metrics.scrape(agent.url)
        measured = server.finish()

    for outcome, count in measured.outcomes.items():
        assert metrics.total(samples, HANDSHAKES, outcome=outcome, **ours) == count
    completed = dict(outcome="completed", **ours)
    assert metrics.total(samples, HANDSHAKES, resumption="psk", **completed) == LOADS[1].resume
    assert metrics.total(samples, HANDSHAKES, resumption="ticket", **completed) == LOADS[0].resume
    assert metrics.total(samples, f"{CPU}_count", **ours) == measured.completed
    assert 0 < metrics.total(samples, f"{CPU}_sum", **ours) < measured.cpu_seconds * 1.1 / (1 - stolen)


def test_formats_are_what_prometheus_reads(agent, rsa, tmp_path):
    with selftimed("epoll", rsa, tmp_path) as server:
        run_load(Load(full=20, resume=20), server.port)
        openmetrics = metrics.fetch(agent.url, metrics.OPENMETRICS)
        plain = metrics.fetch(agent.url, metrics.PLAIN_TEXT)
    assert openmetrics[0].startswith("application/openmetrics-text")
    assert metrics.parse(openmetrics[1])
    assert plain[0].startswith("text/plain") or plain[0].startswith("application/openmetrics-text")
    metrics.promtool_check(plain[1])


def test_a_prometheus_counts_the_same(agent, rsa, tmp_path):
    ours = f'service_name="{name_of_copy(SELFTIMED, tmp_path)}",role="server"'
    handshakes = f'sum({HANDSHAKES}{{{ours},outcome="completed"}})'
    native = f"sum(histogram_count({CPU}{{{ours}}}))"
    with selftimed("threads", rsa, tmp_path) as server:
        target = urllib.parse.urlsplit(agent.url).netloc
        with metrics.prometheus(tmp_path, target) as prometheus:
            seen = run_load(Load(full=150, resume=150), server.port)
            for expression in (handshakes, native):
                wait_until(
                    lambda: prometheus.query(expression) == seen.completed,
                    f"{expression} to become {seen.completed}",
                )
