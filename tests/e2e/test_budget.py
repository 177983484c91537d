"""The agent keeps the cost of its probes within the budget, and says so."""

import pytest

from harness import metrics, servers
from harness.load import Load, Seen, run_load
from harness.paths import SELFTIMED
from harness.profiler import start_agent
from harness.waiting import wait_until

pytestmark = pytest.mark.alone

HANDSHAKES = "tlsprof_handshakes_total"
DUTY = "tlsprof_agent_step_probes_duty_ratio"
LOAD = Load(tls="1.3", full=100, resume=300)
ROUNDS = 40
"""At most so many loads, each of a second or so; the budget is judged every five seconds."""


def test_step_probes_are_dropped_before_handshakes_are(rsa, tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text("[agent]\nbudget = 0.0001\n")
    with start_agent(["--config", config]) as agent, servers.selftimed("epoll", rsa) as server:
        assert metrics.total(metrics.scrape(agent.url), DUTY) == 1
        seen = Seen.nothing()
        for _ in range(ROUNDS):
            seen += run_load(LOAD, server.port)
            if metrics.total(metrics.scrape(agent.url), DUTY) < 1:
                break
        assert metrics.total(metrics.scrape(agent.url), DUTY) < 1
        seen += run_load(LOAD, server.port)

        ours = dict(service_name=SELFTIMED.name, role="server", outcome="completed")
        wait_until(
            lambda: metrics.total(metrics.scrape(agent.url), HANDSHAKES, **ours) == seen.completed,
            "every handshake, with and without step probes, in the metrics",
        )
        measured = server.finish()
    assert measured.completed == seen.completed
