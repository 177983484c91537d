"""The test programs against each other: what a test compares must itself be right."""

import pytest

from harness import servers
from harness.catalogue import SERVERS
from harness.load import Load, run_load

pytestmark = pytest.mark.harness

MIX = dict(full=40, resume=40, abort_hello=6, abort_flight=6, garbage=4, no_version=4, reject=4)


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
@pytest.mark.parametrize("form", ["threads", "epoll", "fork"])
def test_client_and_self_timed_server_count_alike(form, tls, rsa):
    load = Load(tls=tls, reset=5, no_group=4, **MIX)
    with servers.selftimed(form, rsa, "--groups", "P-256:X25519") as server:
        seen = run_load(load, server.port)
        measured = server.finish()
    assert (measured.full, measured.resumed) == (load.full, load.resume)
    assert (seen.full, seen.resumed) == (load.full, load.resume)
    assert measured.failed == load.failing
    assert measured.abandoned == load.aborted
    assert seen.versions == {f"TLSv{tls}": load.full + load.resume}
    assert 0 < measured.completed_cpu_seconds < measured.cpu_seconds < measured.wall_seconds


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
@pytest.mark.parametrize("name", SERVERS)
def test_every_server_takes_the_whole_mix(name, tls, rsa, tmp_path):
    load = Load(tls=tls, **MIX)
    with SERVERS[name](tmp_path, rsa) as server:
        seen = run_load(load, server.port)
    assert seen.full == load.full
    assert seen.resumed == load.resume
