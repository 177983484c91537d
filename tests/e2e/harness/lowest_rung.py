"""An agent with a budget that nothing but counting connections fits, and what it estimates."""

import time
from typing import Any, Callable

from . import bpf, metrics
from .load import Load, Seen, run_load
from .outlets import live_state
from .profiler import Agent
from .waiting import wait_until

CONFIG = '[agent]\nbudget = 0.0001\nkeep = "connections"\n'
CALLS = "tlsprof_agent_socket_calls_duty_ratio"
LIBRARY = "tlsprof_agent_library_probes_duty_ratio"
STEPS = "tlsprof_agent_step_probes_duty_ratio"
LOWEST = 0.02
"""On the lowest rung socket calls are seen for less of the time."""

ROUNDS = 60
"""At most so many loads; the budget is judged every two seconds."""


def is_lowest(agent: Agent) -> bool:
    return metrics.total(metrics.scrape(agent.url), CALLS) < LOWEST


def load_until(port: int, load: Load, condition: Callable[[], bool]) -> Seen:
    """Loads the server until the condition holds. Returns what the client saw."""
    seen = Seen.nothing()
    for _ in range(ROUNDS):
        seen += run_load(load, port)
        if condition():
            return seen
    raise AssertionError(f"not after {ROUNDS} loads")


def lead_down(agent: Agent, port: int) -> None:
    """By the load of a server that no test is about, so that nothing is known of others from before."""
    load_until(port, Load(full=150), lambda: is_lowest(agent))


def wait_between_windows(agent: Agent) -> None:
    """Until in a second no program stopped clocks, while those that see threads end ran."""
    ours = bpf.owned_by(agent.process.pid, "prog")
    runs = lambda name: bpf.runs(lambda program: program["id"] in ours and program.get("name") == name)[0]

    def are_clocks_out() -> bool:
        before = {name: runs(name) for name in ("sched_switch", "thread_left")}
        time.sleep(1)
        return runs("sched_switch") == before["sched_switch"] and runs("thread_left") > before["thread_left"]

    with bpf.statistics():
        wait_until(are_clocks_out, "a second between two windows")


def estimates(agent: Agent, name: str, of: str) -> list[dict[str, Any]]:
    """What was estimated of a server, with its ranges."""
    service = live_state(agent, name)["selected"]["details"]["service"]
    return [one for one in service[of] if one["role"] == "server"]
