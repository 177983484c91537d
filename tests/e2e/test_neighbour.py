"""A busy neighbour on the same core is not billed to the handshakes.

The client is on that core too: on the sibling of a core with two threads it
would slow the server down by another amount each time.
"""

import pytest

from harness import servers
from harness.load import Load, run_load
from harness.paths import SELFTIMED
from harness.processes import Process
from harness.profiler import Profiling, Service
from harness.sequential import assert_agrees, repeats

TOLERANCE = 0.10
CPU = 0

BUSY_LOOP = ["sh", "-c", "while :; do :; done"]


def profiled(certificate, folder) -> Service:
    load = Load(tls="1.3", full=200, threads=1)
    with servers.selftimed("threads", certificate, cpu=CPU) as server:
        with Profiling(folder) as profiling:
            run_load(load, server.port, cpu=CPU)
    return profiling.report.service(SELFTIMED.name)


def cpu_per_handshake(service: Service) -> float:
    completed = dict(role="server", outcome="completed")
    return service.cpu_seconds(**completed) / service.count(**completed)


@pytest.mark.long
def test_cpu_time_is_the_same_beside_a_busy_neighbour(rsa, tmp_path):
    def measure() -> float:
        quiet = profiled(rsa, tmp_path)
        with Process(BUSY_LOOP, cpu=CPU):
            busy = profiled(rsa, tmp_path)
        assert busy.wait_seconds("run_queue") > 0
        return cpu_per_handshake(busy) / cpu_per_handshake(quiet)

    assert_agrees(repeats(measure), expected=1.0, within=TOLERANCE, name="busy to quiet")
