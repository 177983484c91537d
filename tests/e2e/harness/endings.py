"""Clients that end connections in their own ways, down to the bytes."""

import socket
import ssl
import struct
from contextlib import suppress
from typing import Optional

from .certificates import Certificate
from .processes import run

TIMEOUT_SECONDS = 20.0
REQUEST = b"GET /keep HTTP/1.1\r\nHost: localhost\r\n\r\n"

POSTGRESQL_TLS = struct.pack("!II", 8, 80877103)
"""SSLRequest (PostgreSQL's protocol, "SSL Session Encryption")."""
POSTGRESQL_START = b"user\0postgres\0database\0postgres\0\0"
POSTGRESQL_QUERY = b"SELECT 1\0"


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)


class Client:
    """A TLS client that decides itself when its close_notify is sent, and waits for the server's FIN."""

    def __init__(self, port: int, version: ssl.TLSVersion, certificate: Optional[Certificate], hello: bytes = b""):
        context = ssl.create_default_context(cafile=certificate and certificate.cert)
        context.check_hostname = False
        context.minimum_version = context.maximum_version = version
        self._socket = connect(port)
        if hello:
            self._socket.sendall(hello)
            assert self._socket.recv(1) == b"S"
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        self._drive(self._tls.do_handshake)

    def _drive(self, act):
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                self._flush()
                received = self._socket.recv(65536)
                if received:
                    self._in.write(received)
                else:
                    self._in.write_eof()
            finally:
                self._flush()

    def _flush(self) -> None:
        pending = self._out.read()
        if pending:
            self._socket.sendall(pending)

    def exchange(self, request: bytes, end: bytes | tuple[bytes, ...]) -> None:
        """Sends a request and reads until its answer ends."""
        self._tls.write(request)
        self._flush()
        answer = b""
        while not answer.endswith(end):
            received = self._drive(lambda: self._tls.read(65536))
            assert received, answer
            answer += received

    def close(self) -> None:
        """A FIN and nothing else."""
        self._socket.close()

    def notify_and_wait(self) -> None:
        """Sends close_notify, and closes when the server has."""
        with self._socket:
            with suppress(ssl.SSLWantReadError):
                self._tls.unwrap()
            self._flush()
            with suppress(ConnectionResetError):
                while self._socket.recv(65536):
                    pass


def notify_after_requests(port: int, version: ssl.TLSVersion, certificate: Certificate, requests: int) -> None:
    client = Client(port, version, certificate)
    for _ in range(requests):
        client.exchange(REQUEST, (b"ok", b"ok\n"))
    client.notify_and_wait()


def notify_after_queries(port: int, version: ssl.TLSVersion, certificate: Certificate, queries: int) -> None:
    """The same of PostgreSQL, which has to be greeted first."""
    client = Client(port, version, certificate, POSTGRESQL_TLS)
    ready = b"Z\0\0\0\5I"
    client.exchange(struct.pack("!II", 8 + len(POSTGRESQL_START), 3 << 16) + POSTGRESQL_START, ready)
    for _ in range(queries):
        client.exchange(b"Q" + struct.pack("!I", 4 + len(POSTGRESQL_QUERY)) + POSTGRESQL_QUERY, ready)
    client.notify_and_wait()


def notify_after_commands(port: int, version: ssl.TLSVersion, certificate: Certificate, commands: int) -> None:
    """The same of Redis."""
    client = Client(port, version, certificate)
    for _ in range(commands):
        client.exchange(b"PING\r\n", b"+PONG\r\n")
    client.notify_and_wait()


TWO_BYTES = b"ok"
SHORT_REQUEST = b"a request that is no alert"


def notify_after_short_answers(port: int, version: ssl.TLSVersion, certificate: Certificate, requests: int) -> None:
    """The same of a server that answers with two bytes."""
    client = Client(port, version, certificate)
    for _ in range(requests):
        client.exchange(SHORT_REQUEST, TWO_BYTES)
    client.notify_and_wait()


def close_after_short_requests(port: int, version: ssl.TLSVersion, certificate: Certificate, requests: int) -> None:
    """Two bytes in both directions; then it closes, without a close_notify."""
    client = Client(port, version, certificate)
    for _ in range(requests):
        client.exchange(TWO_BYTES, TWO_BYTES)
    client.exchange(SHORT_REQUEST, TWO_BYTES)
    client.close()


def check_health(port: int, reset: bool) -> None:
    """Connects and closes: TCP health checks do no more, some of them by a reset."""
    with connect(port) as client:
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reject_in_python(port: int, version: ssl.TLSVersion) -> None:
    """Does not trust the certificate, says so and closes; what it has not read makes that a reset."""
    context = ssl.create_default_context()
    context.minimum_version = context.maximum_version = version
    with connect(port) as plain, suppress(ssl.SSLCertVerificationError):
        context.wrap_socket(plain, server_hostname="localhost")
        raise AssertionError("the certificate is trusted")


def reject_in_gnutls(port: int, version: ssl.TLSVersion) -> None:
    names = {ssl.TLSVersion.TLSv1_2: "1.2", ssl.TLSVersion.TLSv1_3: "1.3"}
    priority = f"NORMAL:-VERS-ALL:+VERS-TLS{names[version]}"
    done = run(["gnutls-cli", "--priority", priority, "--port", port, "localhost"])
    assert done.child.returncode != 0, done.describe()
