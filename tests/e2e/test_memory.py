"""Handshakes over memory: the library makes no socket call inside its own, and the program's own
socket calls before and after tell the connection."""

import os
import shutil

import pytest

from harness import servers
from harness.load import Load
from harness.paths import LOADGEN
from harness.profiler import profile_load


@pytest.mark.parametrize("form", ["threads", "epoll"])
def test_hellos_broken_off_in_memory_are_counted_once(form, rsa, tmp_path):
    """Of many that are under way at once, each is one that the other source saw, and none takes
    another's place. Garbage is sent without a library."""
    program = shutil.copy(LOADGEN, tmp_path / f"loadgen-{os.getpid()}")
    mix = dict(full=100, resume=100, abort_hello=100, abort_flight=100, reset=100, garbage=40)
    loads = [Load(tls=tls, threads=16, program=program, **mix) for tls in ("1.2", "1.3")]
    with servers.selftimed(form, rsa) as server:
        report, seen = profile_load(tmp_path, server.port, *loads)
    client = report.service(program.name)
    assert client.outcomes("client", source="library") == {
        "completed": sum(load.completing for load in loads),
        "failed": 0,
        "abandoned": sum(load.aborted for load in loads),
    }
    assert client.count(role="client", source="socket") == sum(load.garbage for load in loads)
    assert seen.agrees_with(client.outcomes("client")), client
