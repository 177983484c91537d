"""The agent of a host exports when a load test runs that `tlsprof report` profiles."""

import math
import os
import re
import signal
import time
import urllib.parse
from typing import Iterator

import pytest
from harness import metrics
from harness.dashboards import boards, filled
from harness.observatory import Observatory, observatory
from harness.paths import TLSPROF
from harness.processes import Process
from harness.profiler import Agent, Profiling, start_agent
from harness.waiting import wait_until

pytestmark = pytest.mark.host

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
            report.child.wait(60)
            # The command still runs, but nobody profiles it.
            os.kill(child, 0)
            wait_until(lambda: _says(agent.url, 0), "its end")
        finally:
            os.kill(child, signal.SIGKILL)


GRAFANA_STEP = 60
"""Seconds between two evaluations of an annotation's query, unless its dashboard says otherwise."""


def test_prometheus_has_start_and_end_and_the_dashboard_its_annotation(agent, tmp_path):
    annotation = boards()["tlsprof-load-test"]["annotations"]["list"][0]
    expression = annotation["expr"]
    for variable in ("cluster", "job", "instance"):
        expression = expression.replace(f"${variable}", ".*")
    target = urllib.parse.urlsplit(agent.url).netloc
    with observatory(tmp_path / "prometheus", target, True) as prometheus:
        scraped = lambda: wait_until(prometheus.last_scrape, "a scrape")
        number = lambda metric: prometheus.number(metric, scraped())
        assert number(RUNNING) == 0
        assert prometheus.query(expression, scraped()) == []
        before = time.time()
        with Profiling(tmp_path):
            wait_until(lambda: number(RUNNING) == 1, "the load test")
            assert before <= number(BEGAN) <= time.time()
            seen = scraped()
            assert prometheus.query(expression, seen)
        wait_until(lambda: number(RUNNING) == 0, "its end")
        ended = scraped()
        # However short the test was, Grafana evaluates the query once while it gives a result. A scrape has the time at
        # which it was asked for, which may be before the load test that it saw.
        assert prometheus.query(expression, seen + GRAFANA_STEP - 0.001)
        assert prometheus.query(expression, ended + GRAFANA_STEP) == []


def _choices(prometheus: Observatory, variable: str, at: float, after: str = "") -> dict[str, str]:
    """What the dashboard lets one choose: the range of each text."""
    every = boards()["tlsprof-load-test"]["templating"]["list"]
    (found,) = [one for one in every if one["name"] == variable]
    values = {"cluster": ".*", "job": ".*", "instance": ".*", "__range": "10m", "after": after}
    expression = filled(re.fullmatch(r"query_result\((.*)\)", found["query"]["query"])[1], values)
    rows = prometheus.query(expression, at)
    # As Grafana writes a row, which its regular expression reads.
    texts = [",".join(f'{name}="{value}"' for name, value in sorted(row.labels.items())) for row in rows]
    pattern = re.compile(found["regex"].strip("/").replace("(?<", "(?P<"))
    return {match["text"]: match["value"] for match in map(pattern.search, texts)}


@pytest.mark.long
def test_load_tests_can_be_chosen(agent, tmp_path):
    """By the time at which they ran, with a range of PromQL that holds them."""
    target = urllib.parse.urlsplit(agent.url).netloc
    with observatory(tmp_path / "prometheus", target, True) as prometheus:
        scraped = lambda: wait_until(prometheus.last_scrape, "a scrape")
        number = lambda metric: prometheus.number(metric, scraped())
        begins = []
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            with Profiling(tmp_path / name):
                wait_until(lambda: number(RUNNING) == 1, "the load test")
                begins.append(number(BEGAN))
                # The list looks each 15 s.
                looked = 15 * math.ceil(time.time() / 15)
                wait_until(lambda: prometheus.last_scrape() > looked, "a look at it")
            wait_until(lambda: number(RUNNING) == 0, "its end")
        at = scraped()
        found = _choices(prometheus, "after", at)
        runs = {text: when for text, when in found.items() if not text.startswith("(")}
        assert len(runs) == 2 and found["(the selected time)"] == "[10m] @ end()"
        for (text, when), began in zip(sorted(runs.items(), key=lambda run: run[1].split("@")[1]), begins):
            seconds, end = map(int, re.fullmatch(r"\[(\d+)s\] @ (\d+)", when).groups())
            assert end - seconds <= began + 15 and began < end
            assert text.startswith(time.strftime("%Y-%m-%d %H:", time.gmtime(end - 15)))
            assert prometheus.query(f"rate(tlsprof_agent_cpu_seconds_total{when})", at)
        chosen = max(runs.values(), key=lambda when: when.split("@")[1])
        earlier = _choices(prometheus, "before", at, chosen)
        assert set(earlier.values()) & set(runs.values()) == set(runs.values()) - {chosen}
        assert earlier["(an hour before)"] == "[10m] @ end() offset 1h"
