"""How soon the agent measures less once it costs more than its budget."""

import threading
from contextlib import contextmanager
from typing import Iterator

import pytest

from harness import metrics, servers
from harness.load import Load, run_load
from harness.lowest_rung import CALLS
from harness.profiler import Agent, start_agent

pytestmark = pytest.mark.apart

STORM = Load(tls="1.3", full=100, resume=300)
DOWN = 10.0
"""Seconds. It takes two judgements, which are 2 s apart: more than twice as long, for what runs beside it."""


@pytest.fixture(name="agent")
def _agent(tmp_path) -> Iterator[Agent]:
    """With the default budget."""
    config = tmp_path / "tlsprof.toml"
    config.write_text("[agent]\n")
    with start_agent(["--config", config, "--log", "info"]) as agent:
        yield agent


@contextmanager
def repeated(load: Load, port: int) -> Iterator[None]:
    """Loads the server again and again while the block runs."""
    over = threading.Event()

    def again() -> None:
        while not over.is_set():
            run_load(load, port)

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_over_its_budget_the_agent_measures_less_within_seconds(agent, rsa):
    """Told by its log: a scrape would have CPU times read earlier."""
    with servers.selftimed("epoll", rsa) as server, repeated(STORM, server.port):
        agent.process.wait_for_line("only connections opened in", timeout=DOWN)
    assert metrics.total(metrics.scrape(agent.url), CALLS) < 1
