"""A busy neighbour on the same core is not billed to the handshakes.

The client is on that core too: on the sibling of a core with two threads it
would slow the server down by another amount each time.
"""

import pytest

from harness import servers
from harness.load import Load, run_load
from harness.paths import SELFTIMED
from harness.processes import Process
from harness.profiler import Profiling
from harness.sequential import assert_agrees, repeats

TOLERANCE = 0.03
CPU = 0
LOAD = Load(tls="1.3", full=200, threads=1)

BUSY_LOOP = ["sh", "-c", "while :; do :; done"]


@pytest.mark.long
def test_cpu_time_beside_a_busy_neighbour_equals_the_servers_own(rsa, tmp_path):
    def ratio() -> float:
        with servers.selftimed("threads", rsa, cpu=CPU) as server, Process(BUSY_LOOP, cpu=CPU):
            with Profiling(tmp_path) as profiling:
                run_load(LOAD, server.port, cpu=CPU)
                profiling.finish()
            own = server.finish()
        service = profiling.report.service(SELFTIMED.name)
        assert own.completed == LOAD.full
        # If that were in it, the ratio would be off by twice the tolerance.
        assert service.wait_seconds("run_queue") > 2 * TOLERANCE * own.cpu_seconds
        return service.cpu_seconds(role="server", outcome="completed") / own.completed_cpu_seconds

    assert_agrees(repeats(ratio), expected=1.0, within=TOLERANCE, name="beside a busy loop")
