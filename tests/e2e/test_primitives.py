"""CPU time by cryptographic primitive: with function names against the steps of probes in the library, in
stripped Go by its table of functions, in a stripped program by its instructions; and always adding up to
the activities that it is divided from."""

from pathlib import Path

import pytest

from harness import other_stacks
from harness.certificates import Certificate
from harness.load import Load, run_load
from harness.paths import PROGRAMS
from harness.processes import private_copy
from harness.profiler import Profiling, Service
from harness.servers import Server, announcing
from harness.steal import watch_steal

CONFIG = "[profile]\nsample_frequency = 997\n"
FULL = 2000
"""1,400 samples and more, 100 of them or more in the rarest primitive that is judged: a standard error
of at most 10% of its CPU time."""
TLS = ("handshake", "encryption")

GROUPS = {"P-256": "p256", "X25519": "curve25519"}
"""Groups with code of their own; RSA-2048 signs."""
# A step holds its arithmetic, and hashes, memory and calls around it: these take about as long on
# every CPU, while a signature takes half as long with AVX-512 IFMA as without. Measured: arithmetic is
# 0.6 to 0.8 of an exchange and 0.95 of a signature. Beyond these limits lie four standard errors.
OF_EXCHANGE = (0.4, 1.1)
OF_SIGNING = (0.8, 1.2)
# Code without a name that instructions prove to be public-key arithmetic, against the same code with
# its names: 0.85 to 0.95 of it is found.
OF_NAMED = (0.7, 1.15)


def profiled(folder: Path, server: Server, groups: str) -> Service:
    """The service of this server, under full handshakes of TLS 1.3."""
    config = folder / "tlsprof.toml"
    config.write_text(CONFIG)
    with Profiling(folder, "--config", config) as profiling:
        run_load(Load(tls="1.3", full=FULL, groups=groups, threads=2), server.port)
        profiling.finish()
    return profiling.report.on_port(server.port)


def profiled_with_names(certificate: Certificate, folder: Path, group: str) -> Service:
    """A server with OpenSSL and the names of its functions in it, and the same load."""
    program = private_copy(PROGRAMS / "http.symbols", folder)
    with announcing([program, certificate.cert, certificate.key, "--tls", "1.3"]) as server:
        return profiled(folder, server, group)


def public_key_share(service: Service) -> float:
    """Of handshakes and encryption; of code that is named, and not."""
    computed = seconds(service)
    return (rsa_seconds(computed) + computed.get("public_key", 0) + computed["p256"]) / sum(computed.values())


def rsa_seconds(computed: dict[str, float]) -> float:
    """Exponentiation, and what it shares with other algorithms."""
    return computed.get("rsa_dh", 0) + computed.get("big_number", 0)


def seconds(service: Service) -> dict[str, float]:
    """By primitive; checks that they add up, and that each lies within its range."""
    rows = service.data["primitives"]
    activities = service.data["activities"]
    whole = sum(row["cpu_seconds"] for row in activities if row["activity"] in TLS)
    assert sum(row["cpu_seconds"] for row in rows) == pytest.approx(whole, abs=1e-6)
    samples = service.data["primitive_samples"]
    parts = ("by_name", "by_instructions", "not_identified")
    assert sum(samples[part] for part in parts) == samples["count"]
    assert samples["count"] == sum(row["samples"] for row in activities if row["activity"] in TLS)
    for row in rows:
        assert row["share_low"] <= row["share"] <= row["share_high"], row
    return {row["primitive"]: row["cpu_seconds"] for row in rows}


@pytest.mark.parametrize("group", ["X25519", pytest.param("P-256", marks=pytest.mark.long)])
def test_names_agree_with_the_steps_of_library_probes(group, rsa, tmp_path):
    steal = watch_steal()
    service = profiled_with_names(rsa, tmp_path, group)
    # Step times include what was stolen, and CPU time by samples does not.
    kept = 1 - steal()
    computed = seconds(service)
    exchange, signing = (service.step_seconds(step) for step in ("key_exchange", "signing"))
    assert signing > exchange > 0, service
    low, high = OF_EXCHANGE
    assert low * kept < computed[GROUPS[group]] / (exchange * FULL) < high, service
    low, high = OF_SIGNING
    assert low * kept < rsa_seconds(computed) / (signing * FULL) < high, service
    samples = service.data["primitive_samples"]
    assert samples["by_name"] > 0.9 * samples["count"], service


@pytest.mark.long
def test_stripped_go_has_names(rsa, tmp_path):
    with other_stacks.go(tmp_path, rsa) as server:
        service = profiled(tmp_path, server, "X25519")
    computed = seconds(service)
    samples = service.data["primitive_samples"]
    assert samples["by_name"] > 0.95 * samples["count"], service
    # An RSA-2048 signature takes four to ten times an exchange with X25519.
    assert 0.5 < rsa_seconds(computed) / sum(computed.values()) < 0.9, service
    assert 0.03 < computed["curve25519"] / sum(computed.values()) < 0.25, service


def test_stripped_code_is_never_given_a_wrong_name(rsa, tmp_path):
    with other_stacks.static_http(tmp_path, rsa, "1.3") as server:
        service = profiled(tmp_path, server, "P-256")
    # What RSA-2048, P-256 and the handshake's hashes and ciphers leave, and nothing else.
    possible = {"public_key", "big_number", "rsa_dh", "p256", "sha", "aes", "memory", "kernel", "not_identified"}
    assert set(seconds(service)) <= possible, service
    named = profiled_with_names(rsa, tmp_path, "P-256")
    low, high = OF_NAMED
    assert low < public_key_share(service) / public_key_share(named) < high, (service, named)
