"""How soon the agent measures less once it costs more than its budget, and everything again."""

import threading
from contextlib import contextmanager
from typing import Iterator

import pytest

from harness import metrics, servers
from harness.load import Load, run_load
from harness.lowest_rung import CALLS, LIBRARY, STEPS
from harness.profiler import Agent, start_agent

pytestmark = pytest.mark.apart

STORM = Load(tls="1.3", full=100, resume=300)
LIGHT = Load(tls="1.3", full=2, threads=1)
PAUSE = 0.2
"""Seconds between light loads, which are a hundredth of what the server could do."""
DOWN = 10.0
"""Seconds. It takes two judgements, which are 2 s apart: more than twice as long, for what runs beside it."""
UP = 240.0
"""Seconds. On the three rungs with windows it takes two of these, 32, 8 and 2 s apart, or 10 s; on the three above 10 s each: two
minutes, and twice as long for what runs beside it."""


@pytest.fixture(name="agent")
def _agent(tmp_path) -> Iterator[Agent]:
    """With the default budget."""
    config = tmp_path / "tlsprof.toml"
    config.write_text("[agent]\n")
    with start_agent(["--config", config, "--log", "info"]) as agent:
        yield agent


@contextmanager
def repeated(load: Load, port: int, pause: float = 0.0) -> Iterator[None]:
    """Loads the server again and again while the block runs."""
    over = threading.Event()

    def again() -> None:
        while not over.wait(pause):
            run_load(load, port)

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def press_down(agent: Agent, port: int) -> None:
    """Told by its log: a scrape would have CPU times read earlier."""
    with repeated(STORM, port):
        agent.process.wait_for_line("only connections opened in", timeout=DOWN)
    assert metrics.total(metrics.scrape(agent.url), CALLS) < 1


def test_over_its_budget_the_agent_measures_less_within_seconds(agent, rsa):
    with servers.selftimed("epoll", rsa) as server:
        press_down(agent, server.port)


@pytest.mark.long
def test_under_a_light_load_it_measures_everything_again(agent, rsa):
    with servers.selftimed("epoll", rsa) as server:
        press_down(agent, server.port)
        with repeated(LIGHT, server.port, PAUSE):
            agent.process.wait_for_line("Everything is measured again", timeout=UP)
    scraped = metrics.scrape(agent.url)
    assert all(metrics.total(scraped, ratio) == 1 for ratio in (CALLS, LIBRARY, STEPS))
