"""Steps of handshakes by samples on stacks that no probe measures, against what functions with names take of the same
load: by perf's samples, with the symbols that the stripped program does not have, or by probes on what its libraries
export."""

import math
import re
import shutil
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Callable, Mapping

import pytest

from harness import debian, other_stacks, symbols
from harness.certificates import Certificate
from harness.load import Load, run_load
from harness.paths import LOADGEN
from harness.profiler import Profiling, Service
from harness.sampled_steps import agree, steps
from harness.servers import Server, selftimed
from harness.steal import undisturbed
from harness.timed_calls import seconds_in

pytestmark = [
    pytest.mark.apart,
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed"),
    pytest.mark.skipif(not shutil.which("bpftrace"), reason="bpftrace is not installed"),
]

FREQUENCY = 997
CONFIG = f"[profile]\nsample_frequency = {FREQUENCY}\n"

POINTS = 0.07
"""Of the CPU time of the service."""

Steps = Mapping[str, float]
"""CPU time or samples by step, and of the whole service where that is known."""
WHOLE = "whole"

Exact = Callable[[Path, Server, Load, Mapping[str, str]], Steps]
"""Runs a load against a server. The last argument: functions by step, as an expression."""


def by_samples(functions: symbols.Functions) -> Exact:
    def exact(folder: Path, server: Server, load: Load, names: Mapping[str, str]) -> Steps:
        commands = [load.command(server.port)]
        places = symbols.perf_places_of_each(folder, [server.pid], FREQUENCY, commands)[server.pid]
        found = functions(places, server)
        print(found.most_common(30))
        return {step: matching(found, those) for step, those in names.items()} | {WHOLE: found.total()}

    return exact


def matching(functions: Counter[str], those: str) -> int:
    return sum(count for name, count in functions.items() if re.match(those, name))


def by_probes(library: str) -> Exact:
    def exact(_folder: Path, server: Server, load: Load, names: Mapping[str, str]) -> Steps:
        functions = {step: those.split("|") for step, those in names.items()}
        return seconds_in(server.pid, library, functions, load.command(server.port))

    return exact


def by_calls(version: str) -> Exact:
    def exact(folder: Path, server: Server, load: Load, names: Mapping[str, str]) -> Steps:
        command = load.command(server.port)
        library = debian.openssl(version).libssl
        found = symbols.perf_calls(folder, server.pid, FREQUENCY, command, library, names)
        print(found)
        return {step: found[step] for step in names} | {WHOLE: found.total()}

    return exact


@dataclass(frozen=True)
class Stack:
    """Where a stack's handshakes compute what, as names of functions in its sources."""

    start: Callable[[Path, Certificate], AbstractContextManager[Server]]
    exact: Exact
    steps: dict[str, dict[str, str]]
    """By group, for an RSA key: functions by step."""
    named: float = 0.8
    """Of the samples, so many have a name."""
    before: int = 0
    """So many handshakes make it compile its own code first."""
    names: Callable[[int], AbstractContextManager[object]] = lambda _pid: nullcontext()
    """Has it tell the names of that."""
    config: str = CONFIG
    client: Callable[[], Path] = lambda: LOADGEN
    """What loads it."""
    points: float = POINTS
    shared: float = 1.0
    """Of its handshakes, no more is in code that may be for two steps."""


def openssl_server(version: str, _folder: Path, certificate: Certificate) -> AbstractContextManager[Server]:
    return selftimed("epoll", certificate, program=debian.openssl(version).build("selftimed"))


GO_RSA = r"crypto/(internal/fips140/)?rsa\.|crypto/internal/fips140/bigmod\.|math/big\."
AWS_LC = r"(aws_lc_[\d_]+_)?"
AWS_LC_RSA = AWS_LC + r"(rsa|RSA|bn_|BN_|bignum_(?!.*(p256|25519))|\w*amm52)"
RING_RSA = r"(ring_core_[\d_]+|__)?(bn_(sqr|power|post|mulx?4x|gather|scatter|from)|mulx?4x_internal)|_R\w*4ring\w*(3rsa|6bigint)"
RING_25519 = r"(ring_core_[\d_]+|inline_)?(x25519|fiat_curve25519|fe4?_|ge_)"
# Arithmetic for any length, which its RSA has others for.
RING_P384 = r"ring_core_[\d_]+(bn_mul_mont|LIMBS_|p384)|elem_|(p|nistz)384_"
BORING_RSA = r"\w*(rsa|RSA|bn_|BN_|mulx?4x|mod_exp)"
NSS_SIGNING = {"signing": "PK11_SignWithMechanism"}
NSS_STEPS = NSS_SIGNING | {"key_exchange": "PK11_GenerateKeyPairWithOpFlags|PK11_PubDeriveWithKDF"}
NETTLE_SIGNING = {"signing": "nettle_rsa_compute_root_tr"}
NETTLE_CURVES = NETTLE_SIGNING | {"key_exchange": "nettle_ecc_point_mul|nettle_ecc_point_mul_g"}
JAVA_RSA = r"(.*\bjava\.math\.\w*BigInteger\.|StubRoutines::(mulAdd|multiplyToLen|square)|\w*montgomery_)"
JAVA_CURVES = r".*\bsun\.security\.(util\.math\.intpoly|ec)\."
JAVA_STEPS = {"key_exchange": JAVA_CURVES, "signing": JAVA_RSA}
STACKS = {
    "go": Stack(
        other_stacks.go,
        by_samples(symbols.stripped("go_server")),
        {
            "X25519": {"key_exchange": r"crypto/.*25519|crypto/ecdh\.", "signing": GO_RSA},
            "P-256": {"key_exchange": r"crypto/.*(nistec|ecdh)\b", "signing": GO_RSA},
            "P-384": {"key_exchange": r"crypto/.*(nistec|ecdh)\b", "signing": GO_RSA},
        },
    ),
    "rustls": Stack(
        other_stacks.rustls,
        by_samples(symbols.stripped("rustls-server")),
        {
            "X25519": {"key_exchange": AWS_LC + r"\w*25519", "signing": AWS_LC_RSA},
            "P-256": {"key_exchange": AWS_LC + r"(\w*p256|\w*nistz256|ec_|EC_)", "signing": AWS_LC_RSA},
        },
        # Of stripped Rust 0.79 to 0.86: what has no name is code of the protocol, in hundreds of functions.
        named=0.75,
    ),
    "ring": Stack(
        lambda *where: other_stacks.built("rustls-ring", *where),
        by_samples(symbols.stripped("rustls-ring")),
        {
            "X25519": {"key_exchange": RING_25519, "signing": RING_RSA},
            "P-256": {"key_exchange": r"\w*(p256|nistz256)", "signing": RING_RSA},
            "P-384": {"key_exchange": RING_P384, "signing": RING_RSA},
        },
    ),
    "boringssl": Stack(
        lambda *where: other_stacks.built("boring-server", *where),
        by_samples(symbols.stripped("boring-server")),
        {
            "X25519": {"key_exchange": r"\w*(25519|fe4?_|ge_)", "signing": BORING_RSA},
            "P-256": {"key_exchange": r"\w*(p256|nistz256|ec_|EC_)", "signing": BORING_RSA},
        },
    ),
    "gnutls": Stack(
        other_stacks.gnutls_serv,
        by_probes("libhogweed.so"),
        {
            "X25519": NETTLE_SIGNING | {"key_exchange": "nettle_curve25519_mul|nettle_curve25519_mul_g"},
            "P-256": NETTLE_CURVES,
            "P-384": NETTLE_CURVES,
        },
    ),
    "nss": Stack(
        other_stacks.selfserv,
        by_probes("libnss3.so"),
        {"X25519": NSS_STEPS, "P-256": NSS_STEPS, "P-384": NSS_STEPS},
    ),
    "java": Stack(
        lambda *where: other_stacks.java(*where, options=symbols.JAVA_OPTIONS),
        by_samples(lambda places, server: symbols.java_functions(places, server.process)),
        {"X25519": JAVA_STEPS, "P-256": JAVA_STEPS},
        # What it compiles from Java has no name; of that only the arithmetic of curves is identified.
        named=0.6,
        before=2000,
    ),
}
# Code for several curves is that of key exchange once RSA's own has 1% of the samples, which with P-256 it has in some
# runs only: else 10 to 14% may be for either.
STACKS["java_with_map"] = replace(STACKS["java"], named=0.8, names=symbols.java_map, shared=0.17)
STACKS["java_21_with_map"] = replace(
    STACKS["java_with_map"],
    start=lambda *where: other_stacks.java(*where, options=symbols.JAVA_OPTIONS, home=other_stacks.JAVA_21),
)
# With what curves compute to check a peer's key and to write their own, which no probe measures.
OPENSSL_STEPS = {
    "key_exchange": "EVP_PKEY_(keygen|derive(_set_peer)?|encapsulate|decapsulate|get1_encoded_public_key)",
    "signing": "EVP_DigestSign",
}
STACKS |= {
    f"openssl_{version}": Stack(
        partial(openssl_server, version),
        by_calls(version),
        dict.fromkeys(("X25519", "P-384", "X25519MLKEM768"), OPENSSL_STEPS),
        # Probes take time that belongs to none of the steps.
        config=CONFIG + 'library = "off"\n',
        client=lambda: debian.openssl("3.5").build("loadgen"),
        named=0.5,
        points=0.05,
        shared=0.05,
    )
    for version in ("3.5", "3.6", "4.0")
}
CASES = [(name, group) for name, stack in STACKS.items() for group in stack.steps]


@pytest.mark.parametrize("name, group", CASES)
def test_steps_are_those_of_functions_with_names(name, group, rsa, tmp_path):
    stack = STACKS[name]
    if name.startswith("java_21") and not other_stacks.JAVA_21.exists():
        pytest.skip("no Java 21: deploy/packages/tools.sh servers")
    config = tmp_path / "tlsprof.toml"
    config.write_text(stack.config)

    def measured() -> tuple[Service, dict[str, float]]:
        with stack.names(server.pid), Profiling(tmp_path, "--config", config) as profiling:
            exact = dict(stack.exact(tmp_path, server, load, stack.steps[group]))
            profiling.finish()
        return profiling.report.on_port(server.port), exact

    with stack.start(tmp_path, rsa) as server:
        load = Load(tls="1.3", full=2000, groups=group, threads=2, program=stack.client())
        run_load(replace(load, full=stack.before), server.port)
        # What probes measure has it in it, and what is sampled has not.
        service, exact = undisturbed(measured)
    spent = sum(row["cpu_seconds"] for row in service.data["activities"])
    in_handshakes = sum(row["cpu_seconds"] for row in service.data["sampled_steps"]) / spent
    found = {step: share * in_handshakes for step, share in steps(service).items()}
    counted = exact.pop(WHOLE, 0.0)
    exact = {step: amount / (counted or spent) for step, amount in exact.items()}
    # Samples, too, have an error.
    points = stack.points + (1 / math.sqrt(counted) if counted else 0.0)
    print(f"{name}, {group}: {found}, exact {exact}")
    assert min(exact.values()) > 0.01
    agree(found, exact, service, points)
    assert sum(share for step, share in found.items() if "+" in step) <= stack.shared, found
    samples = service.data["primitive_samples"]
    print(samples)
    assert samples["not_identified"] <= (1 - stack.named) * samples["count"], service
