"""Accept queues: overflows as the kernel counts them, their length, and the wait in them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from harness import metrics
from harness.late import LateServer, late_server, listen_overflows
from harness.namespaces import namespace
from harness.paths import TLSPROF
from harness.plain_nginx import unique
from harness.processes import run
from harness.profiler import Profiling, start_agent
from harness.waiting import wait_until

BACKLOG = 4
"""The kernel lets one more in."""

WAIT_SECONDS = 0.5

HOSTS = pytest.mark.parametrize("host", ["127.0.0.1", "::1"])


def accept_queue(profiling: Profiling, server: LateServer) -> dict[str, Any]:
    return profiling.report.service(server.name).data["accept_queue"]


@HOSTS
def test_overflows_are_exactly_the_kernels_own(host, tmp_path):
    with namespace(unique("tlsprof-queue")) as inside:
        with late_server(tmp_path, "overflows", BACKLOG, host, inside) as server:
            with Profiling(tmp_path) as profiling, server.crowd(30):
                server.wait_for_queue(BACKLOG + 1)
                # Some try again meanwhile.
                wait_until(lambda: listen_overflows(server.process.pid) > 40, "second attempts")
                # From here on no packet moves: the kernel's count is the last.
                run([*inside, "ip", "link", "set", "lo", "down"])
                counted = listen_overflows(server.process.pid)
                profiling.finish()
    queues = accept_queue(profiling, server)["queues"]
    full = {"length": BACKLOG + 1, "limit": BACKLOG}
    assert queues == {"listeners": 1, "present": full, "peak": full, "overflows": counted}


def test_services_in_one_network_namespace_have_their_own(tmp_path):
    with namespace(unique("tlsprof-queues")) as inside:
        servers = [late_server(tmp_path, f"queue{n}", BACKLOG, inside=inside) for n in range(3)]
        with servers[0] as few, servers[1] as many, servers[2] as none:
            with Profiling(tmp_path) as profiling, few.crowd(10), many.crowd(40):
                wait_until(lambda: few.drops() > 5 and many.drops() > 70, "second attempts")
                run([*inside, "ip", "link", "set", "lo", "down"])
                drops = [server.drops() for server in (few, many)]
                assert sum(drops) == listen_overflows(few.process.pid)
                profiling.finish()
    found = [accept_queue(profiling, one)["queues"]["overflows"] for one in (few, many)]
    assert found == drops
    assert none.name not in [service.name for service in profiling.report.services]


def test_what_was_before_is_not_counted(tmp_path):
    with namespace(unique("tlsprof-before")) as inside:
        with late_server(tmp_path, "before", BACKLOG, inside=inside) as server:
            with server.crowd(20):
                wait_until(lambda: server.drops() > 0, "overflows")
                run([*inside, "ip", "link", "set", "lo", "down"])
            with Profiling(tmp_path) as profiling:
                profiling.finish()
    assert accept_queue(profiling, server)["queues"]["overflows"] == 0


@HOSTS
def test_the_gauges_follow_the_queue(host, tmp_path):
    with late_server(tmp_path, "gauges", BACKLOG, host) as server, start_agent() as agent:

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
            wait_until(lambda: 0 < server.drops() == value(overflows), "the kernel's count", 30.0)
            assert value("tlsprof_accept_queue_length") == BACKLOG + 1


def capability(name: str) -> str:
    told = json.loads(run([TLSPROF, "doctor", "--format", "json"]).stdout)
    return {one["name"]: one["state"] for one in told["capabilities"]}[name]


def configuration(folder: Path, tier: str) -> Path:
    path = folder / "tlsprof.toml"
    path.write_text(f'[profile]\nconnections = "{tier}"\n')
    return path


@HOSTS
@pytest.mark.parametrize("tier", ["tracepoint", "fentry", "raw_syscalls"])
def test_a_late_accept_shows_the_wait(tier, host, tmp_path):
    """Against the clock of the test: between the earliest and the latest that it can have been."""
    if capability(f"socket_calls_{tier}") != "available":
        pytest.skip("refused by this kernel")
    with late_server(tmp_path, "late", 16, host) as server:
        with Profiling(tmp_path, "--config", configuration(tmp_path, tier)) as profiling:
            began = time.monotonic()
            clients = [server.connect() for _ in range(10)]
            connected = time.monotonic()
            wait_until(lambda: time.monotonic() > connected + WAIT_SECONDS, "the wait")
            least = time.monotonic() - connected
            server.accept(10)
            most = time.monotonic() - began
            for client in clients:
                with client:
                    client.sendall(b"?")
                    assert client.recv(1) == b"!"
            profiling.finish()
    wait = accept_queue(profiling, server)["wait"]
    if tier != "raw_syscalls" and capability("accept_wait") != "available":
        assert wait is None
        return
    assert wait["connections"] == 10
    assert least <= wait["seconds"]["mean"] <= wait["seconds"]["max"] <= most
