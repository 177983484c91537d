"""tlsprof while the clock jumps, and while a CPU leaves and comes back."""

import json
import re
from datetime import datetime, timedelta, timezone
from typing import Any, Iterator

import pytest

from harness.load import Load, Seen
from harness.metrics import Sample, parse, total
from harness.servers import Measured
from matrix.guest import Guest
from matrix.initramfs import Workload

FEWEST_JUMPS = 4
LONGEST = timedelta(minutes=5)
"""No profile here takes as long; the clock jumps by an hour at least."""


@pytest.fixture
def hardy(workload: Workload) -> Load:
    (load,) = workload.hardy
    return load


@pytest.fixture
def metrics(survivor: Guest) -> list[Sample]:
    """What the agent tells in the end."""
    return parse(survivor.succeeded("metrics").text + "\n")


def planned(load: Load) -> dict[str, int]:
    return {"completed": load.full, "failed": load.failing, "abandoned": load.aborted}


def number(guest: Guest, check: str, word: str) -> int:
    found = re.search(rf"^{word} (\d+)$", guest.succeeded(check).text, re.MULTILINE)
    assert found, guest.checks[check].text
    return int(found.group(1))


def numbers(of: Any) -> Iterator[float]:
    """All numbers of a JSON value."""
    if isinstance(of, dict):
        of = list(of.values())
    if isinstance(of, list):
        for one in of:
            yield from numbers(one)
    elif isinstance(of, (int, float)) and not isinstance(of, bool):
        yield of


def test_the_load_goes_as_planned(survivor, hardy):
    """While the clock jumps, while a CPU leaves, and with types from a file."""
    loads = ("clock_profile", "cpu", "types_profile")
    for check in loads:
        assert Seen.parse(survivor.succeeded(check).text).completed == hardy.full
    measured = Measured(**json.loads(survivor.succeeded("selftimed").out[-1]))
    assert measured.outcomes == {one: len(loads) * count for one, count in planned(hardy).items()}


def test_counts_are_exact_while_the_clock_jumps(survivor, hardy):
    found = survivor.report("clock")
    assert number(survivor, "clock_profile", "jumps") >= FEWEST_JUMPS
    assert found.service("selftimed").outcomes("server") == planned(hardy)
    assert found.service("loadgen").count(role="client", outcome="completed") == hardy.full


def test_no_time_is_negative_or_absurd_while_the_clock_jumps(survivor):
    found = survivor.report("clock").data
    assert 0 < found["duration_seconds"] < LONGEST.total_seconds()
    assert min(numbers(found)) >= 0
    handshakes = [group for service in found["services"] for group in service["handshakes"]]
    assert handshakes
    for group in handshakes:
        most = group["count"] * found["duration_seconds"]
        assert group["duration_seconds"] < most and group["cpu_seconds"] < most, group


def test_a_report_tells_when_it_began_by_the_clock_of_then(survivor):
    """Before the first jump, which is of hours. The guest's clock is the host's, and other guests may have run since."""
    began = datetime.fromisoformat(survivor.report("clock").data["started_at"])
    assert timedelta() <= datetime.now(timezone.utc) - began < 12 * LONGEST


def test_counts_are_exact_while_a_cpu_leaves(survivor, hardy, metrics):
    assert number(survivor, "cpu", "times") > 1
    name = "tlsprof_handshakes_total"
    server = dict(service_name="selftimed", role="server")
    for outcome, count in planned(hardy).items():
        assert total(metrics, name, outcome=outcome, **server) == count, outcome
    lost = [one for one in metrics if one.name == "tlsprof_agent_events_lost_total" and one.value]
    # An agent that an emulated CPU keeps waiting for seconds loses samples, but no events.
    assert {one.labels["reason"] for one in lost} <= {"began_before_attach", "sample_table_full"}


def test_a_cpu_that_comes_back_is_sampled_and_watched(survivor, metrics):
    """On it runs a server of which nothing else can tell."""
    tries = int(survivor.succeeded("tries").text)
    loads = [survivor.succeeded(f"returned_{number + 1}").text for number in range(tries)]
    made = sum(Seen.parse(load).completed for load in loads)
    server = dict(service_name="returned")
    assert total(metrics, "tlsprof_handshakes_total", role="server", **server) == made > 0
    assert total(metrics, "tlsprof_cpu_seconds_total", activity="handshake", **server) > 0
    assert "a CPU came on line" in survivor.succeeded("agent_log").text


def test_the_agent_outlives_both(survivor):
    assert survivor.succeeded("agent_status").text == "0", survivor.checks["agent_log"].text
