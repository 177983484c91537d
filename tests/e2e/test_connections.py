"""TCP connections: turns, who closes, TIME_WAIT; exact counts, against the kernel's own."""

import re
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from harness import metrics, plain_nginx
from harness.namespaces import namespace
from harness.plain_nginx import request, unique
from harness.processes import run
from harness.profiler import Profiling, Report, start_agent
from harness.waiting import wait_until

TIME_WAITS = 5000
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


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


@pytest.mark.parametrize("limit, requests", [(1, 300), (5, 1500), (40, 4000), (100, 5000)])
def test_servers_that_limit_requests_show_exactly_that_many_turns(limit, requests, tmp_path):
    with plain_nginx.nginx(tmp_path, "turns", limit) as server:
        with Profiling(tmp_path) as profiling:
            made = request(server.port, requests)
            profiling.finish()
    figures = connections(profiling.report, server.port)
    assert made == requests // limit
    assert figures["opened"] == made
    assert turns(figures) == {limit: made}
    assert closed(figures) == {"local": made}
    assert figures["time_wait_created"] == made


@pytest.mark.parametrize("tls", ["TLSv1.2", "TLSv1.3"])
def test_the_messages_of_a_tls_handshake_are_no_turns(tls, rsa, tmp_path):
    extra = f"ssl_certificate {rsa.cert}; ssl_certificate_key {rsa.key}; ssl_protocols {tls};"
    extra += plain_nginx.ANSWER
    with plain_nginx.nginx(tmp_path, "tls", 5, extra, parameters=" ssl") as server:
        with Profiling(tmp_path) as profiling:
            made = request(server.port, 250, rsa.cert)
            profiling.finish()
    assert made == 50
    assert turns(connections(profiling.report, server.port)) == {5: made}


def test_a_connection_that_the_client_closes_leaves_no_time_wait(tmp_path):
    with plain_nginx.nginx(tmp_path, "closes") as server:
        with Profiling(tmp_path) as profiling:
            for requests in (1, 2, 7, 130):
                assert request(server.port, requests) == 1
            profiling.finish()
    figures = connections(profiling.report, server.port)
    assert closed(figures) == {"remote": 4}
    assert figures["time_wait_created"] == 0
    rows = [(row["from"], row["to"]) for row in figures["closed"][0]["turns"]]
    assert rows == [(1, 1), (2, 2), (7, 7), (129, 255)]
    # What nginx read are the requests, byte by byte.
    assert figures["bytes_received"] == 140 * len(REQUEST)


def test_a_proxy_without_keep_alive_shows_its_churn_in_the_client_role(tmp_path):
    with plain_nginx.nginx(tmp_path, "upstream") as upstream:
        proxy = (
            f"location / {{ proxy_pass http://127.0.0.1:{upstream.port};"
            ' proxy_http_version 1.1; proxy_set_header Connection "keep-alive"; }'
        )
        with plain_nginx.nginx(tmp_path, "proxy", extra=proxy) as server:
            with Profiling(tmp_path) as profiling:
                assert request(server.port, 500) == 1
                profiling.finish()
    front = connections(profiling.report, server.port)
    back = connections(profiling.report, server.port, "client")
    above = connections(profiling.report, upstream.port)
    assert (front["opened"], front["time_wait_created"]) == (1, 0)
    assert closed(back) == {"local": 500} and closed(above) == {"remote": 500}
    assert turns(back) == turns(above) == {1: 500}
    assert (back["time_wait_created"], above["time_wait_created"]) == (500, 0)


def test_ipv6_and_dual_stack_are_all_the_same(tmp_path):
    with plain_nginx.nginx(tmp_path, "dual", address="[::]", parameters=" ipv6only=off") as server:
        with Profiling(tmp_path) as profiling:
            for host in ("::1", "127.0.0.1"):
                with socket.create_connection((host, server.port), 10.0) as client:
                    for _ in range(3):
                        client.sendall(REQUEST)
                        assert client.recv(4096)
            profiling.finish()
    figures = connections(profiling.report, server.port)
    assert (figures["opened"], closed(figures), turns(figures)) == (2, {"remote": 2}, {3: 2})


def test_a_reset_of_the_peer_is_told_apart(tmp_path):
    with plain_nginx.nginx(tmp_path, "reset") as server:
        with Profiling(tmp_path) as profiling:
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", server.port), 10.0) as client:
                    client.sendall(REQUEST)
                    assert client.recv(4096)
                    # Linger for 0 s: close sends RST.
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            profiling.finish()
    figures = connections(profiling.report, server.port)
    assert closed(figures) == {"remote": 20}
    assert [one["reset"] for one in figures["closed"]] == [20]
    assert figures["time_wait_created"] == 0


def test_connections_from_before_are_counted_as_such(tmp_path):
    with plain_nginx.nginx(tmp_path, "before") as server:
        with socket.create_connection(("127.0.0.1", server.port), 10.0) as early:
            early.sendall(REQUEST)
            assert early.recv(4096)
            with Profiling(tmp_path) as profiling:
                early.sendall(REQUEST)
                assert early.recv(4096)
                early.close()
                assert request(server.port, 3) == 1
                profiling.finish()
    service = profiling.report.on_port(server.port).data
    assert service["connections_from_before"] == 1
    assert connections(profiling.report, server.port)["opened"] == 1


def test_without_hooks_on_socket_calls_the_life_cycle_is_still_exact(tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text('[profile]\nconnections = "life_cycle"\n')
    with plain_nginx.nginx(tmp_path, "lifecycle", 5) as server:
        with Profiling(tmp_path, "--config", config) as profiling:
            made = request(server.port, 500)
            profiling.finish()
    figures = connections(profiling.report, server.port)
    assert (figures["opened"], closed(figures)) == (made, {"local": made})
    assert figures["time_wait_created"] == made
    assert turns(figures) == {}
    assert any("Turns" in note for note in profiling.report.data["notes"])


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


def test_time_wait_agrees_with_the_kernels_counters(tmp_path):
    ours = dict(service_name=unique("timewait"), role="server")
    with namespace(unique("tlsprof-timewait")) as inside, start_agent() as agent:

        def total(name: str) -> float:
            return metrics.total(metrics.scrape(agent.url), name, **ours)

        with plain_nginx.nginx(tmp_path, "timewait", 1, inside=inside) as server:
            assert time_wait_standing(server.pid) == time_wait_ended(server.pid) == 0
            assert request(server.port, TIME_WAITS, inside=inside) == TIME_WAITS
            wait_until(lambda: total("tlsprof_connections_closed_total") == TIME_WAITS, "all closed")
            standing = time_wait_standing(server.pid)
            assert abs(standing - TIME_WAITS) <= 0.005 * TIME_WAITS
            assert abs(total("tlsprof_time_wait_created_total") - standing) <= 0.005 * TIME_WAITS
            wait_until(
                lambda: abs(total("tlsprof_time_wait_sockets") - standing) <= 0.005 * TIME_WAITS,
                "the gauge to reach the kernel's count",
            )
            # All gone a minute later: by the kernel's count and by ours.
            wait_until(lambda: time_wait_standing(server.pid) == 0, "the end of TIME_WAIT", 90.0)
            assert abs(time_wait_ended(server.pid) - TIME_WAITS) <= 0.005 * TIME_WAITS
            wait_until(lambda: total("tlsprof_time_wait_sockets") == 0, "the gauge to follow", 5.0)


def test_a_proxy_shows_how_many_ephemeral_ports_its_upstream_takes(tmp_path):
    connections_made = 400
    ports = 2000
    with namespace(unique("tlsprof-ports")) as inside:
        command = ["sysctl", "-qw", f"net.ipv4.ip_local_port_range=30000 {30000 + ports - 1}"]
        assert run([*inside, *command]).child.returncode == 0
        with plain_nginx.nginx(tmp_path, "upstream", inside=inside) as upstream:
            proxy = (
                f"location / {{ proxy_pass http://127.0.0.1:{upstream.port};"
                ' proxy_http_version 1.1; proxy_set_header Connection "keep-alive"; }'
            )
            with plain_nginx.nginx(tmp_path, "proxy", extra=proxy, inside=inside) as server:
                name = unique("proxy")
                with Profiling(tmp_path) as profiling:
                    assert request(server.port, connections_made, inside=inside) == 1
                    profiling.finish()
    services = [one for one in profiling.report.services if one.name == name]
    assert len(services) == 1, profiling.report.names()
    found = services[0].data["ephemeral_ports"]
    assert found == {"used": connections_made, "available": ports}
