"""Makes HTTP requests one after another, on as few connections as the server allows.

usage: http_client.py PORT REQUESTS [CERTIFICATE] [--threads N] [--resume] [--tls TLSv1_2]
                      [--no-keep-alive] [--pause SECONDS] [--spread SECONDS]

With a certificate it speaks TLS. Each of the threads makes so many requests, and with --resume
takes up the TLS session of its last connection. It pauses before each request. The threads begin one after
another within the spread. Prints what it took, as JSON.
"""

import argparse
import itertools
import json
import os
import re
import select
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Optional

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST_REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


PATIENCE = 60.0
"""Seconds: a server may load its TLS for the first handshake."""


@dataclass
class Made:
    """What was made."""

    connections: int = 0
    requests: int = 0
    resumed: int = 0
    """Connections whose TLS handshake was."""


def read_answer(connection: socket.socket) -> bytes:
    """Head and body of one answer; the head has a Content-Length."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += received(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    wanted = int(re.search(rb"(?i)^content-length: (\d+)", head, re.MULTILINE)[1]) - len(body)
    while wanted > 0:
        wanted -= len(received(connection))
    return head


def received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the server closed in the middle of an answer")
    return data


def own_address(number: int) -> str:
    """A loopback address for each connection. With one for all, a port that comes again within a
    minute would take the place of the server's TIME_WAIT socket."""
    return f"127.1.{number >> 8 & 255}.{number & 255}"


class Client:
    """One thread's requests."""

    _numbers = itertools.count()

    def __init__(self, options: argparse.Namespace, context: Optional[ssl.SSLContext], number: int):
        self._options = options
        self._delay = options.spread * number / options.threads
        self._context = context
        self._session: Optional[ssl.SSLSession] = None
        self.made = Made()

    def run(self) -> Made:
        time.sleep(self._delay)
        while self.made.requests < self._options.requests:
            with self._connect() as connection:
                self.made.connections += 1
                self._use_up(connection)
        return self.made

    def _connect(self) -> socket.socket:
        source = (own_address(next(self._numbers)), 0)
        address = ("127.0.0.1", self._options.port)
        connection = socket.create_connection(address, PATIENCE, source_address=source)
        # As every client of HTTP does: else the kernel waits before it sends a request after the
        # last message of a handshake.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self._context:
            return connection
        made = self._context.wrap_socket(
            connection, server_hostname="localhost", session=self._session
        )
        self.made.resumed += made.session_reused
        return made

    def _use_up(self, connection: socket.socket) -> None:
        """Makes requests on one connection until enough or the server wants no more."""
        request = REQUEST if self._options.keep_alive else LAST_REQUEST
        while self.made.requests < self._options.requests:
            time.sleep(self._options.pause)
            connection.sendall(request)
            head = read_answer(connection)
            self.made.requests += 1
            if self._context and self._options.resume:
                # In TLS 1.3 it comes with the answer.
                self._session = connection.session
            if b"connection: close" in head.lower():
                self._await_close(connection)
                return

    def _await_close(self, connection: socket.socket) -> None:
        """The server closes first."""
        assert connection.recv(1) == b""
        if self._context:
            # That was the end of TLS; the FIN comes after it.
            assert select.select([connection.fileno()], [], [], PATIENCE)[0]
            assert os.read(connection.fileno(), 1) == b""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("requests", type=int)
    parser.add_argument("certificate", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--tls", choices=["TLSv1_2", "TLSv1_3"])
    parser.add_argument("--no-keep-alive", dest="keep_alive", action="store_false")
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--spread", type=float, default=0.0)
    return parser.parse_args()


def main() -> None:
    options = parse()
    context = None
    if options.certificate:
        context = ssl.create_default_context(cafile=options.certificate)
    if context and options.tls:
        context.minimum_version = context.maximum_version = ssl.TLSVersion[options.tls]
    clients = [Client(options, context, number) for number in range(options.threads)]
    with ThreadPoolExecutor(options.threads) as pool:
        made = list(pool.map(Client.run, clients))
    sums = [sum(counts) for counts in zip(*(asdict(one).values() for one in made))]
    print(json.dumps(asdict(Made(*sums))))


if __name__ == "__main__":
    main()
