"""What the agent says of its programs' runs, against the kernel's own statistics of them."""

import pytest

from harness import bpf, metrics, servers
from harness.load import Load, run_load
from harness.profiler import start_agent
from harness.waiting import wait_until

pytestmark = pytest.mark.host

LOAD = Load(tls="1.3", full=1000, resume=2000)
RUNS, SECONDS = "tlsprof_agent_bpf_runs_total", "tlsprof_agent_bpf_run_seconds_total"


def test_runs_and_their_time_are_those_of_the_kernels_statistics(rsa):
    """All runs are counted, and one in 16 is timed."""
    with servers.selftimed("epoll", rsa) as server, start_agent([]) as agent:
        programs = bpf.owned_by(agent.process.pid, "prog")
        kernel_totals = lambda: bpf.runs(lambda one: one["id"] in programs)
        agent_totals = lambda: [metrics.total(metrics.scrape(agent.url), name) for name in (RUNS, SECONDS)]

        def after_the_next_reading():
            """They are read every two seconds."""
            before = agent_totals()
            wait_until(lambda: agent_totals() != before, "a reading of the counters")
            return agent_totals()

        with bpf.statistics():
            kernel_before, agent_before = kernel_totals(), after_the_next_reading()
            run_load(LOAD, server.port)
            agent_after, kernel_after = after_the_next_reading(), kernel_totals()
    counted, seconds = (after - before for after, before in zip(agent_after, agent_before))
    runs, measured = (after - before for after, before in zip(kernel_after, kernel_before))
    print(f"{counted:.0f} runs of {runs}, {seconds:.3f} s of {measured:.3f}")
    # Up to two seconds of an idle host are in one and not in the other.
    assert counted == pytest.approx(runs, rel=0.1)
    # The kernel's time also has what is around a run, 0.07 us, and interruptions: by other threads, or by other
    # guests. It was 0.81 to 0.86 of that.
    assert 0.5 * measured < seconds < 1.1 * measured
