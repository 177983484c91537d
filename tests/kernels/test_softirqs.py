"""How the kernel's work outside of processes is divided among services: guest/softirqs.

Of two services with their clients, `long` has one connection that stays open, `short` one for
each request. The bytes of a connection are known when it ends, so that events give nearly all to
`short`. What is true is told by the kernel's tracepoints, at the same time.
"""

import pytest

from harness.profiler import Report, Service
from matrix.guest import Guest

ABOVE = 0.2
BELOW = 0.1
"""How far the share by time may be off: some hundreds of samples are divided, which an emulated CPU
on a busy host takes late, and time under the first function of TCP stands for what is below: that
gives `long` too much, while events give it too little."""

LONG = ("nginx-long", "ab-long")
SHORT = ("nginx-short", "ab-short")


def samples(service: Service, column: str = "softirq_samples") -> int:
    return sum(row[column] for row in service.data["activities"])


def share_of_long(found: Report) -> float:
    """Of the work for both services and their clients."""
    of_long = sum(samples(found.service(name)) for name in LONG)
    return of_long / (of_long + sum(samples(found.service(name)) for name in SHORT))


def true_share(guest: Guest, way: str) -> float:
    """By the time that the CPU was in softirqs for the network."""
    truth = guest.succeeded(f"{way}_truth").json()
    return truth["long"] / truth["all"]


def test_the_time_of_packets_tells_the_share(divided):
    off = share_of_long(divided.report("timed")) - true_share(divided, "timed")
    assert -BELOW < off < ABOVE


def test_events_do_not_tell_it(divided):
    """Or the test above could not fail."""
    off = share_of_long(divided.report("events")) - true_share(divided, "events")
    assert off < -BELOW


def test_the_report_says_how_it_was_divided(divided):
    ways = ("timed", "events")
    timed, events = (divided.report(way).data["sampling"]["softirqs"] for way in ways)
    assert (timed["method"], timed["reason"]) == ("timed", None)
    assert (events["method"], events["packets"]) == ("events", None)
    assert "profile.softirqs" in events["reason"]
    # One in 16, at random: 1/31 is four times what chance does to 1,000 of them.
    assert timed["packets_timed"] / timed["packets"] == pytest.approx(1 / 16, abs=1 / 31)


def test_nearly_all_is_by_time(divided):
    """The owners of most packets are known: by the connection, or by the listening port."""
    for name in (*LONG, *SHORT):
        service = divided.report("timed").service(name)
        assert samples(service, "softirq_timed_samples") >= 0.8 * samples(service) > 0, name


def test_without_timing_nothing_is_by_time(divided):
    found = divided.report("events")
    services = [found.service(name) for name in (*LONG, *SHORT)]
    # Of all together: the bytes of `long` may not be known before the end.
    assert sum(map(samples, services)) > 0
    assert sum(samples(service, "softirq_timed_samples") for service in services) == 0
