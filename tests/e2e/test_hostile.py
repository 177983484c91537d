"""Hostile and half-dead peers: the profile stands, its memory is bounded, and the real handshakes
among them are counted exactly.

All from socket calls: there, everything that a peer sends is read by tlsprof itself.
"""

import re
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Callable, Iterator

import pytest

from harness import hostile, other_stacks, web_servers
from harness.certificates import Certificate
from harness.load import Load, Seen, counted, run_load
from harness.profiler import Profiling, Service
from harness.servers import Server

LIBRARY_OFF = '[profile]\nlibrary = "off"\n'

HALF_OPEN = 3000
RESETS = 10_000
RESETS_AFTER_HELLO = 2000

HALF_OPEN_HUGE = 1000

MEMORY_GROWTH_BYTES = 32 << 20
"""Less than what the clients of HALF_OPEN_HUGE send, half of which tlsprof has no use for."""

REAL = [
    Load(tls="1.2", full=100, resume=100, dribble=50),
    Load(tls="1.3", full=100, resume=100, dribble=50),
]


def nginx(folder: Path, certificate: Certificate) -> AbstractContextManager[Server]:
    return web_servers.nginx(folder, certificate, connections=2 * HALF_OPEN)


@pytest.fixture(params=["nginx", "go"])
def server(request, rsa, tmp_path):
    """An event loop in C and goroutines; both take as many connections as come."""
    hostile.allow_files(4 * HALF_OPEN)
    start = {"nginx": nginx, "go": other_stacks.go}[request.param]
    with start(tmp_path, rsa) as started:
        yield started


def forget_peak_memory(pid: int) -> int:
    """What is resident of a process now, in bytes; its peak counts from here on (proc(5))."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak_memory(pid)


def peak_memory(pid: int) -> int:
    """The most that was resident of a process, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    assert found, status
    return int(found[1]) * 1024


class Trial:
    """A profile of one server, with the real handshakes among the others."""

    def __init__(self, server: Server, profiling: Profiling):
        self._server = server
        self._profiling = profiling
        self.seen = Seen.nothing()

    def real_handshakes(self) -> None:
        """Makes some, among whatever goes on."""
        self.seen = sum((run_load(load, self._server.port) for load in REAL), self.seen)

    @property
    def service(self) -> Service:
        return self._profiling.report.on_port(self._server.port)

    @property
    def losses(self) -> dict[str, int]:
        return self._profiling.report.losses_of_events()

    @property
    def broken(self) -> int:
        """Handshakes that did not complete."""
        outcomes = self.service.outcomes("server")
        return outcomes["failed"] + outcomes["abandoned"]

    @property
    def others(self) -> int:
        """Connections that were opened, but for those of the real handshakes."""
        rows = self.service.data["connections"]
        opened = sum(row["opened"] for row in rows if row["role"] == "server")
        return opened - self.seen.completed


@contextmanager
def profiled(folder: Path, server: Server) -> Iterator[Trial]:
    """After the block, real handshakes have followed whatever happened in it, and memory and all
    real handshakes have been checked."""
    config = folder / "tlsprof.toml"
    config.write_text(LIBRARY_OFF)
    with Profiling(folder, "--config", config) as profiling:
        trial = Trial(server, profiling)
        memory = forget_peak_memory(profiling.pid)
        yield trial
        trial.real_handshakes()
        assert peak_memory(profiling.pid) - memory < MEMORY_GROWTH_BYTES
        profiling.finish()
    completed = trial.service.groups(role="server", outcome="completed")
    assert counted(completed) == trial.seen.handshakes


def test_random_bytes_are_no_handshakes(server, tmp_path):
    with profiled(tmp_path, server) as trial:
        made = hostile.send_each(server.port, hostile.noise(500))
    assert trial.broken == 0
    assert trial.others == made
    assert trial.losses == {}


def test_random_bytes_in_records(server, tmp_path):
    with profiled(tmp_path, server) as trial:
        made = hostile.send_each(server.port, hostile.noise_in_records(500))
    assert trial.broken <= made
    assert trial.others == made


def test_lengths_that_lie(server, tmp_path):
    """A byte that was no length after all leaves a hello that the server may well answer; no
    handshake completes, and none is counted twice."""
    with profiled(tmp_path, server) as trial:
        made = hostile.send_each(server.port, hostile.lying_lengths())
    assert 0 < trial.broken <= made
    assert trial.others == made


def test_hellos_of_64_kib(server, tmp_path):
    """The server answers them. To tlsprof they are too long to be read, but handshakes still."""
    with profiled(tmp_path, server) as trial:
        made = hostile.send_each(server.port, [hostile.huge_hello()] * 100)
    assert trial.broken == made
    assert trial.others == made


def test_half_open_handshakes_by_the_thousand(server, tmp_path):
    """The real ones complete while all of the others hang, and once more when they are gone."""
    hello = hostile.record(hostile.hello())
    with profiled(tmp_path, server) as trial:
        with hostile.half_open(server.port, HALF_OPEN, hello[: len(hello) // 2]):
            trial.real_handshakes()
    assert trial.broken == HALF_OPEN
    assert trial.losses == {}


def test_half_of_a_huge_hello_by_the_thousand(server, tmp_path):
    """What is kept of a connection is bounded, whatever it sends."""
    begun = hostile.huge_hello()[:-1000]
    assert len(begun) * HALF_OPEN_HUGE > MEMORY_GROWTH_BYTES * 3 // 2
    with profiled(tmp_path, server) as trial:
        with hostile.half_open(server.port, HALF_OPEN_HUGE, begun):
            trial.real_handshakes()
    assert trial.broken == HALF_OPEN_HUGE


def test_connects_and_resets(server, tmp_path):
    with profiled(tmp_path, server) as trial:
        hostile.connect_and_reset(server.port, RESETS)
    assert trial.broken == 0


def test_resets_after_the_hello(server, tmp_path):
    """The server may find the reset before it reads: then there was no handshake for it."""
    with profiled(tmp_path, server) as trial:
        hostile.connect_and_reset(server.port, RESETS_AFTER_HELLO, hostile.record(hostile.hello()))
    assert trial.broken <= RESETS_AFTER_HELLO


MIX = dict(full=100, resume=150, dribble=30, abort_hello=20, abort_flight=20)
MIX |= dict(reset=20, garbage=20, no_version=20, reject=20)

AFTER_OTHER_BYTES: dict[str, tuple[str, Callable[[Path, Certificate], AbstractContextManager[Server]]]] = {
    "nginx-proxy1": ("proxy1", lambda *where: web_servers.nginx(*where, parameters=" proxy_protocol")),
    "nginx-proxy2": ("proxy2", lambda *where: web_servers.nginx(*where, parameters=" proxy_protocol")),
    "haproxy-proxy1": ("proxy1", lambda *where: web_servers.haproxy(*where, " accept-proxy")),
    "haproxy-proxy2": ("proxy2", lambda *where: web_servers.haproxy(*where, " accept-proxy")),
    "smtp": ("smtp", lambda *where: web_servers.nginx_mail(*where, "smtp")),
    "imap": ("imap", lambda *where: web_servers.nginx_mail(*where, "imap")),
    "pop3": ("pop3", lambda *where: web_servers.nginx_mail(*where, "pop3")),
}


@pytest.mark.parametrize("name", AFTER_OTHER_BYTES)
def test_tls_after_other_bytes(name, rsa, tmp_path):
    prelude, start = AFTER_OTHER_BYTES[name]
    loads = [Load(tls=tls, prelude=prelude, **MIX) for tls in ("1.2", "1.3")]
    config = tmp_path / "tlsprof.toml"
    config.write_text(LIBRARY_OFF)
    with start(tmp_path, rsa) as server, Profiling(tmp_path, "--config", config) as profiling:
        seen = sum((run_load(load, server.port) for load in loads), Seen.nothing())
        profiling.finish()
    service = profiling.report.on_port(server.port)
    assert counted(service.groups(role="server", outcome="completed")) == seen.handshakes
    assert service.outcomes("server") == {
        "completed": sum(load.completing for load in loads),
        "failed": sum(load.failing for load in loads),
        "abandoned": sum(load.aborted for load in loads),
    }
