"""tlsprof against a server that counts and times its own handshakes."""

from pathlib import Path

import pytest

from harness import servers
from harness.certificates import Certificate
from harness.load import Load, run_load
from harness.profiler import Profiling, profile_load
from harness.settling import assert_median

GROUPS = "P-256:X25519"
CPU_TOLERANCE = 0.03
CPU_REPEATS = dict(least=3, most=9)

BROKEN = dict(
    abort_hello=25, abort_flight=25, reset=15, garbage=20, no_group=20, no_version=20, reject=20
)


@pytest.mark.parametrize("form", ["threads", "epoll"])
def test_counts_equal_the_servers_own(form, rsa, tmp_path):
    """Counts each time; of their CPU time, that of broken ones included, the median."""
    assert_median(
        lambda: counted(form, rsa, tmp_path), expected=1.0, within=CPU_TOLERANCE, least=1, most=7
    )


def counted(form: str, certificate: Certificate, folder: Path) -> float:
    """CPU time of handshakes by tlsprof to that by the server, whose counts it has."""
    loads = [Load(tls=tls, full=550, resume=550, **BROKEN) for tls in ("1.2", "1.3")]
    with servers.selftimed(form, certificate, "--groups", GROUPS) as server:
        report, seen = profile_load(folder, server.port, *loads)
        measured = server.finish()

    service = report.service("selftimed")
    assert measured.completed == 2200
    assert service.outcomes("server") == measured.outcomes
    completed = dict(role="server", outcome="completed")
    assert service.count(resumption="none", **completed) == measured.full
    assert service.count(resumption="ticket", **completed) == loads[0].resume
    assert service.count(resumption="psk", **completed) == loads[1].resume

    client = report.service("loadgen")
    assert seen.agrees_with(client.outcomes("client")), client
    assert client.resumed("client") == seen.resumed
    assert client.outcomes("server") == dict(completed=0, failed=0, abandoned=0)
    assert not report.losses_of_events()
    return service.cpu_seconds(role="server") / measured.cpu_seconds


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
@pytest.mark.parametrize("form", ["threads", "epoll"])
def test_cpu_time_equals_the_servers_own(form, tls, rsa, tmp_path):
    load = Load(tls=tls, full=150, resume=150)

    def measure() -> float:
        with servers.selftimed(form, rsa, "--groups", GROUPS) as server:
            report, _seen = profile_load(tmp_path, server.port, load)
            measured = server.finish()
        service = report.service("selftimed")
        return service.cpu_seconds(outcome="completed") / measured.completed_cpu_seconds

    assert_median(measure, expected=1.0, within=CPU_TOLERANCE, **CPU_REPEATS)


def test_hello_retry_is_one_handshake(rsa, tmp_path):
    load = Load(tls="1.3", full=40, resume=20, groups="X25519:P-384")
    with servers.selftimed("epoll", rsa, "--groups", "P-384") as server:
        report, seen = profile_load(tmp_path, server.port, load)
        measured = server.finish()
    assert seen.completed == measured.completed == 60
    assert report.service("selftimed").outcomes("server") == measured.outcomes


SIGNATURES = {
    "rsa2048": "rsa_2048",
    "rsa4096": "rsa_4096",
    "ecdsa": "ecdsa_p256",
    "ed25519": "ed25519",
}


GROUP_NAMES = {"X25519": "x25519", "P-256": "secp256r1", "P-384": "secp384r1"}


def test_groups_and_signatures_are_named(certificates, tmp_path):
    with Profiling(tmp_path) as profiling:
        for kind in SIGNATURES:
            for group in GROUP_NAMES:
                load = Load(tls="1.3", full=10, groups=group)
                with servers.selftimed("threads", certificates[kind], "--groups", group) as server:
                    run_load(load, server.port)
    service = profiling.report.service("selftimed")
    counts = {
        (kind, group): service.count(
            role="server", outcome="completed", group=GROUP_NAMES[group], signature=SIGNATURES[kind]
        )
        for kind in SIGNATURES
        for group in GROUP_NAMES
    }
    assert counts == dict.fromkeys(counts, 10)
