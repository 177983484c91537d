"""A server that switches stacks in the middle of handshakes, and clients that make it do so."""

import socket
import ssl
from contextlib import ExitStack, contextmanager
from typing import Iterator, Optional

from .certificates import Certificate
from .paths import COROUTINE_LIBRARY, COROUTINES
from .servers import Server, announcing

TIMEOUT_SECONDS = 10.0
CLIENTS = 8


@contextmanager
def server(
    certificate: Certificate, env: Optional[dict[str, str]] = None, late: bool = False
) -> Iterator[Server]:
    """Our coroutine server; a late one loads its coroutines when it is told a line."""
    command = [COROUTINES, certificate.cert, certificate.key, COROUTINE_LIBRARY]
    with announcing([*command, *(["--late"] if late else [])], env=env) as started:
        yield started


def interleave(port: int) -> None:
    """Handshakes that begin one after the other before the first one ends, and end in the order
    in which they began: a stack of return addresses would come out wrong."""
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(port)) for _ in range(CLIENTS)]
        for client in clients:
            client.begin()
        for client in clients:
            client.finish()


class Client:
    """A TLS client that can stop in the middle of its handshake."""

    def __init__(self, port: int):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)

    def begin(self) -> None:
        """Sends the hello and gets an answer: the server waits inside its handshake then."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._send()
            self._receive()

    def finish(self) -> None:
        """Ends the handshake, and has a byte echoed."""
        self._until_done(self._tls.do_handshake)
        self._tls.write(b"x")
        assert self._until_done(lambda: self._tls.read(1)) == b"x"

    def _until_done(self, call):
        while True:
            try:
                result = call()
            except ssl.SSLWantReadError:
                self._send()
                self._receive()
            else:
                self._send()
                return result

    def _send(self) -> None:
        self._socket.sendall(self._outgoing.read())

    def _receive(self) -> None:
        received = self._socket.recv(65536)
        assert received, "the server is gone"
        self._incoming.write(received)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_exception) -> None:
        self._socket.close()
