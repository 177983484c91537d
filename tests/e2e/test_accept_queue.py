"""Accept queues: overflows as the kernel counts them, their length, and the wait in them."""

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Callable

import pytest

from harness import metrics
from harness.late import LateServer, late_server, listen_overflows
from harness.namespaces import namespace
from harness.paths import TLSPROF
from harness.plain_nginx import unique
from harness.processes import run
from harness.profiler import Agent, Profiling, Report, start_agent
from harness.together import together
from harness.waiting import wait_until

pytestmark = pytest.mark.host

BACKLOG = 4
"""The kernel lets one more in."""

WAIT_SECONDS = 0.5

ADDRESSES = ("127.0.0.1", "::1")
HOSTS = pytest.mark.parametrize("host", ADDRESSES)
TIERS = ("tracepoint", "fentry", "raw_syscalls")


def accept_queue(report: Report, server: LateServer) -> dict[str, Any]:
    return report.service(server.name).data["accept_queue"]


def stop_packets(server: LateServer) -> None:
    """From here on no packet moves: the kernel's counts are the last."""
    run([*server.inside, "ip", "link", "set", "lo", "down"])


@dataclass(frozen=True)
class Overflowed:
    """Servers whose queues overflowed during one profile, or before it, and the kernel's counts."""

    report: Report
    servers: dict[str, LateServer]
    overflows: dict[str, int]
    """Of whole network namespaces."""
    drops: dict[str, int]
    """Of single sockets."""


def crowds(servers: dict[str, LateServer], stack: ExitStack) -> None:
    """Clients of all servers, until some have tried again."""
    for name, size in {**dict.fromkeys(ADDRESSES, 30), "few": 10, "many": 40}.items():
        stack.enter_context(servers[name].crowd(size))
    for host in ADDRESSES:
        servers[host].wait_for_queue(BACKLOG + 1)
        pid = servers[host].process.pid
        wait_until(lambda: listen_overflows(pid) > 40, "second attempts")
    few, many = servers["few"], servers["many"]
    wait_until(lambda: few.drops() > 5 and many.drops() > 70, "second attempts")


@pytest.fixture(scope="module")
def overflowed(tmp_path_factory) -> Overflowed:
    """A namespace for each address, one that three servers share, and one whose overflows are over."""
    folder = tmp_path_factory.mktemp("overflows")
    spaces = {**{host: host for host in ADDRESSES}, **dict.fromkeys(("few", "many", "none"), "shared")}
    spaces["before"] = "before"
    with ExitStack() as stack:
        inside = {
            space: stack.enter_context(namespace(unique(f"tlsprof-queue{number}")))
            for number, space in enumerate(sorted(set(spaces.values())))
        }
        servers = {}
        for number, (name, space) in enumerate(spaces.items()):
            host = name if name in ADDRESSES else "127.0.0.1"
            late = late_server(folder, f"queue{number}", BACKLOG, host, inside[space])
            servers[name] = stack.enter_context(late)
        before = servers["before"]
        with before.crowd(20):
            wait_until(lambda: before.drops() > 0, "overflows")
            stop_packets(before)
        with Profiling(folder) as profiling, ExitStack() as clients:
            crowds(servers, clients)
            for name in (*ADDRESSES, "few"):
                stop_packets(servers[name])
            overflows = {name: listen_overflows(servers[name].process.pid) for name in spaces}
            drops = {name: servers[name].drops() for name in ("few", "many")}
            profiling.finish()
    return Overflowed(profiling.report, servers, overflows, drops)


@HOSTS
def test_overflows_are_exactly_the_kernels_own(host, overflowed):
    queues = accept_queue(overflowed.report, overflowed.servers[host])["queues"]
    full = {"length": BACKLOG + 1, "limit": BACKLOG}
    counted = overflowed.overflows[host]
    assert queues == {"listeners": 1, "present": full, "peak": full, "overflows": counted}


def test_services_in_one_network_namespace_have_their_own(overflowed):
    drops, servers = overflowed.drops, overflowed.servers
    assert sum(drops.values()) == overflowed.overflows["few"]
    found = {
        name: accept_queue(overflowed.report, servers[name])["queues"]["overflows"] for name in drops
    }
    assert found == drops
    assert servers["none"].name not in [service.name for service in overflowed.report.services]


def test_what_was_before_is_not_counted(overflowed):
    assert overflowed.overflows["before"] > 0
    before = accept_queue(overflowed.report, overflowed.servers["before"])
    assert before["queues"]["overflows"] == 0


@pytest.fixture(scope="module")
def agent():
    with start_agent() as running:
        yield running


@HOSTS
def test_the_gauges_follow_the_queue(host, agent: Agent, tmp_path):
    with late_server(tmp_path, f"gauges{ADDRESSES.index(host)}", BACKLOG, host) as server:

        def value(name: str) -> float:
            return metrics.total(metrics.scrape(agent.url), name, service_name=server.name)

        clients = [server.connect() for _ in range(3)]
        wait_until(lambda: value("tlsprof_accept_queue_length") == 3, "the length of the queue")
        assert value("tlsprof_accept_queue_limit") == BACKLOG
        assert value("tlsprof_listen_overflows_total") == 0
        server.accept(3)
        for client in clients:
            with client:
                client.sendall(b"?")
                assert client.recv(1) == b"!"
        wait_until(lambda: value("tlsprof_accept_queue_length") == 0, "the end of the queue")
        with server.crowd(20):
            overflows = "tlsprof_listen_overflows_total"
            wait_until(lambda: 0 < server.drops() == value(overflows), "the kernel's count")
            assert value("tlsprof_accept_queue_length") == BACKLOG + 1


@cache
def capabilities() -> dict[str, str]:
    told = json.loads(run([TLSPROF, "doctor", "--format", "json"]).stdout)
    return {one["name"]: one["state"] for one in told["capabilities"]}


def configuration(folder: Path, tier: str) -> Path:
    path = folder / "tlsprof.toml"
    path.write_text(f'[profile]\nconnections = "{tier}"\n')
    return path


@dataclass(frozen=True)
class Wait:
    """Of ten connections: between these bounds by the clock of the test, and as reported."""

    least: float
    most: float
    reported: dict[str, Any] | None


def profile_waits(folder: Path, tier: str) -> dict[str, Wait]:
    """By address, in one profile."""
    starts = {host: late_server(folder, f"late{at}", 16, host) for at, host in enumerate(ADDRESSES)}
    with together(starts) as servers:
        with Profiling(folder, "--config", configuration(folder, tier)) as profiling:
            began, connected, clients, bounds = {}, {}, {}, {}
            for host, server in servers.items():
                began[host] = time.monotonic()
                clients[host] = [server.connect() for _ in range(10)]
                connected[host] = time.monotonic()
            end = time.monotonic() + WAIT_SECONDS
            wait_until(lambda: time.monotonic() > end, "the wait")
            for host, server in servers.items():
                least = time.monotonic() - connected[host]
                server.accept(10)
                bounds[host] = (least, time.monotonic() - began[host])
                for client in clients[host]:
                    with client:
                        client.sendall(b"?")
                        assert client.recv(1) == b"!"
            profiling.finish()
    report = profiling.report
    return {
        host: Wait(*bounds[host], accept_queue(report, server)["wait"]) for host, server in servers.items()
    }


@pytest.fixture(scope="module")
def waits(tmp_path_factory) -> Callable[[str], dict[str, Wait]]:
    """By tier, each profiled when it is first asked for."""
    return cache(lambda tier: profile_waits(tmp_path_factory.mktemp(tier), tier))


@HOSTS
@pytest.mark.parametrize("tier", TIERS)
def test_a_late_accept_shows_the_wait(tier, host, waits):
    """Against the clock of the test: between the earliest and the latest that it can have been."""
    if capabilities()[f"socket_calls_{tier}"] != "available":
        pytest.skip("refused by this kernel")
    one = waits(tier)[host]
    if tier != "raw_syscalls" and capabilities()["accept_wait"] != "available":
        assert one.reported is None
        return
    assert one.reported["connections"] == 10
    assert one.least <= one.reported["seconds"]["mean"] <= one.reported["seconds"]["max"] <= one.most
