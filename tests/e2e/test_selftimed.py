"""tlsprof against a server that counts and times its own handshakes."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import servers
from harness.certificates import Certificate
from harness.load import Load, Seen, run_load
from harness.paths import LOADGEN, SELFTIMED
from harness.processes import private_copy
from harness.profiler import Profiling, Report, profile_load
from harness.sequential import Rounds, assert_agrees, repeats
from harness.servers import Measured
from harness.together import together

GROUPS = "P-256:X25519"
CPU_TOLERANCE = 0.03
FORMS = ["threads", "epoll"]
VERSIONS = ["1.2", "1.3"]

BROKEN = dict(
    abort_hello=25, abort_flight=25, reset=15, garbage=20, no_group=20, no_version=20, reject=20
)
LOADS = [Load(tls=tls, full=550, resume=550, **BROKEN) for tls in VERSIONS]


def count(form: str, certificate: Certificate, folder: Path) -> tuple[Report, Seen, Measured]:
    with servers.selftimed(form, certificate, "--groups", GROUPS) as server:
        report, seen = profile_load(folder, server.port, *LOADS)
        return report, seen, server.finish()


@pytest.mark.parametrize("form", FORMS)
def test_counts_equal_the_servers_own(form, rsa, tmp_path):
    report, seen, measured = count(form, rsa, tmp_path)
    service = report.service(SELFTIMED.name)
    assert measured.completed == 2200
    assert service.outcomes("server") == measured.outcomes
    completed = dict(role="server", outcome="completed")
    assert service.count(resumption="none", **completed) == measured.full
    assert service.count(resumption="ticket", **completed) == LOADS[0].resume
    assert service.count(resumption="psk", **completed) == LOADS[1].resume

    client = report.service(LOADGEN.name)
    assert seen.agrees_with(client.outcomes("client")), client
    assert client.resumed("client") == seen.resumed
    assert client.outcomes("server") == dict(completed=0, failed=0, abandoned=0)
    assert not report.losses_of_events()


TIMED = [(form, tls) for form in FORMS for tls in VERSIONS]
USUAL = [("threads", "1.3")]
"""For every run of the tests; all in the long one."""

Ratios = dict[tuple[str, str], float]


def timed(folder: Path, certificate: Certificate, cases: list[tuple[str, str]]) -> Ratios:
    """CPU time by tlsprof to the server's own, of a server for each, in one profile."""
    with ExitStack() as stack:
        started = {}
        for form, tls in cases:
            program = private_copy(str(SELFTIMED), folder, f"{form}-{tls}")
            server = servers.selftimed(form, certificate, "--groups", GROUPS, program=program)
            started[form, tls] = stack.enter_context(server)
        with Profiling(folder) as profiling:
            for (_form, tls), server in started.items():
                run_load(Load(tls=tls, full=150, resume=150), server.port)
            profiling.finish()
        ratios = {}
        for case, server in started.items():
            service = profiling.report.on_port(server.port)
            own = server.finish().completed_cpu_seconds
            ratios[case] = service.cpu_seconds(outcome="completed") / own
        return ratios


@pytest.fixture(scope="module")
def rounds(rsa, tmp_path_factory) -> Rounds[Ratios]:
    return Rounds(lambda: timed(tmp_path_factory.mktemp("timed"), rsa, TIMED))


def case_id(case: tuple[str, str]) -> str:
    return "-".join(case)


@pytest.mark.long
@pytest.mark.parametrize("case", TIMED, ids=case_id)
def test_cpu_time_equals_the_servers_own(case, rounds):
    figures = rounds.each(lambda one: one[case])
    assert_agrees(figures, expected=1.0, within=CPU_TOLERANCE, name=case_id(case))


@pytest.mark.parametrize("case", USUAL, ids=case_id)
def test_cpu_time_of_one_equals_its_own(case, rsa, tmp_path_factory):
    """The same, for every run of the tests."""
    figures = repeats(lambda: timed(tmp_path_factory.mktemp("timed"), rsa, USUAL)[case])
    assert_agrees(figures, expected=1.0, within=CPU_TOLERANCE, name=case_id(case))


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_cpu_time_of_broken_handshakes_equals_the_servers_own(form, rsa, tmp_path):
    def ratio() -> float:
        report, _seen, measured = count(form, rsa, tmp_path)
        return report.service(SELFTIMED.name).cpu_seconds(role="server") / measured.cpu_seconds

    assert_agrees(repeats(ratio), expected=1.0, within=CPU_TOLERANCE, name=form)


def test_hello_retry_is_one_handshake(rsa, tmp_path):
    load = Load(tls="1.3", full=40, resume=20, groups="X25519:P-384")
    with servers.selftimed("epoll", rsa, "--groups", "P-384") as server:
        report, seen = profile_load(tmp_path, server.port, load)
        measured = server.finish()
    assert seen.completed == measured.completed == 60
    assert report.service(SELFTIMED.name).outcomes("server") == measured.outcomes


SIGNATURES = {
    "rsa2048": "rsa_2048",
    "rsa4096": "rsa_4096",
    "ecdsa": "ecdsa_p256",
    "ed25519": "ed25519",
}


GROUP_NAMES = {"X25519": "x25519", "P-256": "secp256r1", "P-384": "secp384r1"}


def test_groups_and_signatures_are_named(certificates, tmp_path):
    """The servers start first: of a TLS 1.3 handshake that comes before the probes, nobody sees the signature."""
    starts = {
        (kind, group): servers.selftimed("threads", certificates[kind], "--groups", group)
        for kind in SIGNATURES
        for group in GROUP_NAMES
    }
    with together(starts) as started:
        with Profiling(tmp_path) as profiling:
            for (_, group), server in started.items():
                run_load(Load(tls="1.3", full=10, groups=group), server.port)
    service = profiling.report.service(SELFTIMED.name)
    counts = {
        (kind, group): service.count(
            role="server", outcome="completed", group=GROUP_NAMES[group], signature=SIGNATURES[kind]
        )
        for kind in SIGNATURES
        for group in GROUP_NAMES
    }
    assert counts == dict.fromkeys(counts, 10)
