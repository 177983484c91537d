"""Real servers: tlsprof's counts equal the client's counts."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from threading import Event

import pytest

from harness import web_servers
from harness.catalogue import SERVERS
from harness.load import Load, Seen, run_load
from harness.paths import LOADGEN
from harness.processes import private_copy
from harness.profiler import Profiling, Service
from harness.together import own_folder, side_by_side, together

MIX = dict(full=60, resume=60, abort_hello=5, abort_flight=5, garbage=5, no_version=5, reject=5)
LOAD = Load(tls="1.3", full=500, resume=500)
RELOADS = 3

FREES_LATE = {"asyncio"}
"""Drops the connection object of a client that went away only when its garbage collector runs;
until then the handshake may be said to be under way. Its clients come one after the other: of handshakes in
parallel that are broken off, one may be taken for another's (rule 4 of agent/evidence/src/join)."""


VERSIONS = ("1.2", "1.3")


@dataclass(frozen=True)
class Counted:
    """One server, its load, and what both ends report of it."""

    load: Load
    seen: Seen
    server: Service
    client: Service


@pytest.fixture(scope="module")
def counted(rsa, tmp_path_factory) -> dict[tuple[str, str], Counted]:
    """All servers in one profile, by name and TLS version, each with a client of its own."""
    base = tmp_path_factory.mktemp("servers")
    folders = {key: own_folder(base, *key) for key in product(SERVERS, VERSIONS)}
    loads = {
        key: Load(
            tls=key[1],
            program=private_copy(str(LOADGEN), folder),
            threads=1 if key[0] in FREES_LATE else Load.threads,
            **MIX,
        )
        for key, folder in folders.items()
    }
    starts = {key: SERVERS[key[0]](folder, rsa) for key, folder in folders.items()}
    with together(starts) as servers, Profiling(base) as profiling:
        seen = side_by_side(lambda key: run_load(loads[key], servers[key].port), servers)
        profiling.finish()
    report = profiling.report
    return {
        key: Counted(
            loads[key], seen[key], report.on_port(server.port), report.service(loads[key].program.name)
        )
        for key, server in servers.items()
    }


@pytest.mark.parametrize("tls", VERSIONS)
@pytest.mark.parametrize("name", SERVERS)
def test_counts_equal_the_clients(name, tls, counted):
    found = counted[name, tls]
    load, seen = found.load, found.seen
    assert (seen.full, seen.resumed) == (load.full, load.resume)
    outcomes = found.server.outcomes("server")
    if name in FREES_LATE:
        assert outcomes.pop("abandoned") <= load.aborted
    else:
        assert outcomes.pop("abandoned") == load.aborted
    assert outcomes == {"completed": seen.completed, "failed": load.failing}
    assert found.server.resumed("server") == seen.resumed
    assert seen.agrees_with(found.client.outcomes("client")), found.client


def test_no_handshake_is_lost_when_nginx_reloads_under_load(rsa, tmp_path):
    reloaded = Event()

    def load() -> Seen:
        seen = run_load(LOAD, server.port)
        while not reloaded.is_set():
            seen += run_load(LOAD, server.port)
        return seen

    with web_servers.nginx(tmp_path, rsa) as server, ThreadPoolExecutor() as pool:
        with Profiling(tmp_path) as profiling:
            running = pool.submit(load)
            try:
                for _ in range(RELOADS):
                    web_servers.reload_nginx(server)
            finally:
                reloaded.set()
            seen = running.result()
        service = profiling.report.on_port(server.port)
    assert service.outcomes("server") == dict(completed=seen.completed, failed=0, abandoned=0)
    assert service.resumed("server") == seen.resumed
