"""Our own servers: each context manager yields a listening `Server`."""

import json
import socket
import ssl
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Sequence

from .certificates import Certificate
from .network import free_port, is_listening
from .paths import SELFTIMED, SERVERS
from .processes import Argument, Process, private_copy
from .waiting import wait_until

PORT_ATTEMPTS = 5
"""A free port may be taken before the server binds it; then another is tried."""

START_SECONDS = 180.0
"""Some start beside others on a busy machine; no test is about how long they take."""

SYSTEM_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True)
class Server:
    """A server under test."""

    port: int
    process: Process

    @property
    def pid(self) -> int:
        return self.process.pid


def nginx_folders(folder: Path, name: str = "nginx") -> str:
    """Of a configuration of nginx: where it puts what it cannot keep in memory. Else that belongs to the system."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return "\n    ".join(f"{kind}_temp_path {folder}/{name}-{kind};" for kind in kinds)


@contextmanager
def on_free_port(start: Callable[[int], Process]) -> Iterator[Server]:
    """Starts a server that must be told its port, and waits until it listens."""
    for attempt in range(PORT_ATTEMPTS):
        port = free_port()
        with start(port) as process:
            wait_until(
                lambda: is_listening(process.pid, port) or not process.alive(),
                f"listening on {port}: {process.describe()}",
                START_SECONDS,
            )
            if process.alive():
                yield Server(port, process)
                return
            if attempt == PORT_ATTEMPTS - 1:
                raise RuntimeError(f"did not start: {process.describe()}")


@contextmanager
def announcing(command: Sequence[Argument], **options: Any) -> Iterator[Server]:
    """Starts a server that binds port 0 and prints `port N`."""
    with Process(command, **options) as process:
        line = process.wait_for_line("port ", START_SECONDS)
        yield Server(int(line.split()[1]), process)


@dataclass(frozen=True)
class Measured:
    """What the self-timed server measured, from its JSON line."""

    completed: int
    resumed: int
    failed: int
    abandoned: int
    cpu_seconds: float
    completed_cpu_seconds: float
    wall_seconds: float
    record_seconds: float
    """Records of answers in libcrypto, by the record clock; 0 without."""

    @property
    def full(self) -> int:
        return self.completed - self.resumed

    @property
    def outcomes(self) -> dict[str, int]:
        return {
            "completed": self.completed,
            "failed": self.failed,
            "abandoned": self.abandoned,
        }


class SelfTimed(Server):
    """The self-timed server; `finish` ends it and gives its own measurement."""

    def finish(self) -> Measured:
        self.process.child.stdin.close()
        status = self.process.wait(START_SECONDS)
        assert status == 0, self.process.describe()
        return Measured(**json.loads(self.process.stdout.splitlines()[-1]))


@contextmanager
def selftimed(
    form: str, certificate: Certificate, *options: Argument, program: Path = SELFTIMED, **process: Any
) -> Iterator[SelfTimed]:
    """Our C server in the form `threads`, `epoll` or `fork`."""
    command = [program, f"--{form}", "--cert", certificate.cert, "--key", certificate.key, *options]
    with announcing(command, **process) as server:
        yield SelfTimed(server.port, server.process)


@contextmanager
def python(
    folder: Path,
    script: str,
    certificate: Certificate,
    *options: Argument,
    env: Optional[dict[str, str]] = None,
) -> Iterator[Server]:
    """A Python server of tests/servers, run by a copy of the system's Python."""
    command = [private_copy(SYSTEM_PYTHON, folder), "-u", SERVERS / script]
    command += [certificate.cert, certificate.key, *options]
    # The copy would look for its library beside itself.
    with announcing(command, env={"PYTHONHOME": "/usr", **(env or {})}) as server:
        yield server


@contextmanager
def node(folder: Path, certificate: Certificate) -> Iterator[Server]:
    command = [private_copy("node", folder), SERVERS / "node_server.js"]
    with announcing([*command, certificate.cert, certificate.key]) as server:
        yield server


@contextmanager
def node_cluster(
    folder: Path, certificate: Certificate, workers: int, keys: str, name: str
) -> Iterator[Server]:
    """Processes that share a port; `keys` of tickets are `shared` or `own`. The program is a copy of
    that name."""
    command = [private_copy("node", folder, name), SERVERS / "node_cluster.js"]
    with announcing([*command, certificate.cert, certificate.key, workers, keys]) as server:
        yield server


@contextmanager
def node_http2(
    folder: Path,
    certificate: Certificate,
    suites: str,
    parameters: Sequence[Path] = (),
    name: str = "node",
) -> Iterator[Server]:
    """HTTP/2 with the cipher suites named, and DH parameters if there are some."""
    command = [private_copy("node", folder, name), SERVERS / "node_http2_server.js"]
    with announcing([*command, certificate.cert, certificate.key, suites, *parameters]) as server:
        yield server


@contextmanager
def s_server(folder: Path, certificate: Certificate) -> Iterator[Server]:
    def start(port: int) -> Process:
        return Process(
            [private_copy("openssl", folder), "s_server", "-www", "-quiet", "-accept", f"127.0.0.1:{port}"]
            + ["-cert", certificate.cert, "-key", certificate.key]
        )

    with on_free_port(start) as server:
        yield server


@contextmanager
def plain_http() -> Iterator[Server]:
    """A server without TLS, behind stunnel or for tests that need one."""
    with announcing([sys.executable, "-u", SERVERS / "plain_server.py"]) as server:
        yield server


@contextmanager
def stalled_clients(port: int, count: int) -> Iterator[None]:
    """Clients in the middle of their handshakes: they have sent a ClientHello and got the
    server's flight, and say no more."""
    context = ssl.create_default_context()
    with ExitStack() as stack:
        for _ in range(count):
            hello = ssl.MemoryBIO()
            client = context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
            with suppress(ssl.SSLWantReadError):
                client.do_handshake()
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10.0))
            connection.sendall(hello.read())
            assert connection.recv(1)
        yield
