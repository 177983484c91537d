"""Changes of the states of sockets that come while a program runs on that CPU for another socket:
guest/interrupts.

Packets of loopback are handled in the system call that sends them. Those of a network card come in
interrupts, as do those that are steered to other CPUs (Documentation/networking/scaling.rst, RPS).
"""

from collections import Counter
from typing import Any

import pytest

from harness.profiler import Report
from matrix.expected import EXPECTED
from matrix.guest import Guest


@pytest.fixture
def report(interrupted) -> Report:
    interrupted.succeeded("interrupted_profile")
    found = Report(interrupted.succeeded("interrupted_report").json())
    assert found.data["command"]["exit_status"] == 0
    return found


def opened_by_kernel(guest: Guest) -> Counter[str]:
    """What the kernel itself counted, meanwhile, of connections that were opened."""
    counts: Counter[str] = Counter()
    for check, sign in (("counters_before", -1), ("counters_after", 1)):
        names, values = (line.split()[1:] for line in guest.succeeded(check).out)
        counts.update({name: sign * int(value) for name, value in zip(names, values)})
    return Counter(server=counts["PassiveOpens"], client=counts["ActiveOpens"])


def connections(report: Report, name: str) -> dict[str, Any]:
    """Of the service with that name, in its one role."""
    service = report.service(name)
    assert service.data["connections_from_before"] == 0
    (found,) = service.data["connections"]
    return found


def test_the_kernel_leaves_programs_out(interrupted, report):
    """Or the tests below could not fail."""
    assert int(interrupted.succeeded("interrupted_profile").out[-1]) > 0


def test_all_connections_are_seen_from_their_begin_to_their_end(interrupted, report):
    made = opened_by_kernel(interrupted)
    for name, role in (("nginx", "server"), ("ab", "client")):
        found = connections(report, name)
        assert found["opened"] == made[role] > 0, name
        assert sum(row["count"] for row in found["closed"]) == made[role], name


def test_all_that_leave_a_time_wait_are_seen(report):
    """The side that closes first has it, and no connection was reset."""
    figures = connections(report, "nginx")
    assert figures["time_wait_created"] == by_closer(figures)["local"] > 0


def by_closer(figures: dict[str, Any]) -> dict[str, int]:
    return {row["closed_by"]: row["count"] for row in figures["closed"]}


def test_what_another_program_made_up_for_is_not_told_as_lost(interrupted, report):
    if EXPECTED[interrupted.kernel.name].exact:
        assert "program_skipped" not in report.losses_of_events()
