"""tlsprof on each kernel: what it says it can do, and whether it does it."""

import json
import re
from typing import Any, Callable

import pytest

from harness.load import Seen
from harness.profiler import Report
from harness.servers import Measured
from matrix.expected import EXPECTED, Expected
from matrix.guest import Guest
from matrix.initramfs import NGINX_PORT, Workload

LOST_SHARE = 0.05
"""Bound for what may be missing on a kernel where programs disturb each other."""


WAYS = ("best", "weaker")
"""The best that the kernel allows, and what is left without uprobe_multi and socket calls."""


def kernels_where(holds: Callable[[Expected], Any]):
    """Runs a test on the kernels for which that is expected."""
    names = [name for name, expected in EXPECTED.items() if holds(expected)]
    return pytest.mark.parametrize("guest", names, indirect=True)


def report(guest: Guest, way: str = "best") -> Report:
    """A profile of the workload, which must itself have gone as planned."""
    guest.succeeded(f"{way}_profile")
    found = Report(guest.succeeded(f"{way}_report").json())
    assert found.data["command"]["exit_status"] == 0, guest.checks[f"{way}_profile"].text
    return found


def seen_by_client(guest: Guest, way: str = "best") -> Seen:
    lines = [line for line in guest.checks[f"{way}_profile"].out if line.startswith('{"completed"')]
    return sum(map(Seen.parse, lines), Seen.nothing())


def seen_by_server(guest: Guest) -> Measured:
    return Measured(**json.loads(guest.succeeded("selftimed").out[-1]))


def planned(workload: Workload) -> dict[str, int]:
    """Outcomes of one run of the workload's handshakes, as the server sees them."""
    loads = workload.handshakes
    return {
        "completed": sum(load.full + load.resume for load in loads),
        "failed": sum(load.failing for load in loads),
        "abandoned": sum(load.aborted for load in loads),
    }


def mostly(counted: int, made: int) -> bool:
    """Little is missing, and nothing is counted twice."""
    return (1 - LOST_SHARE) * made <= counted <= made


def kernel_counters(guest: Guest) -> dict[str, int]:
    """The kernel's own after the first profile: a line of names, then one of values."""
    lines = [line.split()[1:] for line in guest.succeeded("kernel_counters").out]
    pairs = zip(lines[::2], lines[1::2])
    return {name: int(value) for names, values in pairs for name, value in zip(names, values)}


def connections(of: Report, port: int) -> dict[str, Any]:
    found = [one for one in of.on_port(port).data["connections"] if one["role"] == "server"]
    assert len(found) == 1, of.on_port(port)
    return found[0]


def turns(figures: dict[str, Any]) -> dict[int, int]:
    rows = [row for closed in figures["closed"] for row in closed["turns"]]
    assert all(row["from"] == row["to"] for row in rows), rows
    return {row["from"]: row["connections"] for row in rows}


def opened(of: Report, role: str) -> int:
    figures = [one for service in of.services for one in service.data["connections"]]
    return sum(one["opened"] for one in figures if one["role"] == role)


def unowned(of: Report) -> int:
    """Ends of connections that tlsprof says it can give to no process."""
    known = re.compile(r"(\d+) TCP connections on this host ended before")
    found = [known.match(note) for note in of.data["notes"]]
    return sum(int(match.group(1)) for match in found if match)


def test_doctor_tells_what_works(guest):
    limits = EXPECTED[guest.kernel.name].limits
    found = {one["name"]: one for one in guest.succeeded("doctor").json()["capabilities"]}
    states = {name: one["state"] for name, one in found.items()}
    assert states == {name: limits[name].state if name in limits else "available" for name in found}
    assert limits.keys() <= found.keys()
    for name, limit in limits.items():
        assert re.search(limit.reason, found[name]["reason"]), found[name]


@kernels_where(lambda expected: expected.refusal)
def test_a_profile_that_is_impossible_says_why(guest):
    for way in WAYS:
        profile = guest.checks[f"{way}_profile"]
        assert profile.status == 1
        assert re.search(EXPECTED[guest.kernel.name].refusal, profile.errors), profile.errors
        assert f"{way}_report" not in guest.checks


@kernels_where(lambda expected: not expected.refusal)
def test_the_workload_goes_as_planned(guest, workload):
    outcomes, server = planned(workload), seen_by_server(guest)
    assert server.outcomes == {name: len(WAYS) * count for name, count in outcomes.items()}
    assert {seen_by_client(guest, way).completed for way in WAYS} == {outcomes["completed"]}


@kernels_where(lambda expected: expected.handshakes)
@pytest.mark.parametrize("way", WAYS)
def test_handshakes_are_exactly_those_made(way, guest, workload):
    found, client = report(guest, way), seen_by_client(guest, way)
    server = found.service("selftimed")
    assert server.outcomes("server") == planned(workload)
    assert server.resumed("server") == sum(load.resume for load in workload.handshakes)
    assert found.service("loadgen").outcomes("client") == client.outcomes
    assert found.service("loadgen").resumed("client") == client.resumed
    assert not found.losses_of_events()


@kernels_where(lambda expected: expected.shares_stacks)
@pytest.mark.parametrize("way", WAYS)
def test_few_handshakes_are_lost_where_programs_share_stacks(way, guest, workload):
    counted = sum(service.count() for service in report(guest, way).services)
    outcomes = [planned(workload), seen_by_client(guest, way).outcomes]
    assert mostly(counted, sum(sum(side.values()) for side in outcomes))


@kernels_where(lambda expected: expected.connections)
def test_connections_are_exactly_the_kernels_own(guest):
    found, counters = report(guest), kernel_counters(guest)
    total = opened(found, "server") + opened(found, "client") + unowned(found)
    assert total == counters["PassiveOpens"] + counters["ActiveOpens"]
    if EXPECTED[guest.kernel.name].turns:
        assert unowned(found) == 0
        assert opened(found, "server") == counters["PassiveOpens"]


@kernels_where(lambda expected: expected.skips_programs)
def test_few_connections_are_lost_where_programs_are_skipped(guest):
    found, counters = report(guest), kernel_counters(guest)
    total = opened(found, "server") + opened(found, "client") + unowned(found)
    assert mostly(total, counters["PassiveOpens"] + counters["ActiveOpens"])


@kernels_where(lambda expected: expected.connections)
@pytest.mark.parametrize("way", WAYS)
def test_connections_that_the_server_closes_end_in_time_wait(way, guest, workload: Workload):
    figures = connections(report(guest, way), NGINX_PORT)
    made = workload.requests // workload.requests_per_connection
    assert figures["opened"] == made
    assert {one["closed_by"]: one["count"] for one in figures["closed"]} == {"local": made}
    assert figures["time_wait_created"] == made


@kernels_where(lambda expected: expected.turns)
def test_turns_are_exactly_those_made(guest, workload: Workload):
    made = workload.requests // workload.requests_per_connection
    assert turns(connections(report(guest), NGINX_PORT)) == {workload.requests_per_connection: made}


@kernels_where(lambda expected: expected.connections)
def test_turns_that_cannot_be_counted_are_not_guessed(guest):
    found = report(guest, "weaker" if EXPECTED[guest.kernel.name].turns else "best")
    assert turns(connections(found, NGINX_PORT)) == {}
    assert any("Turns of TCP connections were not counted" in note for note in found.data["notes"])
