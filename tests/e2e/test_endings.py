"""How connections end: close_notify is no turn and says who closes; alerts with a reset behind them and
clients that say nothing are counted."""

import shutil
import ssl
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Iterator

import pytest

from harness import endings, other_stacks, servers, web_servers
from harness.certificates import Certificate
from harness.plain_nginx import unique
from harness.processes import Process, children, private_copy, run
from harness.profiler import Profiling, Report
from harness.scenarios import find, wait_closed
from harness.servers import Server, on_free_port
from harness.together import own_folder, together
from harness.waiting import wait_until

KEEP = "KeepAlive On\nMaxKeepAliveRequests 0\n"
POSTGRESQL = Path("/usr/lib/postgresql")
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
CONNECTIONS = 60
"""Of each version: together over the default threshold of findings."""
REQUESTS = 1
REJECTING = 20
HEALTH_CHECKS = 5


@contextmanager
def apache(folder: Path, certificate: Certificate) -> Iterator[Server]:
    """Its workers may not look into the folders of tests: it has nothing but an error to show."""
    with web_servers.apache(folder, certificate, "event", KEEP + "ErrorDocument 403 ok\n") as server:
        yield server


@contextmanager
def postgresql(_folder: Path, certificate: Certificate) -> Iterator[Server]:
    """A cluster of its own, which trusts everybody. Its user may not look into the folders of tests."""
    programs = max(POSTGRESQL.glob("*/bin"))
    with TemporaryDirectory() as name:
        data = Path(name)
        shutil.copy(certificate.cert, data)
        shutil.copy(certificate.key, data)
        cert, key = (data / Path(path).name for path in (certificate.cert, certificate.key))
        key.chmod(0o600)
        for path in (data, cert, key):
            shutil.chown(path, "postgres")
        made = run(
            [programs / "initdb", "-D", data / "cluster", "-A", "trust", "-N"], user="postgres", cwd=data
        )
        assert made.child.returncode == 0, made.describe()

        def start(port: int) -> Process:
            settings = dict(ssl="on", ssl_cert_file=cert, ssl_key_file=key, port=port)
            settings |= dict(unix_socket_directories="", listen_addresses="127.0.0.1")
            options = [f"--{name}={value}" for name, value in settings.items()]
            command = [programs / "postgres", "-D", data / "cluster", *options]
            return Process(command, user="postgres", cwd=data)

        with on_free_port(start) as server:
            yield server


@contextmanager
def redis(folder: Path, certificate: Certificate) -> Iterator[Server]:
    """With TLS on its one port, and nothing kept."""

    def start(port: int) -> Process:
        settings = {"port": 0, "tls-port": port, "tls-auth-clients": "no", "save": "", "bind": "127.0.0.1"}
        settings |= {"tls-cert-file": certificate.cert, "tls-key-file": certificate.key}
        options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        program = private_copy("redis-server", folder, unique("redis"))
        return Process([program, *options], cwd=folder)

    with on_free_port(start) as server:
        yield server


@contextmanager
def short(folder: Path, certificate: Certificate) -> Iterator[Server]:
    """Answers of two bytes, like alerts."""
    with servers.python(folder, "short_server.py", certificate) as server:
        yield server


@contextmanager
def jetty(folder: Path, certificate: Certificate) -> Iterator[Server]:
    with other_stacks.jetty(folder, certificate) as (server, _without_tls):
        yield server


BY_MAVEN = {"jetty": jetty} if shutil.which("mvn") else {}
"""What is tried where it can be had."""

SERVERS = {
    "nginx": web_servers.nginx,
    "apache": apache,
    "haproxy": web_servers.haproxy,
    "node": servers.node,
    "go": other_stacks.go,
    "java": other_stacks.java,
    "postgresql": postgresql,
    "redis": redis,
    "short": short,
    "short-closed": short,
    **BY_MAVEN,
}
ENDS = {
    # Its client gives its name first, and is answered.
    "postgresql": (endings.notify_after_queries, 1),
    "redis": (endings.notify_after_commands, 0),
    "short": (endings.notify_after_short_answers, 0),
    "short-closed": (endings.close_after_short_requests, 1),
}
"""What a client does other than HTTP, and the turns of that besides its requests."""
HTTP = (endings.notify_after_requests, 0)


def connections(report: Report, port: int) -> dict:
    found = [one for one in report.on_port(port).data["connections"] if one["role"] == "server"]
    assert len(found) == 1, report.on_port(port)
    return found[0]


@pytest.fixture(scope="module")
def notified(rsa, tmp_path_factory) -> tuple[Report, dict[str, int]]:
    """One profile of all servers, and the port of each."""
    folder = tmp_path_factory.mktemp("endings")
    starts = {name: start(own_folder(folder, name), rsa) for name, start in SERVERS.items()}
    with together(starts) as running:
        ports = {name: server.port for name, server in running.items()}
        with Profiling(folder) as profiling:
            for name, port in ports.items():
                end, _ = ENDS.get(name, HTTP)
                for version in VERSIONS:
                    for _ in range(CONNECTIONS):
                        end(port, version, rsa, REQUESTS)
            profiling.finish()
    return profiling.report, ports


@pytest.mark.parametrize("name", SERVERS)
def test_a_close_notify_is_no_turn_and_says_who_closes(name, notified):
    report, ports = notified
    figures = connections(report, ports[name])
    made = CONNECTIONS * len(VERSIONS)
    turns = REQUESTS + ENDS.get(name, HTTP)[1]
    closed = [
        (one["closed_by"], row["from"], row["to"], row["connections"])
        for one in figures["closed"]
        for row in one["turns"]
    ]
    assert figures["opened"] == made
    assert closed == [("remote", turns, turns, made)]
    assert find(report, ports[name], "connections-closed-after-n-turns") is None


LOGGING = "error_log stderr info;"
REJECTERS = {
    "python": (endings.reject_in_python, "unknown_ca", 48),
    "gnutls": (endings.reject_in_gnutls, "bad_certificate", 42),
}
"""With the alerts that they send (RFC 8446, 6)."""


@pytest.mark.parametrize("client", REJECTERS)
@pytest.mark.parametrize("library", ["auto", "off"])
def test_each_alert_with_a_reset_behind_it_is_a_failure(client, library, rsa, tmp_path):
    reject, name, number = REJECTERS[client]
    config = tmp_path / "tlsprof.toml"
    config.write_text(f'[profile]\nlibrary = "{library}"\n')
    program = private_copy("nginx", tmp_path, unique("rejected"))
    with web_servers.nginx(tmp_path, rsa, extra=LOGGING, program=program) as server:
        with Profiling(tmp_path, "--config", config) as profiling:
            for version in VERSIONS:
                for _ in range(REJECTING):
                    reject(server.port, version)
            profiling.finish()
        log = server.process.stderr
    service = profiling.report.on_port(server.port)
    alerts = {row["description"]: row["count"] for row in service.data["alerts"]}
    rejected = REJECTING * len(VERSIONS)
    assert log.count(f"SSL alert number {number}") == rejected, log
    # In TLS 1.3 GnuTLS encrypts its alert: its length says that it is one, not which.
    assert alerts == {name: REJECTING if client == "gnutls" else rejected}
    assert service.outcomes("server") == {"completed": 0, "failed": rejected, "abandoned": 0}


CHECKED = {
    "nginx": web_servers.nginx,
    "haproxy": web_servers.haproxy,
    "stunnel": web_servers.stunnel,
    "node": servers.node,
    "go": other_stacks.go,
    "redis": redis,
    **BY_MAVEN,
}


def open_sockets(pid):
    """Of a server's processes."""
    found = 0
    for entry in (entry for one in (pid, *children(pid)) for entry in Path(f"/proc/{one}/fd").iterdir()):
        with suppress(FileNotFoundError):  # closed since
            found += entry.readlink().name.startswith("socket:")
    return found


def test_clients_that_say_nothing_are_connections(rsa, tmp_path):
    starts = {name: start(own_folder(tmp_path, name), rsa) for name, start in CHECKED.items()}
    with together(starts) as running:
        ports = {name: server.port for name, server in running.items()}
        sockets = {name: open_sockets(server.pid) for name, server in running.items()}
        with Profiling(tmp_path) as profiling:
            for port in ports.values():
                # Most servers take them one after another: when the last is gone, those that were reset are.
                for reset in (True, False):
                    for _ in range(HEALTH_CHECKS):
                        endings.check_health(port, reset)
            for name, port in ports.items():
                wait_closed(port)
                # One that was reset is in no list of the kernel, and may still be a thread's that waits for a CPU.
                closed = lambda: open_sockets(running[name].pid) <= sockets[name]
                wait_until(closed, f"{name} to close what was reset")
            profiling.finish()
    for name, port in ports.items():
        figures = connections(profiling.report, port)
        closed = [(one["closed_by"], one["count"]) for one in figures["closed"]]
        assert figures["opened"] == 2 * HEALTH_CHECKS, name
        assert closed == [("remote", 2 * HEALTH_CHECKS)], name
        # These two send something to a client that has gone, or reset the connection themselves.
        resets = HEALTH_CHECKS * (2 if name in ("stunnel", "redis") else 1)
        assert figures["closed"][0]["reset"] == resets, name
