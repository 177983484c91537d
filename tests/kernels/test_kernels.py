"""tlsprof on each kernel: what it says it can do, and whether it does it."""

import json
import re
from collections import Counter
from typing import Any, Callable

import pytest

from harness.load import Seen
from harness.profiler import Report, Service
from harness.sampled_steps import agree, measured, steps
from harness.samples import Samples
from harness.servers import Measured
from matrix.expected import EXPECTED, TIERS, Expected
from matrix.guest import Guest
from matrix.initramfs import NGINX_BACKLOG, NGINX_PORT, Workload

POINTS = 0.05
"""Of the CPU time of handshakes, beyond the sampling errors."""

LOST_SHARE = 0.25
"""Bound for what may be missing where the kernel leaves out programs. Under emulation these take
long, and are preempted often."""

WAYS = ("best", "weaker")
"""The best that the kernel allows, and what is left without uprobe_multi and socket calls."""

PROFILES = (*WAYS, *TIERS)
"""Each runs the workload once."""

FORCED = [(name, tier) for name, expected in EXPECTED.items() for tier in expected.tiers]
REFUSED = [(name, tier) for name, expected in EXPECTED.items() for tier in expected.refused_tiers]
forced_tiers = pytest.mark.parametrize("guest, tier", FORCED, indirect=["guest"])
refused_tiers = pytest.mark.parametrize("guest, tier", REFUSED, indirect=["guest"])

TLS12 = ("TLS1.2", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")
TLS13 = ("TLS1.3", "TLS_AES_256_GCM_SHA384")


def kernels_where(holds: Callable[[Expected], Any]):
    """Runs a test on the kernels for which that is expected."""
    names = [name for name, expected in EXPECTED.items() if holds(expected)]
    return pytest.mark.parametrize("guest", names, indirect=True)


def report(guest: Guest, way: str = "best") -> Report:
    """A profile of the workload, which must itself have gone as planned."""
    return guest.report(way)


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


def completed(server: Service) -> dict[tuple[str, ...], int]:
    """Handshakes by version, cipher, group and resumption, as their hellos tell them."""
    labels, counts = ("version", "cipher", "group", "resumption"), Counter()
    for group in server.groups(role="server", outcome="completed"):
        counts[tuple(group[label] for label in labels)] += group["count"]
    return dict(counts)


def completed_by_plan(workload: Workload) -> dict[tuple[str, ...], int]:
    """The same, of one run; TLS 1.2 comes first in the workload."""
    tls12, tls13 = workload.handshakes
    return {
        (*TLS12, "x25519", "none"): tls12.full,
        (*TLS12, "none", "ticket"): tls12.resume,
        (*TLS13, "x25519", "none"): tls13.full,
        (*TLS13, "x25519", "psk"): tls13.resume,
    }


def garbage(workload: Workload) -> int:
    return sum(load.garbage for load in workload.handshakes)


def skipped(found: Report) -> int:
    """Runs of programs that the kernel left out."""
    return found.losses_of_events().get("program_skipped", 0)


def other_losses(found: Report) -> dict[str, int]:
    """What was lost otherwise. A run that is left out need not be one that matters."""
    return {reason: count for reason, count in found.losses_of_events().items() if reason != "program_skipped"}


def mostly(counted: int, made: int) -> bool:
    """Little is missing, and nothing is counted twice."""
    return (1 - LOST_SHARE) * made <= counted <= made


def kernel_counters(guest: Guest) -> dict[str, int]:
    """The kernel's own after the first profile."""
    return guest.counters("kernel_counters")


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


def test_the_workload_goes_as_planned(guest, workload):
    outcomes, server = planned(workload), seen_by_server(guest)
    assert server.outcomes == {name: len(PROFILES) * count for name, count in outcomes.items()}
    assert {seen_by_client(guest, way).completed for way in PROFILES} == {outcomes["completed"]}


def test_handshakes_are_exactly_those_of_the_library(guest, workload):
    """Probes in the library alone: nothing runs at socket calls."""
    found, client = report(guest, "weaker"), seen_by_client(guest, "weaker")
    server = found.service("selftimed")
    assert server.outcomes("server") == planned(workload)
    assert server.resumed("server") == sum(load.resume for load in workload.handshakes)
    # Garbage is sent by hand: no handshake of the client's library.
    in_library = dict(client.outcomes, failed=client.failed - garbage(workload))
    assert found.service("loadgen").outcomes("client") == in_library
    assert found.service("loadgen").resumed("client") == client.resumed


@kernels_where(lambda expected: expected.exact)
def test_handshakes_are_exactly_those_of_library_and_sockets(guest, workload):
    found, client = report(guest), seen_by_client(guest)
    assert found.service("selftimed").outcomes("server") == planned(workload)
    assert completed(found.service("selftimed")) == completed_by_plan(workload)
    outcomes = found.service("loadgen").outcomes("client")
    assert client.agrees_with(outcomes), outcomes
    assert other_losses(found) == {}


def test_samples_show_user_code_and_the_kernel(guest):
    """Of both: code that is copied, and stacks that are walked."""
    report(guest)
    samples = Samples.parse(guest.checks["best_profile"].errors)
    for mode in ("User", "System"):
        assert samples.count(service="selftimed", mode=mode), samples
    assert samples.count(service="selftimed", activity="Handshake"), samples


def test_steps_by_samples_are_those_of_library_probes(guest):
    """On both machines. Of 160 handshakes, half of which resume."""
    server = report(guest).service("selftimed")
    exact, found = measured(server), steps(server)
    print(f"{guest.kernel.name}: {found}, by probes {exact}")
    assert min(found["signing"], found["key_exchange"]) > 0, server
    agree(found, exact, server, POINTS)


@forced_tiers
def test_each_tier_sees_the_handshakes(tier, guest, workload):
    found, client = report(guest, tier), seen_by_client(guest, tier)
    server, made = found.service("selftimed"), sum(planned(workload).values())
    if tier in EXPECTED[guest.kernel.name].skipped_tiers:
        assert mostly(server.count(role="server"), made)
        assert server.count(role="server") == made or skipped(found)
        return
    assert completed(server) == completed_by_plan(workload)
    # Not by outcome: sockets do not tell a client that gave up from one that was refused.
    assert server.count(role="server") == made
    assert found.service("loadgen").count(role="client", outcome="completed") == client.completed
    assert other_losses(found) == {}


@forced_tiers
def test_each_tier_sees_the_turns(tier, guest, workload):
    found = report(guest, tier)
    counted = turns(connections(found, NGINX_PORT))
    made = workload.requests // workload.requests_per_connection
    exact = counted == {workload.requests_per_connection: made}
    if tier in EXPECTED[guest.kernel.name].skipped_tiers:
        assert exact or (skipped(found) and mostly(sum(counted.values()), made))
    else:
        assert exact


@refused_tiers
def test_a_refused_tier_is_not_replaced_by_another(tier, guest):
    found, limit = report(guest, tier), EXPECTED[guest.kernel.name].limits[f"socket_calls_{tier}"]
    assert turns(connections(found, NGINX_PORT)) == {}
    notes = [note for note in found.data["notes"] if note.startswith("Turns of TCP connections")]
    assert len(notes) == 1 and re.search(limit.reason, notes[0]), notes


@kernels_where(lambda expected: expected.exact)
def test_connections_are_exactly_the_kernels_own(guest):
    found, counters = report(guest), kernel_counters(guest)
    total = opened(found, "server") + opened(found, "client") + unowned(found)
    assert total == counters["PassiveOpens"] + counters["ActiveOpens"]
    assert unowned(found) == 0
    assert opened(found, "server") == counters["PassiveOpens"]


@kernels_where(lambda expected: not expected.exact)
def test_few_connections_are_lost_where_programs_are_skipped(guest):
    found, counters = report(guest), kernel_counters(guest)
    total = opened(found, "server") + opened(found, "client") + unowned(found)
    assert mostly(total, counters["PassiveOpens"] + counters["ActiveOpens"])


@kernels_where(lambda expected: expected.exact)
@pytest.mark.parametrize("way", WAYS)
def test_connections_that_the_server_closes_end_in_time_wait(way, guest, workload: Workload):
    figures = connections(report(guest, way), NGINX_PORT)
    made = workload.requests // workload.requests_per_connection
    assert figures["opened"] == made
    assert {one["closed_by"]: one["count"] for one in figures["closed"]} == {"local": made}
    assert figures["time_wait_created"] == made


@kernels_where(lambda expected: expected.exact)
def test_turns_are_exactly_those_made(guest, workload: Workload):
    made = workload.requests // workload.requests_per_connection
    assert turns(connections(report(guest), NGINX_PORT)) == {workload.requests_per_connection: made}


@pytest.mark.parametrize("way", WAYS)
def test_each_accept_is_seen(way, guest, workload: Workload):
    """Seen at the end of the kernel's function, or of the system call."""
    found = report(guest, way)
    queue = found.on_port(NGINX_PORT).data["accept_queue"]
    made = workload.requests // workload.requests_per_connection
    seen = queue["wait"]["connections"] if queue and queue["wait"] else 0
    if EXPECTED[guest.kernel.name].skipped_tiers:
        assert seen == made or (skipped(found) and mostly(seen, made))
    else:
        assert seen == made


def test_the_accept_queue_is_read(guest):
    """As the kernel's modules inet_diag and tcp_diag tell. One client at a time overflows none."""
    queues = report(guest).on_port(NGINX_PORT).data["accept_queue"]["queues"]
    assert queues["listeners"] == 1
    assert queues["present"] == {"length": 0, "limit": NGINX_BACKLOG}
    assert queues["overflows"] == 0 == kernel_counters(guest)["ListenOverflows"]


def test_turns_that_cannot_be_counted_are_not_guessed(guest):
    found = report(guest, "weaker")
    assert turns(connections(found, NGINX_PORT)) == {}
    assert any("Turns of TCP connections were not counted" in note for note in found.data["notes"])
