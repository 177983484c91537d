"""OpenSSL 1.1.1, 3.5 and 3.6, as Debian has them, against servers that count and time themselves."""

import os
import shutil
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Iterable

import pytest

from harness import debian, servers
from harness.load import Load, run_load
from harness.paths import LOADGEN
from harness.profiler import Profiling, Service, profile_load

CPU_TOLERANCE = 0.05
DEARER = 3.0
SAME_WORK = 0.25
SMALL_SHARE = 0.2
REPEATS = 3

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
        return self.number.startswith("3.")


@pytest.fixture(scope="module", params=debian.RELEASES)
def version(request, tmp_path_factory) -> Version:
    """Each version that can be had here; the others are skipped by name."""
    try:
        openssl = debian.openssl(request.param)
    except debian.Unobtainable as why:
        pytest.skip(f"OpenSSL {request.param} cannot be had: {why}")
    folder = tmp_path_factory.mktemp("programs")

    def own(program: Path) -> Path:
        return shutil.copy(program, folder / f"{program.name}-{openssl.version}-{os.getpid()}")

    # loadgen asks for the group's name, which 1.1.1 cannot tell: there, the host's own.
    client = openssl.build("loadgen") if openssl.version.startswith("3.") else LOADGEN
    return Version(openssl.version, own(openssl.build("selftimed")), own(client))


@pytest.fixture
def all_steps(tmp_path) -> list:
    """Options with which key derivation is measured in each handshake, not now and then."""
    config = tmp_path / "tlsprof.toml"
    config.write_text(ALWAYS_ALL_STEPS)
    return ["--config", config]


def only(version: Version, number: str) -> None:
    if not version.number.startswith(number):
        pytest.skip(f"a matter of OpenSSL {number}")


@pytest.mark.parametrize("form", ["threads", "epoll"])
def test_counts_equal_the_servers_own(form, version, rsa, tmp_path):
    load = Load(full=150, resume=150, program=version.client, **BROKEN)
    with ExitStack() as stack:
        # One for each version of TLS: 1.1.1 by itself takes TLS 1.1, too, which
        # the clients that must fail offer.
        started = [
            stack.enter_context(
                servers.selftimed(form, rsa, "--groups", GROUPS, "--tls", tls, program=version.server)
            )
            for tls in ("1.2", "1.3")
        ]
        with Profiling(tmp_path) as profiling:
            seen = [run_load(load, server.port) for server in started]
        measured = [server.finish() for server in started]

    service = profiling.report.service(version.server.name)
    assert [server.completed for server in measured] == [300, 300]
    assert service.outcomes("server") == added(server.outcomes for server in measured)
    completed = dict(role="server", outcome="completed")
    assert service.count(resumption="none", **completed) == 2 * load.full
    assert service.count(resumption="abbreviated", **completed) == load.resume
    assert service.count(resumption="psk", **completed) == load.resume
    assert versions_of(service) == {version.number}

    client = profiling.report.service(version.client.name)
    assert client.outcomes("client") == added(load.outcomes for load in seen)
    assert client.resumed("client") == 2 * load.resume


def added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    return dict(sum((Counter(count) for count in counts), start=Counter()))


def versions_of(service: Service) -> set[str]:
    """libcrypto states its version; libssl states none."""
    libraries = service.data["tls_libraries"]
    assert all(library["state"] == "profiled" for library in libraries), libraries
    return {library["version"] for library in libraries if library["version"]}


def test_cpu_time_equals_the_servers_own(version, rsa, tmp_path):
    ratios = []
    for _ in range(REPEATS):
        with servers.selftimed("epoll", rsa, program=version.server) as server:
            load = Load(full=150, resume=150, program=version.client)
            report, _seen = profile_load(tmp_path, server.port, load)
            measured = server.finish()
        service = report.service(version.server.name)
        ratios.append(service.cpu_seconds(outcome="completed") / measured.completed_cpu_seconds)
    assert median(ratios) == pytest.approx(1.0, abs=CPU_TOLERANCE), ratios


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_steps_are_told_apart(tls, version, rsa, tmp_path, all_steps):
    load = Load(tls=tls, full=60, program=version.client)
    with servers.selftimed("threads", rsa, program=version.server) as server:
        report, _seen = profile_load(tmp_path, server.port, load, options=all_steps)
    service = report.service(version.server.name)
    steps = {step: service.step_seconds(step) for step in ("key_exchange", "signing", "key_derivation")}
    assert all(seconds > 0 for seconds in steps.values()), steps
    assert service.step_seconds("rsa_decryption") == 0
    assert sum(steps.values()) < service.cpu_seconds(role="server") / load.full


def test_rsa_key_transport_is_decryption(version, rsa, tmp_path):
    load = Load(tls="1.2", full=40, ciphers="AES128-GCM-SHA256", program=version.client)
    with servers.selftimed("threads", rsa, program=version.server) as server:
        report, _seen = profile_load(tmp_path, server.port, load)
    service = report.service(version.server.name)
    assert service.step_seconds("rsa_decryption") > 0
    assert service.step_seconds("signing") == service.step_seconds("key_exchange") == 0
    assert service.count(role="server", outcome="completed", group="none", signature="none") == load.full


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_one_function_for_exchange_and_derivation_is_split(tls, version, rsa, tmp_path, all_steps):
    """1.1.1 calls EVP_PKEY_derive for both. A dearer curve makes the exchange dearer and leaves
    the derivation as it was."""
    only(version, "1.1.1")
    exchanges, derivations, shares = [], [], []
    for _ in range(REPEATS):
        cheap, dear = splits(version, ["X25519", "P-384"], tls, rsa, tmp_path, all_steps)
        exchanges.append(dear.exchange / cheap.exchange)
        derivations.append(dear.derivation / cheap.derivation)
        shares.append(dear.derivation / dear.exchange)
    assert median(exchanges) > DEARER, exchanges
    assert median(derivations) == pytest.approx(1.0, abs=SAME_WORK), derivations
    assert median(shares) < SMALL_SHARE, shares


@dataclass(frozen=True)
class Split:
    """Seconds in one handshake."""

    exchange: float
    derivation: float


def splits(version: Version, groups: list[str], tls: str, certificate, folder: Path, options) -> list[Split]:
    """One profile of a server for each group, each under a name of its own."""
    programs = [shutil.copy(version.server, folder / f"{version.server.name}-{group}") for group in groups]
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                servers.selftimed("threads", certificate, "--groups", group, program=program)
            )
            for group, program in zip(groups, programs)
        ]
        with Profiling(folder, *options) as profiling:
            for group, server in zip(groups, started):
                run_load(Load(tls=tls, full=60, groups=group, threads=1, program=version.client), server.port)
    services = [profiling.report.service(program.name) for program in programs]
    return [
        Split(service.step_seconds("key_exchange"), service.step_seconds("key_derivation"))
        for service in services
    ]


GROUP_NAMES = {"X25519": "x25519", "P-256": "secp256r1", "P-384": "secp384r1"}


def test_groups_are_named_or_unknown(version, rsa, tmp_path):
    """1.1.1 does not say the name of a group; the label must then not pretend to know."""
    with servers.selftimed("threads", rsa, program=version.server) as server:
        with Profiling(tmp_path) as profiling:
            for group in GROUP_NAMES:
                run_load(Load(tls="1.3", full=10, groups=group, program=version.client), server.port)
    completed = dict(role="server", outcome="completed")
    service = profiling.report.service(version.server.name)
    counts = {name: service.count(group=name, **completed) for name in {*GROUP_NAMES.values(), "unknown"}}
    if version.is_v3:
        assert counts == {**dict.fromkeys(GROUP_NAMES.values(), 10), "unknown": 0}
    else:
        assert counts == {**dict.fromkeys(GROUP_NAMES.values(), 0), "unknown": 30}


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


def test_hybrid_group_is_the_default_and_named(version, rsa, tmp_path):
    """Servers that also have it fall back to X25519 with a client that does not."""
    only(version, "3.")
    new, old = (Load(tls="1.3", full=20, resume=10, program=client) for client in (version.client, LOADGEN))
    with servers.selftimed("epoll", rsa, program=version.server) as server:
        with Profiling(tmp_path) as profiling:
            seen = run_load(new, server.port)
            run_load(old, server.port)
    service = profiling.report.service(version.server.name)
    completed = dict(role="server", outcome="completed")
    assert seen.groups == {"X25519MLKEM768": 30}
    assert service.count(group="X25519MLKEM768", **completed) == 30
    assert service.count(group="x25519", **completed) == 30
    assert service.step_seconds("key_exchange") > 0
