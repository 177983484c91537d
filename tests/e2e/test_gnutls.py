"""GnuTLS, probed: against a server that counts and times its own handshakes, and its own tools."""

import shutil
import socket
import ssl
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Iterator

import pytest

from harness import libraries, other_stacks, servers
from harness.certificates import Certificate
from harness.load import Load, counted, run_load
from harness.network import open_sockets
from harness.paths import COROUTINE_LIBRARY, SELFTIMED_GNUTLS
from harness.processes import Process, private_copy, run
from harness.profiler import Profiling, Service, profile_load
from harness.sequential import assert_agrees, repeats
from harness.targets import TARGETS
from harness.waiting import wait_until

GROUPS = "SECP256R1:X25519"
CPU_TOLERANCE = 0.03
FORMS = ["threads", "epoll"]
VERSIONS = ["1.2", "1.3"]

BROKEN = dict(abort_flight=25, garbage=20, no_group=20, no_version=20, reject=20)
"""Without resets and half messages: whether a client that does that is gone or has sent nonsense
depends on when GnuTLS looks."""

LOADS = {tls: Load(tls=tls, full=250, resume=250, **BROKEN) for tls in VERSIONS}

REASONS = {
    "unexpected packet length": 2 * LOADS["1.2"].garbage,
    "no cipher suites": LOADS["1.2"].no_group,
    "no common key share": LOADS["1.3"].no_group,
    "unsupported version packet": 2 * LOADS["1.2"].no_version,
    "fatal alert received": LOADS["1.2"].reject,
    # A client's alert in clear where GnuTLS takes only encrypted records.
    "decryption failed": LOADS["1.3"].reject,
}


@contextmanager
def selftimed(form: str, certificate: Certificate, **options) -> Iterator[servers.SelfTimed]:
    options.setdefault("program", SELFTIMED_GNUTLS)
    with servers.selftimed(form, certificate, "--groups", GROUPS, **options) as server:
        yield server


def reasons(service: Service) -> dict[str, int]:
    found: dict[str, int] = {}
    for group in service.groups(role="server", outcome="failed"):
        for error in group["errors"]:
            found[error["name"]] = found.get(error["name"], 0) + error["count"]
    return found


def assert_by_library(service: Service) -> None:
    """The control: these figures are the library's, not those of socket calls."""
    assert_no_sockets(service)
    (library,) = service.data["tls_libraries"]
    assert (library["kind"], library["state"]) == ("GnuTLS", "profiled")
    assert library["version"].startswith("3.")


def assert_no_sockets(service: Service) -> None:
    assert {group["source"] for group in service.groups()} == {"library"}
    assert service.data["source"] == "library_probes"


@pytest.mark.parametrize("form", FORMS)
def test_counts_equal_the_servers_own(form, rsa, tmp_path):
    with selftimed(form, rsa) as server:
        report, seen = profile_load(tmp_path, server.port, *LOADS.values())
        measured = server.finish()
    service = report.service(SELFTIMED_GNUTLS.name)
    assert measured.completed == seen.completed == 1000
    assert service.outcomes("server") == measured.outcomes
    assert reasons(service) == REASONS
    assert counted(service.groups(role="server", outcome="completed")) == seen.handshakes
    assert service.resumed("server") == measured.resumed
    assert_by_library(service)
    assert not report.losses_of_events()


@pytest.mark.parametrize("form", FORMS)
def test_clients_that_go_away_are_counted_as_the_server_does(form, rsa, tmp_path):
    load = Load(full=20, abort_hello=40, abort_flight=40, reset=40)
    with selftimed(form, rsa) as server:
        report, _seen = profile_load(tmp_path, server.port, load)
        measured = server.finish()
    service = report.service(SELFTIMED_GNUTLS.name)
    assert service.outcomes("server") == measured.outcomes
    assert measured.failed + measured.abandoned == load.aborted


@pytest.mark.parametrize("links", ["single", "multi"])
def test_links_of_uprobes(links, rsa, tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text(f'[profile]\nuprobes = "{links}"\n')
    load = Load(full=50, resume=50, abort_flight=10, reject=10)
    with selftimed("epoll", rsa) as server:
        report, _seen = profile_load(tmp_path, server.port, load, options=["--config", config])
        measured = server.finish()
    service = report.service(SELFTIMED_GNUTLS.name)
    assert service.outcomes("server") == measured.outcomes
    assert_by_library(service)


def timed(folder: Path, certificate: Certificate, form: str, tls: str) -> float:
    """CPU time by tlsprof to the server's own."""
    program = private_copy(str(SELFTIMED_GNUTLS), folder, f"{form}-{tls}")
    with selftimed(form, certificate, program=program) as server:
        with Profiling(folder) as profiling:
            run_load(Load(tls=tls, full=150, resume=150), server.port)
            profiling.finish()
        service = profiling.report.on_port(server.port)
        return service.cpu_seconds(outcome="completed") / server.finish().completed_cpu_seconds


@pytest.mark.parametrize(
    ("form", "tls"),
    [
        pytest.param("threads", "1.3"),
        *(
            pytest.param(form, tls, marks=pytest.mark.long)
            for form, tls in [("threads", "1.2"), ("epoll", "1.2"), ("epoll", "1.3")]
        ),
    ],
)
def test_cpu_time_equals_the_servers_own(form, tls, rsa, tmp_path_factory):
    figures = repeats(lambda: timed(tmp_path_factory.mktemp("timed"), rsa, form, tls))
    assert_agrees(figures, expected=1.0, within=CPU_TOLERANCE, name=f"{form}-{tls}")


@contextmanager
def silent_clients(server: servers.Server, number: int) -> Iterator[list[socket.socket]]:
    """Clients that the server has accepted, and so has a session for; they say nothing yet."""
    before = open_sockets(server.pid)
    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 10.0))
            for _ in range(number)
        ]
        wait_until(lambda: open_sockets(server.pid) == before + number, "all are accepted")
        yield clients


def say_hello(client: socket.socket) -> None:
    """A whole handshake and a request."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(client) as wrapped:
        wrapped.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert wrapped.recv(100)


# Losses are of the whole host.
@pytest.mark.host
def test_sessions_that_are_older_than_the_profile(rsa, tmp_path):
    """Nobody saw their role in the library, nor their connections open: each is a known loss."""
    with selftimed("epoll", rsa) as server, silent_clients(server, 5) as clients:
        with Profiling(tmp_path) as profiling:
            for client in clients:
                say_hello(client)
            seen = run_load(Load(full=20), server.port)
            profiling.finish()
        service = profiling.report.service(SELFTIMED_GNUTLS.name)
        assert server.finish().completed == 25
    assert service.outcomes("server") == {"completed": seen.completed, "failed": 0, "abandoned": 0}
    losses = {loss["reason"]: loss["count"] for loss in profiling.report.data["losses"]}
    assert losses["began_before_attach"] == len(clients)


def test_a_session_whose_handshake_has_not_begun_is_not_counted(rsa, tmp_path):
    """The server ends with three of them."""
    with selftimed("epoll", rsa) as server, Profiling(tmp_path) as profiling:
        with silent_clients(server, 3):
            run_load(Load(full=5), server.port)
            server.finish()
        profiling.finish()
    service = profiling.report.service(SELFTIMED_GNUTLS.name)
    assert service.outcomes("server") == {"completed": 5, "failed": 0, "abandoned": 0}


def test_gnutls_serv_and_cli(rsa, tmp_path):
    """A real server, and a real client in its own role."""
    client = private_copy("gnutls-cli", tmp_path)
    with other_stacks.gnutls_serv(tmp_path, rsa) as server:
        with Profiling(tmp_path) as profiling:
            seen = [run_load(load, server.port) for load in TARGETS["gnutls-serv"].loads(plain=False)]
            # Its standard input ends at once, and so does it.
            done = run([client, "--insecure", "--port", server.port, "localhost"])
            assert done.child.returncode == 0, done.describe()
            profiling.finish()
    report = profiling.report
    service, visitor = report.on_port(server.port), report.service(client.name)
    completed = sum(one.completed for one in seen) + 1
    assert service.count(role="server", outcome="completed") == completed
    assert visitor.outcomes("client") == {"completed": 1, "failed": 0, "abandoned": 0}
    assert_by_library(service)
    # It has ended, and its libraries with it.
    assert_no_sockets(visitor)


@pytest.mark.host
def test_a_bystander_that_switches_stacks_is_spared(rsa, tmp_path):
    """A process that maps the library and coroutines: return probes could break it."""
    library = libraries.loaded_by(SELFTIMED_GNUTLS, "libgnutls.so.30").resolve()
    copy = tmp_path / "lib" / "libgnutls.so.30"
    copy.parent.mkdir()
    shutil.copy(library, copy)
    bystander = [servers.SYSTEM_PYTHON, servers.SERVERS / "map_files.py", COROUTINE_LIBRARY, copy]
    with Process(bystander) as holder, selftimed("epoll", rsa, env={"LD_LIBRARY_PATH": str(copy.parent)}) as server:
        holder.wait_for_line("ready")
        report, seen = profile_load(tmp_path, server.port, Load(full=20))
        server.finish()
    service = report.service(SELFTIMED_GNUTLS.name)
    (found,) = service.data["tls_libraries"]
    assert found["state"].startswith(f"not profiled: process {holder.pid} ("), found
    assert "may switch stacks" in found["state"]
    assert service.count(source="library") == 0
    assert service.count(source="socket", outcome="completed") == seen.completed
