"""A load test that `tlsprof report` runs is told to the agent of the host, and to Grafana."""

import json
import os
import signal
import socket
import time
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, Optional

import pytest
from harness import metrics, servers
from harness.certificates import make_issued
from harness.dashboards import boards
from harness.grafana import TOKEN, Grafana, grafana
from harness.load import Load
from harness.observatory import observatory
from harness.paths import TLSPROF
from harness.processes import Process, run
from harness.profiler import Agent, Profiling, start_agent
from harness.together import own_folder, side_by_side
from harness.waiting import wait_until

RUNNING = "tlsprof_report_running"
BEGAN = "tlsprof_report_start_time_seconds"
TOKEN_VARIABLE = "TLSPROF_GRAFANA_TOKEN"
STATUS = 3
"""Exit status of the commands here: it must be that of the report."""


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


def test_the_dashboards_annotation_is_there_while_it_runs(agent, tmp_path):
    (annotation,) = [
        one for one in boards()["tlsprof-load-test"]["annotations"]["list"] if RUNNING in one.get("expr", "")
    ]
    expression = annotation["expr"]
    for variable in ("cluster", "job", "instance"):
        expression = expression.replace(f"${variable}", ".*")
    target = urllib.parse.urlsplit(agent.url).netloc
    with observatory(tmp_path / "prometheus", target, True) as prometheus:
        assert prometheus.query(expression, prometheus.last_scrape()) == []
        found = lambda: prometheus.query(expression, prometheus.last_scrape())
        with Profiling(tmp_path):
            wait_until(found, "the annotation")
        wait_until(lambda: not found(), "its end")


def _report(
    folder: Path, *options, script: str = f"exit {STATUS}", token: Optional[str] = TOKEN, **env: str
) -> Process:
    """A report on everything while that script runs. Its own status and its own JSON are as without
    Grafana."""
    if token:
        env[TOKEN_VARIABLE] = token
    output = folder / "report.json"
    command = [TLSPROF, "report", "--format", "json", "--output", output, *options, "--", "sh", "-c", script]
    done = run(command, timeout=120.0, env=env)
    assert done.child.returncode == STATUS, done.describe()
    assert json.loads(output.read_text())["command"]["exit_status"] == STATUS
    return done


@dataclass(frozen=True)
class Ran:
    """A report that has run, and the Grafana that it was to be told to."""

    done: Process
    grafana: Optional[Grafana] = None


def _hangs(folder: Path) -> Ran:
    # The kernel accepts, nobody reads.
    with socket.create_server(("localhost", 0)) as silent:
        return Ran(_report(folder, "--grafana", f"http://localhost:{silent.getsockname()[1]}"))


def _told(folder: Path, rsa) -> Ran:
    with grafana() as watched, servers.selftimed("epoll", rsa) as server:
        load = " ".join(str(word) for word in Load(full=100).command(server.port))
        script = f"date +%s%N; {load} > /dev/null; echo ${{{TOKEN_VARIABLE}-unset}}; date +%s%N; exit {STATUS}"
        options = ["--service", "selftimed", "--grafana", f"{watched.url}/"]
        return Ran(_report(folder, *options, script=script), watched)


def _token_of_a_file(folder: Path, configured: bool) -> Ran:
    token, config = folder / "token", folder / "tlsprof.toml"
    token.write_text(f"{TOKEN}\n")
    with grafana() as watched:
        config.write_text(f'[grafana]\nurl = "{watched.url}"\ntoken_file = "{token}"\n')
        named = ["--grafana", watched.url, "--grafana-token-file", token]
        options = ["--config", config] if configured else named
        return Ran(_report(folder, *options, token=None), watched)


def _wrong_token(folder: Path) -> Ran:
    with grafana() as watched:
        return Ran(_report(folder, "--grafana", watched.url, token="glsa_other"), watched)


def _refused(folder: Path) -> Ran:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
    return Ran(_report(folder, "--grafana", f"http://localhost:{port}"))


def _another(folder: Path) -> Ran:
    with grafana() as watched:
        return Ran(_report(folder, "--grafana", f"{watched.url}/elsewhere"), watched)


def _certified(folder: Path, known: bool) -> Ran:
    issued = make_issued(folder)
    env = {"SSL_CERT_FILE": str(issued.authority)} if known else {}
    with grafana(issued.certificate) as watched:
        return Ran(_report(folder, "--grafana", watched.url, **env), watched)


AT_ONCE = 3
"""Reports at the same time. The first one mostly waits."""


@pytest.fixture(scope="module")
def ran(rsa, tmp_path_factory) -> dict[str, Ran]:
    base = tmp_path_factory.mktemp("grafana")
    cases: dict[str, Callable[[Path], Ran]] = {
        "hangs": _hangs,
        "told": lambda folder: _told(folder, rsa),
        "file": lambda folder: _token_of_a_file(folder, False),
        "configured": lambda folder: _token_of_a_file(folder, True),
        "wrong": _wrong_token,
        "refused": _refused,
        "another": _another,
        "known": lambda folder: _certified(folder, True),
        "unknown": lambda folder: _certified(folder, False),
    }
    return side_by_side(lambda name: cases[name](own_folder(base, name)), cases, AT_ONCE)


def test_grafana_is_told_when_and_what(ran):
    done, watched = ran["told"].done, ran["told"].grafana
    began, token, ended = done.stdout.split()
    assert token == "unset", "the command inherits the token"
    (annotation,) = watched.annotations
    assert watched.refused == []
    assert annotation["tags"] == ["tlsprof", "load-test"]
    # The command's own times lie within, by no more than the last hundredths of a second.
    assert annotation["time"] <= int(began) // 1_000_000 <= int(ended) // 1_000_000 <= annotation["timeEnd"]
    text = annotation["text"]
    assert "ended with status 3" in text and "selftimed: " in text and "100 TLS handshakes" in text
    assert "date" not in text and "127.0.0.1" not in text and "localhost" not in text
    assert "is annotation 1 in Grafana" in done.stderr


@pytest.mark.parametrize("where", ["file", "configured"])
def test_a_token_comes_from_a_file_or_the_configuration(where, ran):
    assert len(ran[where].grafana.annotations) == 1


def test_without_a_token_the_command_is_not_started(tmp_path):
    options = ["--grafana", "http://localhost:1", "--", "touch", tmp_path / "started"]
    done = run([TLSPROF, "report", *options])
    assert done.child.returncode == 1 and TOKEN_VARIABLE in done.stderr, done.describe()
    done = run([TLSPROF, "report", "--grafana-token-file", tmp_path / "missing", *options])
    assert done.child.returncode == 1 and "missing" in done.stderr, done.describe()
    assert not (tmp_path / "started").exists()


def test_a_wrong_token_costs_a_warning(ran):
    done = ran["wrong"].done
    assert "status 401: Invalid API key" in done.stderr
    assert "glsa_other" not in done.stderr
    assert ran["wrong"].grafana.annotations == []


def test_a_refused_connection_costs_a_warning(ran):
    done = ran["refused"].done
    assert "warning: the load test is not marked in Grafana" in done.stderr
    assert "refused" in done.stderr


def test_a_server_that_hangs_is_given_up(ran):
    assert "no answer within 10 s" in ran["hangs"].done.stderr


def test_another_server_is_not_taken_for_grafana(ran):
    done = ran["another"].done
    assert "404" in done.stderr and "path" in done.stderr


@pytest.mark.parametrize("known", [False, True])
def test_a_certificate_must_be_of_a_known_authority(known, ran):
    one = ran["known" if known else "unknown"]
    assert len(one.grafana.annotations) == (1 if known else 0), one.done.stderr
    assert ("SSL_CERT_FILE" in one.done.stderr) is not known
