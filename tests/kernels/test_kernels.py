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

SKIPPED_SHARE = 0.1
"""Bound for what a kernel that skips programs may leave uncounted."""


def kernels_where(holds: Callable[[Expected], Any]):
    """Runs a test on the kernels for which that is expected."""
    names = [name for name, expected in EXPECTED.items() if holds(expected)]
    return pytest.mark.parametrize("guest", names, indirect=True)


def report(guest: Guest) -> Report:
    """The profile of the workload, which must itself have gone as planned."""
    guest.succeeded("profile")
    found = Report(guest.succeeded("report").json())
    assert found.data["command"]["exit_status"] == 0, guest.checks["profile"].text
    return found


def seen_by_client(guest: Guest) -> Seen:
    lines = [line for line in guest.checks["profile"].out if line.startswith('{"completed"')]
    return sum(map(Seen.parse, lines), Seen.nothing())


def seen_by_server(guest: Guest) -> Measured:
    return Measured(**json.loads(guest.succeeded("selftimed").out[-1]))


def kernel_counters(guest: Guest) -> dict[str, int]:
    """The kernel's own: /proc/net/snmp has a line of names, then one of values."""
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
    notes = [re.match(r"(\d+) TCP connections on this host ended before", note) for note in of.data["notes"]]
    return sum(int(note.group(1)) for note in notes if note)


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
    profile = guest.checks["profile"]
    assert profile.status == 1
    assert re.search(EXPECTED[guest.kernel.name].refusal, profile.errors), profile.errors
    assert "report" not in guest.checks


@kernels_where(lambda expected: expected.exact)
def test_handshakes_are_exactly_those_made(guest, workload):
    loads, client, server = workload.handshakes, seen_by_client(guest), seen_by_server(guest)
    assert client.completed == server.completed == sum(load.full + load.resume for load in loads)
    assert server.failed == sum(load.failing for load in loads)
    assert server.abandoned == sum(load.aborted for load in loads)

    found = report(guest)
    assert found.service("selftimed").outcomes("server") == server.outcomes
    assert found.service("selftimed").resumed("server") == server.resumed
    assert found.service("loadgen").outcomes("client") == client.outcomes
    assert found.service("loadgen").resumed("client") == client.resumed
    assert not found.losses_of_events()


@kernels_where(lambda expected: expected.exact)
def test_connections_are_exactly_the_kernels_own(guest):
    found, counters = report(guest), kernel_counters(guest)
    total = opened(found, "server") + opened(found, "client") + unowned(found)
    assert total == counters["PassiveOpens"] + counters["ActiveOpens"]
    if EXPECTED[guest.kernel.name].turns:
        assert unowned(found) == 0
        assert opened(found, "server") == counters["PassiveOpens"]


@kernels_where(lambda expected: expected.exact)
def test_connections_that_the_server_closes_end_in_time_wait(guest, workload: Workload):
    figures = connections(report(guest), NGINX_PORT)
    made = workload.requests // workload.requests_per_connection
    assert figures["opened"] == made
    assert {one["closed_by"]: one["count"] for one in figures["closed"]} == {"local": made}
    assert figures["time_wait_created"] == made


@kernels_where(lambda expected: expected.turns)
def test_turns_are_exactly_those_made(guest, workload: Workload):
    made = workload.requests // workload.requests_per_connection
    assert turns(connections(report(guest), NGINX_PORT)) == {workload.requests_per_connection: made}


@kernels_where(lambda expected: expected.exact and not expected.turns)
def test_turns_that_cannot_be_counted_are_not_guessed(guest):
    found = report(guest)
    assert turns(connections(found, NGINX_PORT)) == {}
    assert any(note.startswith("Turns of TCP connections were not counted") for note in found.data["notes"])


@kernels_where(lambda expected: expected.skips_programs)
def test_what_a_kernel_skips_is_little_and_nothing_is_counted_twice(guest):
    found, counters = report(guest), kernel_counters(guest)
    outcomes = [seen_by_server(guest).outcomes, seen_by_client(guest).outcomes]

    def falls_short(counted: int, made: int) -> bool:
        return (1 - SKIPPED_SHARE) * made <= counted <= made

    handshakes = sum(service.count() for service in found.services)
    assert falls_short(handshakes, sum(sum(side.values()) for side in outcomes))
    total = opened(found, "server") + opened(found, "client") + unowned(found)
    assert falls_short(total, counters["PassiveOpens"] + counters["ActiveOpens"])
