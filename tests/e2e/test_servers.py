"""Real servers: tlsprof's counts equal the client's counts."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import web_servers
from harness.catalogue import SERVERS
from harness.load import Load, run_load
from harness.profiler import Profiling, profile_load

MIX = dict(full=60, resume=60, abort_hello=5, abort_flight=5, garbage=5, no_version=5, reject=5)
RELOADS = 3

FREES_LATE = {"asyncio"}
"""Drops the connection object of a client that went away only when its garbage collector runs;
until then the handshake may be said to be under way."""


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
@pytest.mark.parametrize("name", SERVERS)
def test_counts_equal_the_clients(name, tls, rsa, tmp_path):
    load = Load(tls=tls, **MIX)
    with SERVERS[name](tmp_path, rsa) as server:
        report, seen = profile_load(tmp_path, server.port, load)
        service = report.on_port(server.port)
    assert seen.resumed == load.resume
    outcomes = service.outcomes("server")
    if name in FREES_LATE:
        assert outcomes.pop("abandoned") <= load.aborted
    else:
        assert outcomes.pop("abandoned") == load.aborted
    assert outcomes == {"completed": seen.completed, "failed": load.failing}
    assert service.resumed("server") == seen.resumed
    client = report.service("loadgen")
    assert seen.agrees_with(client.outcomes("client")), client


def test_no_handshake_is_lost_when_nginx_reloads_under_load(rsa, tmp_path):
    load = Load(tls="1.3", full=1500, resume=1500)
    with web_servers.nginx(tmp_path, rsa) as server, ThreadPoolExecutor() as pool:
        with Profiling(tmp_path) as profiling:
            running = pool.submit(run_load, load, server.port)
            for _ in range(RELOADS):
                web_servers.reload_nginx(server)
            assert not running.done(), "the reloads came after the load"
            seen = running.result()
        service = profiling.report.on_port(server.port)
    assert service.outcomes("server") == dict(completed=seen.completed, failed=0, abandoned=0)
    assert service.resumed("server") == seen.resumed
