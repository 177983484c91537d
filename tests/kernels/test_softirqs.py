"""How the kernel's work outside of processes is divided among services: guest/softirqs.

Of two services with their clients, `long` has one connection that stays open, `short` one for
each request. The bytes of a connection are known when it ends, so that events give nearly all to
`short` (docs/accounting.md). The kernel's tracepoints show the true shares, at the same time.
"""

from harness.profiler import Report, Service
from matrix.guest import Guest

TOO_LOW = 0.1
"""By how much at least the share of `long` is off."""

LONG = ("nginx-long", "ab-long")
SHORT = ("nginx-short", "ab-short")


def samples(service: Service) -> int:
    return sum(row["softirq_samples"] for row in service.data["activities"])


def share_of_long(found: Report) -> float:
    """Of the work for both services and their clients."""
    of_long = sum(samples(found.service(name)) for name in LONG)
    return of_long / (of_long + sum(samples(found.service(name)) for name in SHORT))


def true_share(guest: Guest) -> float:
    """By the time that the CPU was in softirqs for the network."""
    truth = guest.succeeded("events_truth").json()
    return truth["long"] / truth["all"]


def test_the_work_is_divided_among_the_services(divided):
    found = divided.report("events")
    # Of all together: the bytes of `long` may not be known before the end.
    assert sum(samples(found.service(name)) for name in (*LONG, *SHORT)) > 0


def test_events_underrate_long_connections(divided):
    off = share_of_long(divided.report("events")) - true_share(divided)
    assert off < -TOO_LOW
