"""Services in which there is nothing to probe: what their sockets tell is shown all the same."""

import socket

import pytest

from harness.paths import SERVERS
from harness.processes import private_copy
from harness.profiler import Profiling, Report
from harness.servers import SYSTEM_PYTHON, announcing

CONNECTIONS = 200
NOTE = "No TLS library that tlsprof can probe"


def connect(port: int) -> None:
    for _ in range(CONNECTIONS):
        with socket.create_connection(("127.0.0.1", port), 10.0) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while client.recv(4096):
                pass


def plain_server(folder):
    command = [private_copy(SYSTEM_PYTHON, folder), "-u", SERVERS / "plain_server.py"]
    return announcing(command, env={"PYTHONHOME": "/usr"})


def notes(report: Report) -> list[str]:
    return [note for note in report.data["notes"] if note.startswith(NOTE)]


@pytest.mark.parametrize("selected_by", ["pid", "port", "nothing"])
def test_connections_and_cpu_time_are_shown(selected_by, tmp_path):
    """On a whole host it is no news that a service has no TLS library, else it is said."""
    with plain_server(tmp_path) as server:
        options = {"pid": ["--pid", server.pid], "port": ["--port", server.port], "nothing": []}
        with Profiling(tmp_path, *options[selected_by]) as profiling:
            connect(server.port)
            profiling.finish()
        service = profiling.report.on_port(server.port)
    assert service.data["tls_libraries"] == []
    (connections,) = service.data["connections"]
    assert (connections["role"], connections["opened"]) == ("server", CONNECTIONS)
    assert sum(service.data["cpu_seconds"].values()) > 0
    assert bool(notes(profiling.report)) == (selected_by != "nothing")


def test_an_idle_service_is_not_in_the_report_of_a_whole_host(tmp_path):
    with plain_server(tmp_path) as server:
        with Profiling(tmp_path) as profiling:
            profiling.finish()
        assert all(server.port not in service.ports for service in profiling.report.services)
