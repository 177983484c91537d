"""Handshakes that do not go on are given up, counted, and never taken for completed ones."""

import socket
from contextlib import ExitStack

import pytest

from harness import hostile, metrics, servers
from harness.load import Load, run_load
from harness.paths import SELFTIMED
from harness.profiler import start_agent
from harness.waiting import wait_until

pytestmark = pytest.mark.host

SILENT = 7
BOTH_ENDS = 2 * SILENT
"""The clients are on this host, too."""

REAL = 30

CONFIG = """
[agent]
budget = 1.0
[profile]
library = "off"
[limits]
handshake_silence = "3s"
"""


def test_a_silent_handshake_is_given_up_and_not_completed_by_what_follows(rsa, tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text(CONFIG)
    hello = hostile.record(hostile.hello())
    with servers.selftimed("epoll", rsa) as server, start_agent(["--config", config]) as agent:

        def total(name: str, **labels: str) -> float:
            return metrics.total(metrics.scrape(agent.url), name, **labels)

        def handshakes(**labels: str) -> float:
            ours = dict(service_name=SELFTIMED.name, role="server")
            return total("tlsprof_handshakes_total", **ours, **labels)

        with ExitStack() as stack:
            clients = [stack.enter_context(hostile.connect(server.port)) for _ in range(SILENT)]
            for client in clients:
                client.sendall(hello[: len(hello) // 2])
            lost = "tlsprof_agent_events_lost_total"
            wait_until(lambda: total(lost, reason="handshake_silent") == BOTH_ENDS, "their end")
            # Some go on: the server answers. The others go away.
            for client in clients[: SILENT // 2]:
                client.sendall(hello[len(hello) // 2 :])
                assert client.recv(4096)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass
        load = Load(tls="1.3", full=REAL)
        assert run_load(load, server.port).completed == REAL
        wait_until(lambda: handshakes() >= REAL, "the real handshakes")
        closed = dict(service_name=SELFTIMED.name, role="server")
        wait_until(
            lambda: total("tlsprof_connections_closed_total", **closed) == SILENT + REAL,
            "the end of all connections",
        )
        assert handshakes() == handshakes(outcome="completed") == REAL
        assert total(lost, reason="handshake_silent") == BOTH_ENDS
