"""The agent's metrics, read by a parser of ours, by promtool and by Prometheus."""

import urllib.parse

from harness import metrics, servers
from harness.load import Load, Seen, run_load
from harness.profiler import start_agent
from harness.waiting import wait_until

LOADS = [Load(tls=tls, full=100, resume=100, garbage=10, abort_flight=10) for tls in ("1.2", "1.3")]
HANDSHAKES = "tlsprof_handshakes_total"
CPU = "tlsprof_handshake_cpu_seconds"


def test_metrics_equal_the_clients_counts(rsa, tmp_path):
    config = tmp_path / "tlsprof.toml"
    # Without a budget: the kind of resumption is known for every handshake.
    config.write_text('[profile]\nsteps = "always"\n')
    with start_agent(["--config", config]) as agent, servers.selftimed("epoll", rsa) as server:
        seen = sum((run_load(load, server.port) for load in LOADS), start=Seen.nothing())
        ours = dict(service_name="selftimed", role="server")
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
    assert 0 < metrics.total(samples, f"{CPU}_sum", **ours) < measured.cpu_seconds * 1.1


def test_formats_are_what_prometheus_reads(rsa):
    with start_agent() as agent, servers.selftimed("epoll", rsa) as server:
        run_load(Load(full=20, resume=20), server.port)
        openmetrics = metrics.fetch(agent.url, metrics.OPENMETRICS)
        plain = metrics.fetch(agent.url, metrics.PLAIN_TEXT)
    assert openmetrics[0].startswith("application/openmetrics-text")
    assert metrics.parse(openmetrics[1])
    assert plain[0].startswith("text/plain") or plain[0].startswith("application/openmetrics-text")
    metrics.promtool_check(plain[1])


def test_a_prometheus_counts_the_same(rsa, tmp_path):
    handshakes = f'sum({HANDSHAKES}{{service_name="selftimed",role="server",outcome="completed"}})'
    native = f'sum(histogram_count({CPU}{{service_name="selftimed",role="server"}}))'
    with start_agent() as agent, servers.selftimed("threads", rsa) as server:
        target = urllib.parse.urlsplit(agent.url).netloc
        with metrics.prometheus(tmp_path, target) as prometheus:
            seen = run_load(Load(full=150, resume=150), server.port)
            for expression in (handshakes, native):
                wait_until(
                    lambda: prometheus.query(expression) == seen.completed,
                    f"{expression} to become {seen.completed}",
                    timeout=20.0,
                )
