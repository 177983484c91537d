"""How soon the agent measures less once it costs more than its budget, and more once it costs less."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Callable, Iterator

import pytest

from harness import metrics, servers, web_servers
from harness.certificates import Certificate
from harness.load import Load, run_load
from harness.lowest_rung import CALLS, LIBRARY, STEPS
from harness.processes import run
from harness.profiler import Agent, start_agent
from harness.servers import Server

pytestmark = pytest.mark.apart

STORM = Load(tls="1.3", full=100, resume=300)
COMPRESS = "gzip on; gzip_comp_level 9; gzip_types *; location /long { default_type text/plain; root %s; }"
DOWN = 10.0
"""Seconds. It takes two judgements, which are 2 s apart: more than twice as long, for what runs beside it."""
UP = 240.0
"""Seconds. 50 were measured on an idle machine: rungs between are taken one by one, after windows with room."""


@pytest.fixture(name="agent")
def _agent(tmp_path) -> Iterator[Agent]:
    """With the default budget."""
    config = tmp_path / "tlsprof.toml"
    config.write_text("[agent]\n")
    with start_agent(["--config", config, "--log", "info"]) as agent:
        yield agent


@contextmanager
def repeated(load: Callable[[], object]) -> Iterator[None]:
    """Puts a load on a server again and again while the block runs."""
    over = threading.Event()

    def again() -> None:
        while not over.is_set():
            load()

    with ThreadPoolExecutor(1) as client:
        loads = client.submit(again)
        try:
            yield
        finally:
            over.set()
        loads.result()


def lead_to_windows(agent: Agent, port: int) -> None:
    """Told by its log: a scrape would have CPU times read earlier."""
    with repeated(lambda: run_load(STORM, port)):
        agent.process.wait_for_line("only connections opened in", timeout=DOWN)


def test_over_its_budget_the_agent_measures_less_within_seconds(agent, rsa):
    with servers.selftimed("epoll", rsa) as server:
        lead_to_windows(agent, server.port)
    assert metrics.total(metrics.scrape(agent.url), CALLS) < 1


@contextmanager
def compressing(folder: Path, certificate: Certificate) -> Iterator[Server]:
    """A server whose CPU time goes into what it answers, with few socket calls."""
    words = random.Random(1).choices("connection handshake certificate server client record".split(), k=1 << 20)
    with TemporaryDirectory() as readable:
        Path(readable).chmod(0o755)
        (Path(readable) / "long").write_text(" ".join(words))
        with web_servers.nginx(folder, certificate, extra=COMPRESS % readable) as server:
            yield server


def fetch(port: int) -> None:
    command = ["curl", "--silent", "--show-error", "--fail", "--insecure", "--compressed", "--output", "/dev/null"]
    done = run([*command, f"https://127.0.0.1:{port}/long"])
    assert done.child.returncode == 0, done.describe()


@pytest.mark.long
def test_where_tls_is_little_of_the_work_it_measures_everything_again(agent, rsa, tmp_path):
    with servers.selftimed("epoll", rsa) as server, compressing(tmp_path, rsa) as busy:
        lead_to_windows(agent, server.port)
        with repeated(lambda: fetch(busy.port)):
            agent.process.wait_for_line("Everything is measured again", timeout=UP)
            scraped = metrics.scrape(agent.url)
    assert [metrics.total(scraped, ratio) for ratio in (CALLS, LIBRARY, STEPS)] == [1, 1, 1]
