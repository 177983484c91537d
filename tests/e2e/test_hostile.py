"""Hostile and half-dead peers: the profile stands, its memory is bounded, and the real handshakes
among them are counted exactly.

All from socket calls: there, everything that a peer sends is read by tlsprof itself.
"""

import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Callable, Mapping

import pytest

from harness import hostile, other_stacks, web_servers
from harness.certificates import Certificate
from harness.load import Load, Seen, counted, run_load
from harness.profiler import Profiling, Service
from harness.servers import Server
from harness.together import own_folder, side_by_side, together

pytestmark = pytest.mark.host

LIBRARY_OFF = '[profile]\nlibrary = "off"\n'

HALF_OPEN = 2000
RESETS = 3000
RESETS_AFTER_HELLO = 500

HALF_OPEN_HUGE = 1000

MEMORY_GROWTH_BYTES = 32 << 20
"""Less than what the clients of HALF_OPEN_HUGE send, half of which tlsprof has no use for."""

REAL = [
    Load(tls="1.2", full=20, resume=20, dribble=10),
    Load(tls="1.3", full=20, resume=20, dribble=10),
]


def nginx(folder: Path, certificate: Certificate) -> AbstractContextManager[Server]:
    return web_servers.nginx(folder, certificate, connections=2 * HALF_OPEN)


SERVERS = {"nginx": nginx, "go": other_stacks.go}
"""An event loop in C and goroutines; both take as many connections as come."""

ON_ALL = pytest.mark.parametrize("server", SERVERS)


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


@dataclass
class Trial:
    """A server whose peers are of one kind, with real handshakes among them."""

    server: Server
    seen: Seen = Seen.nothing()
    made: int = 0
    """Connections of the others."""
    service: Service | None = None
    losses: Mapping[str, int] | None = None
    """Of the whole profile."""

    def real_handshakes(self) -> None:
        """Makes some, among whatever goes on."""
        self.seen = sum((run_load(load, self.server.port) for load in REAL), self.seen)

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


Peers = Callable[[Trial], int]
"""What goes on at a server; how many connections that were."""


def half_open(trial: Trial) -> int:
    hello = hostile.record(hostile.hello())
    with hostile.half_open(trial.server.port, HALF_OPEN, hello[: len(hello) // 2]):
        trial.real_handshakes()
    return HALF_OPEN


def half_of_huge_hellos(trial: Trial) -> int:
    begun = hostile.huge_hello()[:-1000]
    assert len(begun) * HALF_OPEN_HUGE > MEMORY_GROWTH_BYTES * 3 // 2
    with hostile.half_open(trial.server.port, HALF_OPEN_HUGE, begun):
        trial.real_handshakes()
    return HALF_OPEN_HUGE


def resets_after_the_hello(trial: Trial) -> int:
    hello = hostile.record(hostile.hello())
    return hostile.connect_and_reset(trial.server.port, RESETS_AFTER_HELLO, hello)


HARMLESS: dict[str, Peers] = {
    "noise": lambda trial: hostile.send_each(trial.server.port, hostile.noise(200)),
    "half-open": half_open,
    "resets": lambda trial: hostile.connect_and_reset(trial.server.port, RESETS),
}
"""Of these, nothing is lost."""

HARMFUL: dict[str, Peers] = {
    "records": lambda trial: hostile.send_each(trial.server.port, hostile.noise_in_records(200)),
    "lies": lambda trial: hostile.send_each(trial.server.port, hostile.lying_lengths()),
    "plaintext": lambda trial: hostile.send_each(trial.server.port, hostile.plaintext_after_hello(100)),
    "huge": lambda trial: hostile.send_each(trial.server.port, [hostile.huge_hello()] * 100),
    "half-of-huge": half_of_huge_hellos,
    "resets-after-hello": resets_after_the_hello,
}


def profiled(base: Path, rsa: Certificate, kinds: Mapping[str, Peers]) -> dict[tuple[str, str], Trial]:
    """One profile of a server for each kind of peers. After each of them, real handshakes follow
    whatever happened. Memory is bounded all the time."""
    hostile.allow_files(4 * HALF_OPEN)
    config = base / "tlsprof.toml"
    config.write_text(LIBRARY_OFF)
    keys = list(product(SERVERS, kinds))
    starts = {key: SERVERS[key[0]](own_folder(base, *key), rsa) for key in keys}
    with together(starts) as servers, Profiling(base, "--config", config) as profiling:
        trials = {key: Trial(server) for key, server in servers.items()}
        memory = forget_peak_memory(profiling.pid)
        for (_, kind), trial in trials.items():
            trial.made = kinds[kind](trial)
            trial.real_handshakes()
        assert peak_memory(profiling.pid) - memory < MEMORY_GROWTH_BYTES
        profiling.finish()
    for trial in trials.values():
        trial.service = profiling.report.on_port(trial.server.port)
        trial.losses = profiling.report.losses_of_events()
    return trials


@pytest.fixture(scope="module")
def harmless(rsa, tmp_path_factory) -> dict[tuple[str, str], Trial]:
    return profiled(tmp_path_factory.mktemp("harmless"), rsa, HARMLESS)


@pytest.fixture(scope="module")
def harmful(rsa, tmp_path_factory) -> dict[tuple[str, str], Trial]:
    return profiled(tmp_path_factory.mktemp("harmful"), rsa, HARMFUL)


def assert_real_handshakes_are_counted(trial: Trial) -> None:
    completed = trial.service.groups(role="server", outcome="completed")
    assert counted(completed) == trial.seen.handshakes


@ON_ALL
def test_random_bytes_are_no_handshakes(server, harmless):
    trial = harmless[server, "noise"]
    assert_real_handshakes_are_counted(trial)
    assert trial.broken == 0
    assert trial.others == trial.made
    assert trial.losses == {}


@ON_ALL
def test_random_bytes_in_records(server, harmful):
    trial = harmful[server, "records"]
    assert_real_handshakes_are_counted(trial)
    assert trial.broken <= trial.made
    assert trial.others == trial.made


@ON_ALL
def test_lengths_that_lie(server, harmful):
    """A byte that was no length after all leaves a hello that the server may well answer; no
    handshake completes, and none is counted twice."""
    trial = harmful[server, "lies"]
    assert_real_handshakes_are_counted(trial)
    assert 0 < trial.broken <= trial.made
    assert trial.others == trial.made


@ON_ALL
def test_plaintext_after_the_hello(server, harmful):
    trial = harmful[server, "plaintext"]
    assert_real_handshakes_are_counted(trial)
    outcomes = trial.service.outcomes("server")
    assert (outcomes["failed"], outcomes["abandoned"]) == (trial.made, 0)
    assert trial.others == trial.made


@ON_ALL
def test_hellos_of_64_kib(server, harmful):
    """The server answers them. To tlsprof they are too long to be read, but handshakes still."""
    trial = harmful[server, "huge"]
    assert_real_handshakes_are_counted(trial)
    assert trial.broken == trial.made
    assert trial.others == trial.made


@ON_ALL
def test_half_open_handshakes_by_the_thousand(server, harmless):
    """The real ones complete while all of the others hang, and once more when they are gone."""
    trial = harmless[server, "half-open"]
    assert_real_handshakes_are_counted(trial)
    assert trial.broken == HALF_OPEN
    assert trial.losses == {}


@ON_ALL
def test_half_of_a_huge_hello_by_the_thousand(server, harmful):
    """What is kept of a connection is bounded, whatever it sends."""
    trial = harmful[server, "half-of-huge"]
    assert_real_handshakes_are_counted(trial)
    assert trial.broken == HALF_OPEN_HUGE


@ON_ALL
def test_connects_and_resets(server, harmless):
    trial = harmless[server, "resets"]
    assert_real_handshakes_are_counted(trial)
    assert trial.broken == 0


@ON_ALL
def test_resets_after_the_hello(server, harmful):
    """The server may find the reset before it reads: then there was no handshake for it."""
    trial = harmful[server, "resets-after-hello"]
    assert_real_handshakes_are_counted(trial)
    assert trial.broken <= RESETS_AFTER_HELLO


WAITING = 16
"""Clients at the same time: in dialogues before TLS each of them mostly waits for delayed
acknowledgements of TCP."""

MIX = dict(full=30, resume=40, dribble=10, abort_hello=10, abort_flight=10)
MIX |= dict(reset=10, garbage=10, no_version=10, reject=10)

AFTER_OTHER_BYTES: dict[str, tuple[str, Callable[[Path, Certificate], AbstractContextManager[Server]]]] = {
    "nginx-proxy1": ("proxy1", lambda *where: web_servers.nginx(*where, parameters=" proxy_protocol")),
    "nginx-proxy2": ("proxy2", lambda *where: web_servers.nginx(*where, parameters=" proxy_protocol")),
    "haproxy-proxy1": ("proxy1", lambda *where: web_servers.haproxy(*where, " accept-proxy")),
    "haproxy-proxy2": ("proxy2", lambda *where: web_servers.haproxy(*where, " accept-proxy")),
    "smtp": ("smtp", lambda *where: web_servers.nginx_mail(*where, "smtp")),
    "imap": ("imap", lambda *where: web_servers.nginx_mail(*where, "imap")),
    "pop3": ("pop3", lambda *where: web_servers.nginx_mail(*where, "pop3")),
}


PRELUDE_LOADS = {
    name: [Load(tls=tls, prelude=prelude, threads=WAITING, **MIX) for tls in ("1.2", "1.3")]
    for name, (prelude, _) in AFTER_OTHER_BYTES.items()
}


@pytest.fixture(scope="module")
def after_other_bytes(rsa, tmp_path_factory) -> dict[str, tuple[Service, Seen]]:
    """One profile of all these servers."""
    base = tmp_path_factory.mktemp("preludes")
    config = base / "tlsprof.toml"
    config.write_text(LIBRARY_OFF)
    starts = {name: start(own_folder(base, name), rsa) for name, (_, start) in AFTER_OTHER_BYTES.items()}
    with together(starts) as servers, Profiling(base, "--config", config) as profiling:

        def load(name: str) -> Seen:
            return sum((run_load(one, servers[name].port) for one in PRELUDE_LOADS[name]), Seen.nothing())

        seen = side_by_side(load, servers)
        profiling.finish()
    return {name: (profiling.report.on_port(servers[name].port), seen[name]) for name in servers}


@pytest.mark.parametrize("name", AFTER_OTHER_BYTES)
def test_tls_after_other_bytes(name, after_other_bytes):
    service, seen = after_other_bytes[name]
    loads = PRELUDE_LOADS[name]
    assert counted(service.groups(role="server", outcome="completed")) == seen.handshakes
    assert service.outcomes("server") == {
        "completed": sum(load.completing for load in loads),
        "failed": sum(load.failing for load in loads),
        "abandoned": sum(load.aborted for load in loads),
    }
