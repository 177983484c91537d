"""Time off the CPU inside handshakes has its reason."""

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from harness import servers
from harness.certificates import Certificate
from harness.load import Load, Seen, run_load
from harness.network import free_port
from harness.paths import SELFTIMED
from harness.processes import private_copy
from harness.profiler import Profiling, Report, Service, profile_load
from harness.random_source import RandomSource, random_fifo
from harness.scenarios import find
from harness.servers import Server
from harness.together import own_folder, together
from harness.web_servers import apache, nginx

ENOUGH = 120
"""Handshakes, over the default threshold of findings, 100."""

IN_READS = 0.1
"""Tolerance: a read's own CPU time and its way into the kernel and back are no wait."""

LATE_FILES = {"random": ("random", "random-wait"), "entropy": ("pipe", "pipe-wait")}
"""A FIFO in the place of /dev/random, and one of which nothing is known but that it is a FIFO: what
is reported and found of each."""


@dataclass(frozen=True)
class Waited:
    """A server that had its load."""

    service: Service
    finding: Callable[[str], Optional[dict[str, Any]]]
    findings: list[str]
    seen: Seen
    read: float
    """Seconds that it was in reads of its random source, where it has one of the tests."""


@dataclass(frozen=True)
class Case:
    start: AbstractContextManager[Server]
    load: Load
    source: Optional[RandomSource] = None


def selftimed(form: str, folder: Path, certificate: Certificate, **more: Any) -> AbstractContextManager[Server]:
    return servers.selftimed(form, certificate, program=private_copy(str(SELFTIMED), folder), **more)


def cases(base: Path, certificate: Certificate, stack: ExitStack) -> dict[str, Case]:
    found = {}
    for form in ("threads", "epoll"):
        start = selftimed(form, own_folder(base, form), certificate)
        found[form] = Case(start, Load(tls="1.3", full=60, threads=1))
    # With two ports to listen on, Apache's processes take turns by a lock.
    turns = f"Mutex pthread mpm-accept\nListen 127.0.0.1:{free_port()} https\nStartServers 8"
    start = apache(own_folder(base, "turns"), certificate, "prefork", turns)
    found["turns"] = Case(start, Load(tls="1.3", full=200, threads=2))
    for name in LATE_FILES:
        folder = own_folder(base, name)
        source = stack.enter_context(random_fifo(folder, name, late=True))
        start = selftimed("threads", folder, certificate, env=source.env)
        found[name] = Case(start, Load(tls="1.3", full=ENOUGH, threads=1), source)
    for late in (True, False):
        folder = own_folder(base, "late", late)
        source = stack.enter_context(random_fifo(folder, "urandom", late))
        start = nginx(folder, certificate, workers=1, env=source.env)
        found[f"nginx-{late}"] = Case(start, Load(tls="1.3", full=ENOUGH, threads=2), source)
    return found


@pytest.fixture(scope="module")
def waited(rsa, tmp_path_factory) -> dict[str, Waited]:
    """All cases in one profile, one after the other: their waits are not for each other."""
    base = tmp_path_factory.mktemp("waits")
    with ExitStack() as stack:
        by_name = cases(base, rsa, stack)
        starts = {name: case.start for name, case in by_name.items()}
        running = stack.enter_context(together(starts))
        seen, read = {}, {}
        with Profiling(base) as profiling:
            for name, case in by_name.items():
                before = case.source.wait_seconds() if case.source else 0.0
                seen[name] = run_load(case.load, running[name].port)
                read[name] = case.source.wait_seconds() - before if case.source else 0.0
            profiling.finish()
    return {
        name: what_waited(profiling.report, server.port, seen[name], read[name])
        for name, server in running.items()
    }


def what_waited(report: Report, port: int, seen: Seen, read: float) -> Waited:
    service = report.on_port(port)
    found = [one["id"] for one in report.data["findings"] if one["service_name"] == service.name]
    return Waited(service, lambda name: find(report, port, name), found, seen, read)


def test_a_blocking_server_waits_for_its_peer_inside_the_call(waited):
    service = waited["threads"].service
    assert service.wait_seconds("network") > 0
    assert service.wait_seconds("between_calls") == 0


def test_a_server_with_an_event_loop_waits_between_calls(waited):
    service = waited["epoll"].service
    assert service.wait_seconds("between_calls") > 0
    assert service.wait_seconds("network") == 0


def test_a_process_that_waits_for_its_turn_to_accept_is_in_no_handshake(waited):
    one = waited["turns"]
    assert one.service.count(role="server", outcome="completed") == one.seen.completed == 200
    # Processes of one thread each share no other lock: seven of eight always wait for their turn.
    assert one.service.wait_seconds("lock") < 0.05 * one.service.cpu_seconds(role="server")
    assert not one.finding("lock-wait"), one.findings


@pytest.mark.parametrize("name", LATE_FILES)
def test_a_late_random_source_is_told_by_its_file(name, waited):
    reason, finding = LATE_FILES[name]
    one = waited[name]
    service = one.service
    assert service.count(role="server", outcome="completed") == one.seen.completed == ENOUGH
    assert service.wait_seconds(reason) == pytest.approx(one.read, rel=IN_READS)
    assert one.read > service.cpu_seconds(role="server") / 4, "the source was not late"
    others = {"random", "pipe", "other", "disk"} - {reason}
    assert sum(service.wait_seconds(other) for other in others) < IN_READS * one.read
    assert {"random-wait", "pipe-wait"} & set(one.findings) == {finding}


@pytest.mark.parametrize("late", [True, False])
def test_nginx_waits_only_where_random_numbers_are_late(late, waited):
    """nginx, whose worker is stopped by the read whatever else it has to do."""
    one = waited[f"nginx-{late}"]
    service = one.service
    assert service.count(role="server", outcome="completed") == one.seen.completed == ENOUGH
    assert bool(one.finding("random-wait")) == late, one.findings
    if late:
        assert service.wait_seconds("random") == pytest.approx(one.read, rel=IN_READS)
    else:
        assert service.wait_seconds("random") < 0.05 * service.cpu_seconds(role="server")


def test_socket_calls_alone_tell_of_a_late_random_source(rsa, tmp_path):
    """As of a server whose TLS library is not known. In TLS 1.3, what is read for tickets after the
    client's Finished is not in it."""
    config = tmp_path / "tlsprof.toml"
    config.write_text('[profile]\nlibrary = "off"\n')
    with random_fifo(tmp_path, "random", late=True) as source:
        with selftimed("threads", tmp_path, rsa, env=source.env) as server:
            before = source.wait_seconds()
            load = Load(tls="1.2", full=ENOUGH, threads=1)
            report, _seen = profile_load(tmp_path, server.port, load, options=["--config", config])
            waited = source.wait_seconds() - before
    service = report.on_port(server.port)
    assert service.count(role="server", outcome="completed", source="socket") == ENOUGH
    assert service.wait_seconds("random") == pytest.approx(waited, rel=IN_READS)
    assert find(report, server.port, "random-wait"), report.data["findings"]
