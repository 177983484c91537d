"""Kernel work for packets that is in no profiled thread's time."""

import pytest

from harness import plain_nginx
from harness.paths import SERVERS
from harness.processes import run
from harness.profiler import Profiling
from harness.servers import SYSTEM_PYTHON

pytestmark = pytest.mark.host

CONFIG = "[profile]\nsample_frequency = 997\n"

DATAGRAMS = 500_000
REQUESTS = 200
MOST = 12
"""Samples of softirqs for that many requests. Some 25 of the datagrams' softirqs are sampled:
before the list of kernel functions had those of UDP, all of them were this server's."""


def test_datagrams_are_not_the_work_of_tcp_connections(tmp_path):
    """Although in that time only one service of TCP moved bytes."""
    config = tmp_path / "tlsprof.toml"
    config.write_text(CONFIG)
    with plain_nginx.nginx(tmp_path, "beside-datagrams") as server:
        with Profiling(tmp_path, "--pid", server.pid, "--config", config) as profiling:
            plain_nginx.request(server.port, REQUESTS // 2)
            run([SYSTEM_PYTHON, SERVERS / "datagrams.py", DATAGRAMS])
            plain_nginx.request(server.port, REQUESTS // 2)
    service = profiling.report.on_port(server.port)
    softirqs = {row["activity"]: row["softirq_samples"] for row in service.data["activities"]}
    assert any(row["samples"] for row in service.data["activities"]), "no samples at all"
    assert sum(softirqs.values()) <= MOST, softirqs
