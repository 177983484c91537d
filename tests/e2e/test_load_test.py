"""The agent of a host exports when a load test runs that `tlsprof report` profiles."""

import os
import signal
import time
import urllib.parse
from typing import Iterator

import pytest
from harness import metrics
from harness.dashboards import boards
from harness.observatory import observatory
from harness.paths import TLSPROF
from harness.processes import Process
from harness.profiler import Agent, Profiling, start_agent
from harness.waiting import wait_until

pytestmark = pytest.mark.alone

RUNNING = "tlsprof_report_running"
BEGAN = "tlsprof_report_start_time_seconds"


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with start_agent() as running:
        yield running


def _says(agent_url: str, running: int) -> bool:
    return metrics.total(metrics.scrape(agent_url), RUNNING) == running


def test_the_agent_knows_of_load_tests(agent, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    assert _says(agent.url, 0)
    before = time.time()
    with Profiling(one):
        wait_until(lambda: _says(agent.url, 1), "the first load test")
        first = metrics.total(metrics.scrape(agent.url), BEGAN)
        assert before <= first <= time.time()
        with Profiling(other):
            wait_until(lambda: metrics.total(metrics.scrape(agent.url), BEGAN) > first, "the second")
        # One of two has ended.
        own = lambda: metrics.total(metrics.scrape(agent.url), "tlsprof_agent_cpu_seconds_total")
        told = own()
        wait_until(lambda: own() != told, "the agent's next word on itself")
        assert _says(agent.url, 1)
    wait_until(lambda: _says(agent.url, 0), "the end of both")
    assert metrics.total(metrics.scrape(agent.url), BEGAN) > first


def test_a_report_that_is_killed_runs_no_load_test(agent):
    command = ["sh", "-c", "echo $$ started; exec sleep 60"]
    with Process([TLSPROF, "report", "--", *command]) as report:
        child = int(report.wait_for_line("started", timeout=60.0).split()[0])
        try:
            wait_until(lambda: _says(agent.url, 1), "the load test")
            report.send(signal.SIGKILL)
            report.child.wait(10)
            # The command still runs, but nobody profiles it.
            os.kill(child, 0)
            wait_until(lambda: _says(agent.url, 0), "its end")
        finally:
            os.kill(child, signal.SIGKILL)


GRAFANA_STEP = 60
"""Seconds between two evaluations of an annotation's query, unless its dashboard says otherwise."""


def test_prometheus_has_start_and_end_and_the_dashboard_its_annotation(agent, tmp_path):
    (annotation,) = boards()["tlsprof-load-test"]["annotations"]["list"]
    expression = annotation["expr"]
    for variable in ("cluster", "job", "instance"):
        expression = expression.replace(f"${variable}", ".*")
    target = urllib.parse.urlsplit(agent.url).netloc
    with observatory(tmp_path / "prometheus", target, True) as prometheus:
        number = lambda metric: prometheus.number(metric, prometheus.last_scrape())
        wait_until(lambda: prometheus.query(RUNNING, prometheus.last_scrape()), "a scrape")
        assert number(RUNNING) == 0
        assert prometheus.query(expression, prometheus.last_scrape()) == []
        before = time.time()
        with Profiling(tmp_path):
            wait_until(lambda: number(RUNNING) == 1, "the load test")
            assert before <= number(BEGAN) <= time.time()
            assert prometheus.query(expression, prometheus.last_scrape())
        wait_until(lambda: number(RUNNING) == 0, "its end")
        ended = prometheus.last_scrape()
        # However short the test was, Grafana evaluates the query once while it gives a result.
        assert prometheus.query(expression, number(BEGAN) + GRAFANA_STEP)
        assert prometheus.query(expression, ended + GRAFANA_STEP) == []
