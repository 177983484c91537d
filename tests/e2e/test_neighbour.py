"""A busy neighbour on the same core is not billed to the handshakes."""

from statistics import median

import pytest

from harness import servers
from harness.load import Load
from harness.processes import Process
from harness.profiler import Service, profile_load

TOLERANCE = 0.10
REPEATS = 3
SERVER_CPU = 0

BUSY_LOOP = ["sh", "-c", "while :; do :; done"]


def profiled(certificate, folder) -> Service:
    load = Load(tls="1.3", full=300, threads=1)
    with servers.selftimed("threads", certificate, cpu=SERVER_CPU) as server:
        report, _seen = profile_load(folder, server.port, load)
    return report.service("selftimed")


def cpu_per_handshake(service: Service) -> float:
    completed = dict(role="server", outcome="completed")
    return service.cpu_seconds(**completed) / service.count(**completed)


def test_cpu_time_is_the_same_beside_a_busy_neighbour(rsa, tmp_path):
    ratios = []
    for _ in range(REPEATS):
        quiet = profiled(rsa, tmp_path)
        with Process(BUSY_LOOP, cpu=SERVER_CPU):
            busy = profiled(rsa, tmp_path)
        ratios.append(cpu_per_handshake(busy) / cpu_per_handshake(quiet))
        assert busy.wait_seconds("run_queue") > 0
    assert median(ratios) == pytest.approx(1.0, abs=TOLERANCE), ratios
