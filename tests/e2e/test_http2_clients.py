"""Turns are requests again once the connections have ended that may have spoken HTTP/2.

TLS 1.3 encrypts the server's choice, so a client that offers h2 makes turns of requests, whether the server speaks
HTTP/2 or not: what is open may carry any number, what has ended as many as fit into its bytes.
"""

import json
import socket
import ssl
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

import pytest

from harness import outlets
from harness.paths import SERVERS
from harness.processes import Process
from harness.profiler import Agent, Profiling, Service, start_agent
from harness.servers import SYSTEM_PYTHON, Server
from harness.waiting import wait_until
from harness.web_servers import nginx

MULTIPLEXED = 2_000
CONNECTIONS = 2
PLAIN = 600
SETTLED_SECONDS = 120.0

LISTEN = {"on": " http2", "off": ""}
"""What nginx says of HTTP/2."""


@dataclass
class Client:
    """The server, and who asks it for its requests."""

    server: Server
    certificate: str

    def over_http1(self, requests: int) -> None:
        """One for each connection, which offers no protocol."""
        client = [SYSTEM_PYTHON, SERVERS / "http_client.py", self.server.port, requests, self.certificate]
        with Process([*client, "--tls", "TLSv1_3", "--no-keep-alive"]) as made:
            assert made.wait(60.0) == 0, made.describe()
            assert json.loads(made.stdout)["requests"] == requests

    def offering_http2(self) -> None:
        url = f"https://127.0.0.1:{self.server.port}/"
        with Process(["h2load", "-n", MULTIPLEXED, "-c", CONNECTIONS, "-m", 10, url]) as made:
            assert made.wait(60.0) == 0, made.describe()
            assert f"{MULTIPLEXED} succeeded" in made.stdout

    @contextmanager
    def one_that_offers_http2(self) -> Iterator[None]:
        """Its connection is open for as long as the block."""
        context = ssl.create_default_context(cafile=self.certificate)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["h2", "http/1.1"])
        with socket.create_connection(("127.0.0.1", self.server.port), 10.0) as connection:
            with context.wrap_socket(connection, server_hostname="localhost"):
                yield


@pytest.fixture(params=["on", pytest.param("off", marks=pytest.mark.long)])
def client(request, rsa, tmp_path) -> Iterator[Client]:
    with nginx(tmp_path, rsa, workers=1, parameters=LISTEN[request.param], protocols="TLSv1.3") as server:
        yield Client(server, str(rsa.cert))


@dataclass
class Points:
    """What the live page says of a service, as points end."""

    agent: Agent
    name: str
    newest: int = 0
    """The last that was read."""

    def until(self, closed: int) -> list[bool]:
        """For each new point in which connections ended, whether its turns are requests; up to so many
        connections since the agent's start."""
        found: list[bool] = []

        def complete() -> bool:
            state = outlets.live_state(self.agent, self.name)
            if state["newest_point"] == self.newest:
                return False
            services = [one for one in state["services"] if one["service_name"] == self.name]
            for role in (role for one in services for role in one["roles"] if role["closed_per_second"]):
                found.append(role["turns_are_requests"])
            self.newest = state["newest_point"]
            return sum(map(sum, columns(state, "closed/server/"))) >= closed

        wait_until(complete, f"{closed} connections that ended", SETTLED_SECONDS)
        return found

    def total(self, figure: str) -> int:
        state = outlets.live_state(self.agent, self.name)
        return sum(map(sum, columns(state, figure)))


def columns(state: dict[str, Any], begin: str) -> list[list[int]]:
    series = state["selected"]["series"] or {"columns": {}}
    return [values for name, values in series["columns"].items() if name.startswith(begin)]


def test_a_running_agent_counts_requests_again_after_clients_that_offer_http2(client):
    name = Path(f"/proc/{client.server.pid}/exe").readlink().name
    with start_agent(["--service", name]) as agent:
        points = Points(agent, name)
        client.offering_http2()
        assert set(points.until(CONNECTIONS)) == {False}
        turns, hidden = points.total("turns/server"), points.total("hidden_requests/server")
        assert turns <= MULTIPLEXED <= turns + hidden
        client.over_http1(PLAIN)
        assert set(points.until(PLAIN + CONNECTIONS)) == {True}
        assert points.total("turns/server") == turns + PLAIN


def in_report(profiling: Profiling, client: Client) -> Service:
    return profiling.report.on_port(client.server.port)


def turns_are_requests(service: Service) -> bool:
    (server,) = [one for one in service.data["connections"] if one["role"] == "server"]
    assert sum(turns["from"] * turns["connections"] for one in server["closed"] for turns in one["turns"]) == PLAIN
    return server["turns_are_requests"]


def test_what_an_open_connection_carries_is_not_known(client, tmp_path):
    with Profiling(tmp_path) as profiling, client.one_that_offers_http2():
        client.over_http1(PLAIN)
        profiling.finish()
    assert not turns_are_requests(in_report(profiling, client))


def test_one_that_ended_without_a_request_hides_none(client, tmp_path):
    with Profiling(tmp_path) as profiling:
        with client.one_that_offers_http2():
            pass
        client.over_http1(PLAIN)
        # The report names services by their ports: the server is to be there at its end.
        profiling.finish()
    assert turns_are_requests(in_report(profiling, client))
