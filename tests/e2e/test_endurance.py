"""What wears a host down: kills, stops, limits, forks by the thousand. The target does not notice,
and the agent goes on, or says why it cannot."""

import json
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Iterator

import pytest

from harness import bpf, groups, metrics, servers, web_servers
from harness.load import Load, run_load
from harness.paths import SELFTIMED, SERVERS, TLSPROF
from harness.processes import private_copy, Process, run
from harness.profiler import Agent, Profiling, start_agent
from harness.servers import SYSTEM_PYTHON
from harness.waiting import wait_until

FEW_KILLS, MANY_KILLS = 8, 100
AGENT = [TLSPROF, "agent", "--listen", "127.0.0.1:0"]
ATTACHED = "listening on "

RING_FULL = "event_ring_full"
ROUND = Load(full=1000, resume=1000, threads=8, tls="1.3")
AFTER = Load(full=150, resume=150, tls="1.2")

LITTLE_MEMORY = 24 << 20
"""A third of what it needs with the kernel's part."""

FORKS = 10_000


@contextmanager
def under_load(port: int) -> Iterator[None]:
    """Every connection of the load must go as planned, until the block ends."""
    stop = Event()

    def load() -> None:
        while not stop.is_set():
            run_load(Load(full=50, resume=50, rate=200), port)

    with ThreadPoolExecutor() as pool:
        under_way = pool.submit(load)
        try:
            yield
            assert not under_way.done(), under_way.result()
        finally:
            stop.set()
        under_way.result()


def held(agent: Process) -> tuple[set[int], set[int]]:
    """Programs and links of an agent so far."""
    return bpf.owned_by(agent.pid, "prog"), bpf.owned_by(agent.pid, "link")


def wait_for_moment(agent: Process, moment: float, everything: int) -> None:
    """Waits until the agent holds that share of everything that it loads and attaches, however long that takes
    on this host. Negative: not at all. What goes beyond 1 is in seconds after it has attached."""

    def reached() -> bool:
        return ATTACHED in agent.stderr or sum(map(len, held(agent))) >= moment * everything

    if moment > 1.0:
        agent.wait_for_line(ATTACHED)
        time.sleep(moment - 1.0)
    else:
        wait_until(reached, f"{moment:.0%} of {everything} programs and links")


@pytest.mark.parametrize("kills", [FEW_KILLS, pytest.param(MANY_KILLS, marks=pytest.mark.long)])
def test_an_agent_killed_at_any_moment_harms_nobody_and_leaves_nothing(kills, rsa, tmp_path):
    chance = random.Random(20260807)
    moments = [1.6 * (kill + chance.random()) / kills - 0.1 for kill in range(kills)]
    programs, links, loaded = set(), set(), 0
    probes_before = bpf.uprobe_events()
    with web_servers.nginx(tmp_path, rsa) as server, under_load(server.port):
        with Process(AGENT) as agent:
            agent.wait_for_line(ATTACHED)
            everything = sum(map(len, held(agent)))
        for moment in moments:
            with Process(AGENT) as agent:
                wait_for_moment(agent, moment, everything)
                holds = held(agent)
                for seen, found in zip((programs, links), holds):
                    seen |= found
                loaded += any(holds)
                agent.send(signal.SIGKILL)
                agent.child.wait(60.0)
    assert loaded >= kills / 2, "most lived long enough to load programs"
    bpf.wait_unloaded(programs, links)
    assert bpf.uprobe_events() == probes_before


def lost(agent: Agent, reason: str) -> float:
    return metrics.total(metrics.scrape(agent.url), "tlsprof_agent_events_lost_total", reason=reason)


def handshakes(agent: Agent, **labels: str) -> float:
    return metrics.total(metrics.scrape(agent.url), "tlsprof_handshakes_total", role="server", **labels)


def test_a_stopped_agent_counts_what_it_lost_and_goes_on(certificates, tmp_path):
    """Its ring runs over meanwhile; the server's clients notice nothing."""
    with servers.selftimed("threads", certificates["ecdsa"]) as server, start_agent() as agent:
        service = {"service_name": SELFTIMED.name}
        agent.process.send(signal.SIGSTOP)
        made = 0
        try:
            for _ in range(4):
                made += run_load(ROUND, server.port).completed
        finally:
            agent.process.send(signal.SIGCONT)
        wait_until(lambda: lost(agent, RING_FULL) > 0, "the losses in the metrics")
        assert handshakes(agent, **service) < made

        # What comes later is counted whole: it is told by its version of TLS.
        later = service | {"version": "TLS1.2"}
        wait_until(lambda: handshakes(agent, **service) > 0, "what the ring held")
        seen = run_load(AFTER, server.port)
        wait_until(lambda: handshakes(agent, **later) >= seen.completed, "the handshakes after")
        assert handshakes(agent, **later) == seen.completed == AFTER.full + AFTER.resume


@pytest.mark.long
def test_workers_that_began_while_the_agent_was_stopped_are_followed(certificates, tmp_path):
    """Their fork records are lost. An agent of one service counts nothing of processes that it does not know."""
    program = private_copy("nginx", tmp_path)
    options = ["--service", program.name, "--log", "info"]
    with web_servers.nginx(tmp_path, certificates["ecdsa"], program=program) as server, start_agent(options) as agent:
        agent.process.send(signal.SIGSTOP)
        try:
            for _ in range(4):
                run_load(ROUND, server.port)
            web_servers.reload_nginx(server)
        finally:
            agent.process.send(signal.SIGCONT)
        agent.process.wait_for_line("events were lost: examining all processes again")
        assert lost(agent, RING_FULL) > 0
        seen = run_load(AFTER, server.port)
        later = {"service_name": program.name, "version": "TLS1.2"}
        wait_until(lambda: handshakes(agent, **later) >= seen.completed, "the handshakes of the new workers")
        assert handshakes(agent, **later) == seen.completed


@pytest.mark.parametrize("limit", [8, 16, 24, 32, 40, 48])
def test_too_few_files_are_named_with_what_to_do(limit, rsa, tmp_path):
    with web_servers.nginx(tmp_path, rsa, workers=1) as server:
        limited = ["prlimit", f"--nofile={limit}:{limit}"]
        done = run([*limited, TLSPROF, "report", "--port", server.port, "--duration", "1s"])
        run_load(AFTER, server.port)
    assert "panicked" not in done.stderr, done.describe()
    if done.child.returncode:
        assert done.child.returncode == 1 and "LimitNOFILE" in done.stderr, done.describe()
    else:
        # Enough for the kernel side; what could not be attached is told.
        assert "not profiled" in done.stdout, done.describe()


def test_too_little_memory_ends_the_agent_and_harms_nobody(rsa, tmp_path):
    """What the kernel keeps for the agent counts too."""
    with groups.limited_memory(LITTLE_MEMORY) as group:
        if not group:
            pytest.skip("no control group with a memory limit can be made here")
        inside = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
        with web_servers.nginx(tmp_path, rsa, workers=1) as server, under_load(server.port):
            done = run([*inside, TLSPROF, "report", "--port", server.port, "--duration", "2s"])
    killed = done.child.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert killed or "MemoryMax" in done.stderr, done.describe()


@pytest.mark.long
def test_ten_thousand_forks_are_followed(rsa, tmp_path):
    """The handshakes beside them are counted whole."""
    with servers.selftimed("epoll", rsa) as server, Profiling(tmp_path) as profiling:
        forker = subprocess.run(
            [SYSTEM_PYTHON, SERVERS / "forker.py", str(FORKS)], capture_output=True, check=True, text=True
        )
        run_load(AFTER, server.port)
        port = server.port
        profiling.finish()
    seen = json.loads(forker.stdout)
    assert seen["forks"] == FORKS
    report = profiling.report
    assert report.on_port(port).count(role="server", outcome="completed") == AFTER.full + AFTER.resume
    losses = report.losses_of_events()
    # Makes the agent look at all processes anew: nothing is missed by it.
    losses.pop("mapping_record_lost", None)
    assert not any(losses.values()), losses
