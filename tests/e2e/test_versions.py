"""OpenSSL 1.1.1, 3.5 and 3.6, as Debian has them, against servers that count and time themselves."""

import os
import re
import shutil
from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import mean, median
from typing import Iterable, Iterator

import pytest

from harness import debian, servers
from harness.certificates import Certificate
from harness.load import Load, Seen, run_load
from harness.paths import LOADGEN, ROOT, TLSPROF
from harness.processes import run
from harness.profiler import Profiling, Service
from harness.sequential import Rounds, assert_agrees, repeats
from harness.suites import Unobtainable

CPU_TOLERANCE = 0.05
DEARER = 3.0
SAME_WORK = 0.25
SMALL_SHARE = 0.2

FORMS = ["threads", "epoll"]
VERSIONS = ["1.2", "1.3"]

GROUPS = "P-256:X25519"
BROKEN = dict(
    abort_hello=15, abort_flight=15, reset=10, garbage=10, no_group=10, no_version=10, reject=10
)

ALWAYS_ALL_STEPS = '[profile]\nsteps = "always"\n'


@dataclass(frozen=True)
class Version:
    """A version of OpenSSL, with programs that use it.

    The programs have names of their own, as services are named after them:
    other tests may run on the same host at the same time.
    """

    number: str
    server: Path
    client: Path

    @property
    def is_v3(self) -> bool:
        return not self.number.startswith("1.")


@pytest.fixture(scope="module", params=debian.RELEASES)
def version(request, tmp_path_factory) -> Version:
    """Each version that can be had here; the others are skipped by name."""
    try:
        openssl = debian.openssl(request.param)
    except Unobtainable as why:
        pytest.skip(f"OpenSSL {request.param} cannot be had: {why}")
    folder = tmp_path_factory.mktemp("programs")

    def own(program: Path) -> Path:
        return shutil.copy(program, folder / f"{program.name}-{openssl.version}-{os.getpid()}")

    # loadgen asks for the group's name, which 1.1.1 cannot tell: there, the host's own.
    client = openssl.build("loadgen") if not openssl.version.startswith("1.") else LOADGEN
    return Version(openssl.version, own(openssl.build("selftimed")), own(client))


@pytest.mark.parametrize("form", FORMS)
def test_counts_equal_the_servers_own(form, version, rsa, tmp_path):
    assert counted(form, version, rsa, tmp_path) > 0


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
def test_cpu_time_equals_the_servers_own(form, version, rsa, tmp_path):
    """Broken handshakes included; counts each time."""
    figures = repeats(lambda: counted(form, version, rsa, tmp_path))
    assert_agrees(figures, expected=1.0, within=CPU_TOLERANCE, name=f"{version.number}, {form}")


def counted(form: str, version: Version, certificate: Certificate, folder: Path) -> float:
    """CPU time of handshakes by tlsprof to that by the servers, whose counts it has."""
    load = Load(full=150, resume=150, program=version.client, **BROKEN)
    with ExitStack() as stack:
        # One for each version of TLS: 1.1.1 by itself takes TLS 1.1, too, which
        # the clients that must fail offer.
        started = [
            stack.enter_context(
                servers.selftimed(
                    form, certificate, "--groups", GROUPS, "--tls", tls, program=version.server
                )
            )
            for tls in ("1.2", "1.3")
        ]
        with Profiling(folder) as profiling:
            seen = [run_load(load, server.port) for server in started]
        measured = [server.finish() for server in started]

    service = profiling.report.service(version.server.name)
    assert [server.completed for server in measured] == [300, 300]
    assert service.outcomes("server") == added(server.outcomes for server in measured)
    completed = dict(role="server", outcome="completed")
    assert service.count(resumption="none", **completed) == 2 * load.full
    assert service.count(resumption="ticket", **completed) == load.resume
    assert service.count(resumption="psk", **completed) == load.resume
    assert versions_of(service) == {version.number}

    client = profiling.report.service(version.client.name)
    total = sum(seen, Seen.nothing())
    assert total.agrees_with(client.outcomes("client")), client
    assert client.resumed("client") == 2 * load.resume
    return service.cpu_seconds(role="server") / sum(server.cpu_seconds for server in measured)


def added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    return dict(sum((Counter(count) for count in counts), start=Counter()))


def versions_of(service: Service) -> set[str]:
    """libcrypto states its version; libssl states none."""
    libraries = service.data["tls_libraries"]
    assert all(library["state"] == "profiled" for library in libraries), libraries
    return {library["version"] for library in libraries if library["version"]}


@dataclass(frozen=True)
class Case:
    """A load on a server with these options."""

    load: Load
    options: tuple[str, ...] = ()


def profile_each(version: Version, certificate, folder: Path, cases: dict[str, Case]) -> dict[str, Service]:
    """One profile of a server for each case, told apart by their names.

    Key derivation is measured in every handshake, not now and then.
    """
    config = folder / "tlsprof.toml"
    config.write_text(ALWAYS_ALL_STEPS)
    names = {case: f"{version.server.name}-{case}" for case in cases}
    with ExitStack() as stack:
        ports = {}
        for name, case in cases.items():
            program = shutil.copy(version.server, folder / names[name])
            server = servers.selftimed("threads", certificate, *case.options, program=program)
            ports[name] = stack.enter_context(server).port
        with Profiling(folder, "--config", config) as profiling:
            for name, case in cases.items():
                run_load(replace(case.load, threads=1, program=version.client), ports[name])
    return {case: profiling.report.service(name) for case, name in names.items()}


def test_steps_are_told_apart(version, rsa, tmp_path):
    loads = {tls: Load(tls=tls, full=60) for tls in ("1.2", "1.3")}
    transport = Load(tls="1.2", full=60, ciphers="AES128-GCM-SHA256")
    cases = {"transport": Case(transport), **{tls: Case(load) for tls, load in loads.items()}}
    services = profile_each(version, rsa, tmp_path, cases)
    for tls, load in loads.items():
        expected = {"key_exchange", "signing", "key_derivation"}
        assert measured_steps(services[tls]) == expected, tls
        spent = sum(services[tls].step_seconds(step) for step in expected)
        assert spent < services[tls].cpu_seconds(role="server") / load.full
    assert measured_steps(services["transport"]) == {"rsa_decryption", "key_derivation"}
    completed = dict(role="server", outcome="completed", resumption="none")
    assert services["transport"].count(group="none", signature="none", **completed) == transport.full


def measured_steps(service: Service) -> set[str]:
    """Those that took time; verification aside, which a server may do for its own chain or not."""
    steps = ("key_exchange", "signing", "rsa_decryption", "key_derivation")
    return {step for step in steps if service.step_seconds(step) > 0}


@pytest.mark.long
@pytest.mark.parametrize("version", ["1.1.1"], indirect=True)
def test_one_function_for_exchange_and_derivation_is_split(version, rsa, tmp_path):
    """1.1.1 calls EVP_PKEY_derive for both. A dearer curve makes the exchange dearer and leaves
    the derivation as it was."""
    cases = {
        f"{tls}-{group}": Case(Load(tls=tls, full=60, groups=group), ("--groups", group))
        for tls in VERSIONS
        for group in ("X25519", "P-384")
    }
    rounds = Rounds(lambda: profile_each(version, rsa, tmp_path, cases))

    def ratios(step: str, tls: str) -> Iterator[float]:
        """Of the dear curve to the cheap one."""
        return rounds.each(
            lambda one: one[f"{tls}-P-384"].step_seconds(step) / one[f"{tls}-X25519"].step_seconds(step)
        )

    for tls in VERSIONS:
        derivation = ratios("key_derivation", tls)
        assert_agrees(derivation, expected=1.0, within=SAME_WORK, name=f"derivation, {tls}")
    # In as many rounds as that took: by far more than noise could do.
    for tls in VERSIONS:
        exchange = list(islice(ratios("key_exchange", tls), len(rounds.made)))
        assert median(exchange) > DEARER, exchange
        dear = [one[f"{tls}-P-384"] for one in rounds.made]
        share = [one.step_seconds("key_derivation") / one.step_seconds("key_exchange") for one in dear]
        assert median(share) < SMALL_SHARE, share


GROUP_NAMES = {"X25519": "x25519", "P-256": "secp256r1", "P-384": "secp384r1"}


def test_groups_are_named(version, rsa, tmp_path):
    """1.1.1 does not say the name of a group, but the hellos do."""
    with servers.selftimed("threads", rsa, program=version.server) as server:
        with Profiling(tmp_path) as profiling:
            for group in GROUP_NAMES:
                run_load(Load(tls="1.3", full=10, groups=group, program=version.client), server.port)
    completed = dict(role="server", outcome="completed")
    service = profiling.report.service(version.server.name)
    counts = {name: service.count(group=name, **completed) for name in {*GROUP_NAMES.values(), "unknown"}}
    assert counts == {**dict.fromkeys(GROUP_NAMES.values(), 10), "unknown": 0}


SIGNATURES = {"rsa2048": "rsa_2048", "rsa4096": "rsa_4096", "ecdsa": "ecdsa_p256", "ed25519": "ed25519"}


def test_signatures_are_named(version, certificates, tmp_path):
    load = Load(tls="1.3", full=10, resume=5, program=version.client)
    with ExitStack() as stack:
        started = [
            stack.enter_context(servers.selftimed("threads", certificates[kind], program=version.server))
            for kind in SIGNATURES
        ]
        with Profiling(tmp_path) as profiling:
            for server in started:
                run_load(load, server.port)
    service = profiling.report.service(version.server.name)
    full = dict(role="server", outcome="completed", resumption="none")
    counts = {kind: service.count(signature=name, **full) for kind, name in SIGNATURES.items()}
    assert counts == dict.fromkeys(SIGNATURES, load.full)
    assert service.count(role="server", resumption="psk", signature="none") == load.resume * len(SIGNATURES)


@pytest.mark.parametrize("version", ["3.5", "3.6", "4.0"], indirect=True)
def test_hybrid_group_is_the_default_and_named(version, rsa, tmp_path):
    """Servers that also have it fall back to X25519 with a client that does not."""
    new, old = (Load(tls="1.3", full=20, resume=10, program=client) for client in (version.client, LOADGEN))
    with servers.selftimed("epoll", rsa, program=version.server) as server:
        with Profiling(tmp_path) as profiling:
            seen = run_load(new, server.port)
            run_load(old, server.port)
    service = profiling.report.service(version.server.name)
    completed = dict(role="server", outcome="completed")
    assert seen.groups == {"X25519MLKEM768": 30}
    assert service.count(**completed) == 60
    assert service.resumed("server") == 20
    assert service.step_seconds("key_exchange") > 0
    assert service.count(group="x25519", **completed) == 30
    assert service.count(group="X25519MLKEM768", **completed) == 30


@pytest.mark.harness
@pytest.mark.parametrize("version", ["3.5", "3.6", "4.0"], indirect=True)
def test_each_list_of_groups_in_a_remedy_is_understood(version, rsa):
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "findings").glob("*.md"))
    lists = set(re.findall(r"X25519MLKEM768(?::[A-Za-z0-9-]+)+", pages))
    assert len(lists) >= 2
    for groups in lists:
        with servers.selftimed("epoll", rsa, "--groups", groups, program=version.server) as server:
            seen = run_load(Load(tls="1.3", full=2, program=version.client), server.port)
        assert seen.groups == {"X25519MLKEM768": 2}


CALIBRATED, CALIBRATED_WITHIN = 1.1, 0.25
"""What a change from X25519MLKEM768 to P-384 makes in a server as a multiple of what their calibration
says, and how far that may be off. The longer messages, which are hashed and sent too, are no part of the key
exchange. What a change to X25519 makes is a tenth of a handshake, less than its spread here."""


SLICES = 15
"""Of a repeat, in turns: on a shared machine the speed of a core changes within a second, by a third. Of five, half of the
repeats were outside."""


@pytest.mark.long
@pytest.mark.apart
@pytest.mark.parametrize("version", ["3.5", "3.6", "4.0"], indirect=True)
def test_a_calibration_predicts_what_the_hybrid_group_costs(version, certificates):
    def server() -> AbstractContextManager[servers.SelfTimed]:
        return servers.selftimed("epoll", certificates["ecdsa"], program=version.server)

    def load(group: str) -> Load:
        return Load(tls="1.3", full=40, groups=group, program=version.client, threads=1)

    every: list[dict[str, float]] = []

    def measured_by_predicted() -> float:
        calibrated = []
        with server() as classic, server() as hybrid:
            for _ in range(SLICES):
                calibrated.append(calibrate(version))
                run_load(load("P-384"), classic.port)
                run_load(load("X25519MLKEM768"), hybrid.port)
            costs = [one.finish() for one in (classic, hybrid)]
        every.extend(calibrated)
        predicted = mean(each["secp384r1"] - each["X25519MLKEM768"] for each in calibrated)
        slow, fast = (one.completed_cpu_seconds / one.completed for one in costs)
        return (slow - fast) / predicted

    figures = repeats(measured_by_predicted)
    assert_agrees(figures, expected=CALIBRATED, within=CALIBRATED_WITHIN, name=version.number)
    of = lambda group: median(each[group] for each in every)
    assert of("x25519") < of("X25519MLKEM768") < of("secp384r1")


def calibrate(version: Version) -> dict[str, float]:
    """CPU seconds of operations in the libcrypto of that version, which needs the C library that came
    with it."""
    linked = lambda program, name: re.search(rf"/\S*/{name}\S*", run(["ldd", program]).stdout)[0]
    library, loader = (linked(version.server, name) for name in ("libcrypto", "ld-linux"))
    libraries = f"{Path(library).parent}:{Path(linked(TLSPROF, 'libgcc_s')).parent}"
    command = [loader, "--library-path", libraries, TLSPROF, "calibrate-internal", library, "public-keys"]
    lines = run(command).stdout.splitlines()
    return {name: float(likely) / 1e9 for name, _, likely, _ in map(str.split, lines)}
