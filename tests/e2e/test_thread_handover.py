"""Tomcat, and so Spring Boot: one thread of a pool reads a ClientHello and does the work, another one
writes the answer. What a handshake takes is known all the same, and every figure says the same."""

import shutil

import pytest

from harness import other_stacks, scenarios
from harness.scenarios import http_client

CONNECTIONS, THREADS = 50, 4

POINTS = 0.10
"""Between the shares by handshakes and by samples."""

OUTSIDE = 0.20
"""Of the independent estimate: making the TLS engine before the ClientHello is read, and closing it, are
no handshake but in the estimate."""

EACH = 0.25
"""Of what a handshake takes by that estimate, which has the end of TLS in it as well."""


def test_the_cpu_time_of_handshakes_is_known_in_full(rsa, tmp_path):
    """The estimate: what a connection with a request takes, less what one without TLS takes."""
    if not shutil.which("mvn"):
        pytest.skip("not installed: mvn, which brings Tomcat")
    encrypted = http_client(CONNECTIONS, rsa.cert, "--no-keep-alive", threads=THREADS)
    plain = http_client(CONNECTIONS, "", "--no-keep-alive", threads=THREADS)
    with other_stacks.tomcat(tmp_path, rsa) as (server, without_tls):
        for port, load in ((server.port, encrypted), (without_tls.port, plain)):
            load(port)
        other = scenarios.spend(without_tls, plain).each
        profiled = scenarios.profile(tmp_path, server, encrypted, *scenarios.sampled_often(tmp_path))
    service, whole = profiled.service, profiled.spent.each
    count = CONNECTIONS * THREADS
    groups = list(service.groups(role="server", outcome="completed"))
    assert sum(group["count"] for group in groups) == count == service.count(role="server")
    assert sum(group["offloaded"] for group in groups) <= count / 10, groups

    each = service.cpu_seconds(role="server") / count
    (unit,) = [cost for cost in service.data["unit_costs"] if cost["unit"] == "handshake"]
    shares = {
        "handshakes": each / whole,
        "activity": profiled.share_of("handshake"),
        "estimate": (whole - other) / whole,
    }
    assert abs(shares["handshakes"] - shares["activity"]) <= POINTS, shares
    assert all(-POINTS / 2 <= shares["estimate"] - share <= OUTSIDE for share in shares.values()), shares
    for cost in (each, unit["cpu_seconds"]):
        assert cost == pytest.approx(whole - other, rel=EACH), (each, unit, whole, other)
