"""CPU time by cryptographic primitive: with function names against the steps of probes in the library, in
stripped Go by its table of functions, in a stripped program by its instructions; and always adding up to
the activities that it is divided from."""

from pathlib import Path

import pytest

from harness import other_stacks
from harness.load import Load, run_load
from harness.paths import PROGRAMS
from harness.processes import private_copy
from harness.profiler import Profiling, Service
from harness.servers import Server, announcing

pytestmark = pytest.mark.alone

CONFIG = "[profile]\nsample_frequency = 997\n"
"""About 2,000 samples of the load: a share has a standard error of about a point."""
FULL = 1000
TLS = ("handshake", "encryption")

GROUPS = {"P-256": "p256", "X25519": "curve25519"}
"""Groups with code of their own; RSA-2048 signs."""
AGREE = 0.06
"""How far the share of key exchange in key exchange and signing may be from that of the steps: these
contain hashes, memory and calls around the arithmetic."""


def profiled(folder: Path, server: Server, groups: str) -> Service:
    """The service of this server, under full handshakes of TLS 1.3."""
    config = folder / "tlsprof.toml"
    config.write_text(CONFIG)
    with Profiling(folder, "--config", config) as profiling:
        run_load(Load(tls="1.3", full=FULL, groups=groups, threads=2), server.port)
        profiling.finish()
    return profiling.report.on_port(server.port)


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


@pytest.mark.parametrize("group", GROUPS)
def test_names_agree_with_the_steps_of_library_probes(group, rsa, tmp_path):
    program = private_copy(PROGRAMS / "http.symbols", tmp_path, "named")
    with announcing([program, rsa.cert, rsa.key, "--tls", "1.3"]) as server:
        service = profiled(tmp_path, server, group)
    computed = seconds(service)
    exchange, signing = (service.step_seconds(step) for step in ("key_exchange", "signing"))
    assert signing > exchange > 0, service
    arithmetic = computed[GROUPS[group]], computed["big_number"]
    share = arithmetic[0] / sum(arithmetic)
    assert share == pytest.approx(exchange / (exchange + signing), abs=AGREE), service
    samples = service.data["primitive_samples"]
    assert samples["by_name"] > 0.9 * samples["count"], service


def test_stripped_go_has_names(rsa, tmp_path):
    with other_stacks.go(tmp_path, rsa) as server:
        service = profiled(tmp_path, server, "X25519")
    computed = seconds(service)
    samples = service.data["primitive_samples"]
    assert samples["by_name"] > 0.95 * samples["count"], service
    # An RSA-2048 signature takes four to ten times an exchange with X25519.
    assert 0.5 < computed["big_number"] / sum(computed.values()) < 0.9, service
    assert 0.03 < computed["curve25519"] / sum(computed.values()) < 0.25, service


def test_stripped_code_is_never_given_a_wrong_name(rsa, tmp_path):
    with other_stacks.static_http(tmp_path, rsa, "1.3") as server:
        service = profiled(tmp_path, server, "P-256")
    computed = seconds(service)
    # What RSA-2048, P-256 and the handshake's hashes and ciphers leave, and nothing else.
    possible = {"public_key", "big_number", "p256", "sha", "aes", "memory", "kernel", "not_identified"}
    assert set(computed) <= possible, service
    public_key = sum(computed.get(one, 0) for one in ("public_key", "big_number", "p256"))
    assert public_key > 0.5 * sum(computed.values()), service
