"""What handshakes cost a server by its CPU clock alone, without tlsprof."""

import http.client
import socket
import ssl
import time
from dataclasses import dataclass

from .processes import children
from .servers import Server

TIMEOUT_SECONDS = 20.0

CPU_CLOCK_OF_PROCESS = 2
"""CPUCLOCK_SCHED of clock_getcpuclockid(3)."""


def cpu_seconds(pid: int) -> float:
    """Of a process and its children, to the nanosecond; threads that ended are in it."""
    clocks = [(~one << 3) | CPU_CLOCK_OF_PROCESS for one in (pid, *children(pid))]
    return sum(time.clock_gettime(clock) for clock in clocks)


def open_and_close(port: int) -> None:
    """A connection without a byte."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as connection:
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass


class Client:
    """One with an open connection."""

    def __init__(self, port: int, path: str):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._path = path
        self._http = http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS, context=context)
        self._http.connect()
        self._socket = self._http.sock
        self.request()

    def request(self) -> None:
        self._http.request("GET", self._path)
        self._http.getresponse().read()
        assert self._http.sock is self._socket, "the server closed the connection"


@dataclass(frozen=True)
class Besides:
    """CPU seconds of what a connection with one request takes besides its handshake."""

    bare: float
    """Of a connection that is opened and closed without a byte."""
    request: float
    """Of a request on a connection that is open; 0 where the server keeps none open."""

    def bounds(self, each: float) -> tuple[float, float]:
        """The least and the greatest share of handshakes where a connection takes `each`. A connection
        wakes the server up for its handshake anyway, so that a bare one is more than what comes besides."""
        return 1 - (self.bare + self.request) / each, 1 - self.request / each


def measure_besides(server: Server, path: str, rate: float, times: int) -> Besides:
    """Of so many connections without a byte a second, each with a request on one that is open. Without a
    path there is no request: for servers that close each connection after one."""
    client = Client(server.port, path) if path else None
    started, clock = time.monotonic(), cpu_seconds(server.pid)
    bare = 0.0
    for turn in range(times):
        time.sleep(max(0.0, started + turn / rate - time.monotonic()))
        before = cpu_seconds(server.pid)
        open_and_close(server.port)
        # What it does after it has closed; half of the time is for the request.
        time.sleep(0.5 / rate)
        bare += cpu_seconds(server.pid) - before
        if client:
            client.request()
    return Besides(bare / times, (cpu_seconds(server.pid) - clock - bare) / times)
