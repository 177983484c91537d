"""TCP connections: turns, who closes, TIME_WAIT; exact counts, against the kernel's own."""

import re
import socket
import struct
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Mapping

import pytest

from harness import metrics, plain_nginx
from harness.certificates import Certificate
from harness.namespaces import namespace
from harness.plain_nginx import REQUEST, request, unique
from harness.processes import run
from harness.profiler import Profiling, Report, start_agent
from harness.servers import Server
from harness.together import together
from harness.waiting import wait_until

LIMITS = {1: 100, 5: 500, 40: 2000, 100: 3000}
"""Requests per connection that a server allows, and requests made."""

VERSIONS = ("TLSv1.2", "TLSv1.3")

PROXIED = 200
EPHEMERAL_PORTS = 2000

TIME_WAITS = 1000
LONG_TIME_WAITS = 5000


def connections(report: Report, port: int, role: str = "server") -> dict[str, Any]:
    """The report's figures of the service on `port` in that role."""
    found = [one for one in report.on_port(port).data["connections"] if one["role"] == role]
    assert len(found) == 1, report.on_port(port)
    return found[0]


def closed(figures: dict[str, Any]) -> dict[str, int]:
    return {one["closed_by"]: one["count"] for one in figures["closed"]}


def turns(figures: dict[str, Any]) -> dict[int, int]:
    """Connections by their number of turns; all numbers must be exact."""
    counts: dict[int, int] = {}
    for one in figures["closed"]:
        for row in one["turns"]:
            assert row["from"] == row["to"], row
            counts[row["from"]] = counts.get(row["from"], 0) + row["connections"]
    return counts


def converse(port: int, requests: int, host: str = "127.0.0.1", reset: bool = False) -> None:
    """One connection with as many requests."""
    with socket.create_connection((host, port), 10.0) as client:
        for _ in range(requests):
            client.sendall(REQUEST)
            assert client.recv(4096)
        if reset:
            # Linger for 0 s: close sends RST.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


RESETS = """
location /linger { reset_timedout_connection on; return 444; }
location /unread { return 444; }
"""
"""nginx closes without an answer: with a linger of 0 s, or without having read more than its first buffer of 1 KiB."""


def be_reset(port: int, path: str, body: bytes) -> None:
    """One request that the server answers by a reset."""
    with socket.create_connection(("127.0.0.1", port), 10.0) as client:
        client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(body)) + body)
        with pytest.raises(ConnectionResetError):
            client.recv(4096)


def proxy_of(upstream: Server) -> str:
    """The configuration of an nginx that passes all requests on, each on a connection of its own."""
    return (
        f"location / {{ proxy_pass http://127.0.0.1:{upstream.port};"
        ' proxy_http_version 1.1; proxy_set_header Connection "keep-alive"; }'
    )


@dataclass(frozen=True)
class Profiled:
    """One profile of servers, each with clients of its own kind."""

    report: Report
    servers: Mapping[Any, Server]
    made: dict[Any, int] = field(default_factory=dict)
    """Connections that the clients of a server made."""

    def of(self, key: Any, role: str = "server") -> dict[str, Any]:
        return connections(self.report, self.servers[key].port, role)


def starts(folder: Path, rsa: Certificate, inside: list[str]) -> dict[Any, Any]:
    """Those of them that need no other one."""
    start = partial(plain_nginx.nginx, folder)
    found = {limit: start(f"turns{limit}", limit) for limit in LIMITS}
    for tls in VERSIONS:
        extra = f"ssl_certificate {rsa.cert}; ssl_certificate_key {rsa.key}; ssl_protocols {tls};"
        found[tls] = start(tls, 5, extra + plain_nginx.ANSWER, parameters=" ssl")
    for name in ("closes", "upstream", "reset", "before"):
        found[name] = start(name)
    found["dual"] = start("dual", address="[::]", parameters=" ipv6only=off")
    found["upstream-inside"] = start("upstream-inside", inside=inside)
    return found


def exercise(servers: Mapping[Any, Server], rsa: Certificate, inside: list[str]) -> dict[Any, int]:
    """All clients, one after the other; how many connections the servers of limits had."""
    made = {limit: request(servers[limit].port, requests) for limit, requests in LIMITS.items()}
    made |= {tls: request(servers[tls].port, 250, rsa.cert) for tls in VERSIONS}
    for requests in (1, 2, 7, 130):
        assert request(servers["closes"].port, requests) == 1
    assert request(servers["proxy"].port, PROXIED) == 1
    assert request(servers["proxy-inside"].port, PROXIED, inside=inside) == 1
    for host in ("::1", "127.0.0.1"):
        converse(servers["dual"].port, 3, host)
    for _ in range(20):
        converse(servers["reset"].port, 1, reset=True)
    return made


@pytest.fixture(scope="module")
def profiled(rsa, tmp_path_factory) -> Profiled:
    """All servers in one profile; two of them in a network namespace with few ephemeral ports."""
    folder = tmp_path_factory.mktemp("connections")
    with ExitStack() as stack:
        inside = stack.enter_context(namespace(unique("tlsprof-ports")))
        command = ["sysctl", "-qw", f"net.ipv4.ip_local_port_range=30000 {30000 + EPHEMERAL_PORTS - 1}"]
        assert run([*inside, *command]).child.returncode == 0
        servers = stack.enter_context(together(starts(folder, rsa, inside)))
        for where, command in {"": [], "-inside": inside}.items():
            extra = proxy_of(servers[f"upstream{where}"])
            proxy = plain_nginx.nginx(folder, f"proxy{where}", extra=extra, inside=command)
            servers[f"proxy{where}"] = stack.enter_context(proxy)
        early = stack.enter_context(socket.create_connection(("127.0.0.1", servers["before"].port), 10.0))
        early.sendall(REQUEST)
        assert early.recv(4096)
        with Profiling(folder) as profiling:
            early.sendall(REQUEST)
            assert early.recv(4096)
            early.close()
            assert request(servers["before"].port, 3) == 1
            made = exercise(servers, rsa, inside)
            profiling.finish()
    return Profiled(profiling.report, servers, made)


@pytest.mark.parametrize("limit", LIMITS)
def test_servers_that_limit_requests_show_exactly_that_many_turns(limit, profiled):
    figures, made = profiled.of(limit), profiled.made[limit]
    assert made == LIMITS[limit] // limit
    assert figures["opened"] == made
    assert turns(figures) == {limit: made}
    assert closed(figures) == {"local": made}
    assert figures["time_wait_created"] == made


@pytest.mark.parametrize("tls", VERSIONS)
def test_the_messages_of_a_tls_handshake_are_no_turns(tls, profiled):
    assert profiled.made[tls] == 50
    assert turns(profiled.of(tls)) == {5: 50}


def test_a_connection_that_the_client_closes_leaves_no_time_wait(profiled):
    figures = profiled.of("closes")
    assert closed(figures) == {"remote": 4}
    assert figures["time_wait_created"] == 0
    rows = [(row["from"], row["to"]) for row in figures["closed"][0]["turns"]]
    assert rows == [(1, 1), (2, 2), (7, 7), (129, 255)]
    # What nginx read are the requests, byte by byte.
    assert figures["bytes_received"] == 140 * len(REQUEST)


def test_a_proxy_without_keep_alive_shows_its_churn_in_the_client_role(profiled):
    front = profiled.of("proxy")
    back = profiled.of("proxy", "client")
    above = profiled.of("upstream")
    assert (front["opened"], front["time_wait_created"]) == (1, 0)
    assert closed(back) == {"local": PROXIED} and closed(above) == {"remote": PROXIED}
    assert turns(back) == turns(above) == {1: PROXIED}
    assert (back["time_wait_created"], above["time_wait_created"]) == (PROXIED, 0)


def test_ipv6_and_dual_stack_are_all_the_same(profiled):
    figures = profiled.of("dual")
    assert (figures["opened"], closed(figures), turns(figures)) == (2, {"remote": 2}, {3: 2})


def test_a_reset_of_the_peer_is_told_apart(profiled):
    figures = profiled.of("reset")
    assert closed(figures) == {"remote": 20}
    assert [one["reset"] for one in figures["closed"]] == [20]
    assert figures["time_wait_created"] == 0


def test_connections_from_before_are_counted_as_such(profiled):
    service = profiled.report.on_port(profiled.servers["before"].port).data
    assert service["connections_from_before"] == 1
    assert profiled.of("before")["opened"] == 1


def test_a_proxy_shows_how_many_ephemeral_ports_its_upstream_takes(profiled):
    found = profiled.report.service(unique("proxy-inside")).data["ephemeral_ports"]
    assert found == {"used": PROXIED, "available": EPHEMERAL_PORTS}


def test_without_hooks_on_socket_calls_the_life_cycle_is_still_exact(tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text('[profile]\nconnections = "life_cycle"\n')
    resets = partial(plain_nginx.nginx, tmp_path, extra=RESETS)
    with plain_nginx.nginx(tmp_path, "lifecycle", 5) as server, resets("linger") as linger, resets("unread") as unread:
        with Profiling(tmp_path, "--config", config) as profiling:
            made = request(server.port, 500)
            for _ in range(20):
                be_reset(linger.port, "/linger", b"")
                be_reset(unread.port, "/unread", bytes(4096))
            profiling.finish()
    figures = connections(profiling.report, server.port)
    assert (figures["opened"], closed(figures)) == (made, {"local": made})
    assert figures["time_wait_created"] == made
    assert turns(figures) == {}
    assert any("Turns" in note for note in profiling.report.data["notes"])
    for one in (linger, unread):
        figures = connections(profiling.report, one.port)
        assert (figures["opened"], closed(figures)) == (20, {"local": 20})
        assert [ended["reset"] for ended in figures["closed"]] == [20]


def time_wait_standing(pid: int) -> int:
    """What the kernel counts in the network namespace of a process."""
    text = Path(f"/proc/{pid}/net/sockstat").read_text()
    return int(re.search(r"^TCP:.* tw (\d+)", text, re.MULTILINE)[1])


def time_wait_ended(pid: int) -> int:
    """TcpExt TW: the kernel counts a TIME_WAIT socket when its 60 s are over."""
    names, values = [
        line.split()
        for line in Path(f"/proc/{pid}/net/netstat").read_text().splitlines()
        if line.startswith("TcpExt:")
    ]
    return int(values[names.index("TW")])


def assert_time_wait_agrees(folder: Path, number: int, to_the_end: bool) -> None:
    """Of so many sockets; `to_the_end` of the minute that they stand."""
    ours = dict(service_name=unique("timewait"), role="server")
    with namespace(unique("tlsprof-timewait")) as inside, start_agent() as agent:

        def total(name: str) -> float:
            return metrics.total(metrics.scrape(agent.url), name, **ours)

        with plain_nginx.nginx(folder, "timewait", 1, inside=inside) as server:
            assert time_wait_standing(server.pid) == time_wait_ended(server.pid) == 0
            assert request(server.port, number, inside=inside) == number
            wait_until(lambda: total("tlsprof_connections_closed_total") == number, "all closed")
            standing = time_wait_standing(server.pid)
            assert abs(standing - number) <= 0.005 * number
            assert abs(total("tlsprof_time_wait_created_total") - standing) <= 0.005 * number
            wait_until(
                lambda: abs(total("tlsprof_time_wait_sockets") - standing) <= 0.005 * number,
                "the gauge to reach the kernel's count",
            )
            if not to_the_end:
                return
            # All gone a minute later: by the kernel's count and by ours.
            wait_until(lambda: time_wait_standing(server.pid) == 0, "the end of TIME_WAIT", 90.0)
            assert abs(time_wait_ended(server.pid) - number) <= 0.005 * number
            wait_until(lambda: total("tlsprof_time_wait_sockets") == 0, "the gauge to follow")


def test_time_wait_agrees_with_the_kernels_counters(tmp_path):
    assert_time_wait_agrees(tmp_path, TIME_WAITS, to_the_end=False)


@pytest.mark.long
def test_time_wait_agrees_with_the_kernels_counters_to_its_end(tmp_path):
    """A minute, which the kernel does not let a test shorten."""
    assert_time_wait_agrees(tmp_path, LONG_TIME_WAITS, to_the_end=True)
