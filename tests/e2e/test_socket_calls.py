"""The ways to see socket calls, each forced: the same traffic gives the same counts.

No probe is placed in a library here, so that all that is told comes from socket calls.
"""

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from harness import plain_nginx, servers
from harness.load import Load
from harness.paths import TLSPROF
from harness.plain_nginx import request
from harness.processes import run
from harness.profiler import Profiling, Report, Service, profile_load

TIERS = ("tracepoint", "fentry", "raw_syscalls")

LABELS = ("outcome", "version", "cipher", "group", "resumption")
UNKNOWN = ("unknown",) * 4

LOAD = dict(full=40, resume=30, no_group=10, reject=20)
TLS12 = ("TLS1.2", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384")
TLS13 = ("TLS1.3", "TLS_AES_256_GCM_SHA384")

HANDSHAKES = {
    ("completed", *TLS12, "x25519", "none"): LOAD["full"],
    ("completed", *TLS12, "none", "ticket"): LOAD["resume"],
    ("completed", *TLS13, "x25519", "none"): LOAD["full"],
    ("completed", *TLS13, "x25519", "psk"): LOAD["resume"],
    # The client dislikes the certificate: an alert, encrypted in TLS 1.3.
    ("failed", *TLS12, "x25519", "none"): LOAD["reject"],
    ("failed", *TLS13, "x25519", "none"): LOAD["reject"],
    # The server never answers with a hello.
    ("failed", *UNKNOWN): 2 * LOAD["no_group"],
}


def configuration(folder: Path, tier: str) -> Path:
    path = folder / "tlsprof.toml"
    path.write_text(f'[profile]\nconnections = "{tier}"\nlibrary = "off"\n')
    return path


@cache
def capabilities() -> dict[str, dict[str, str]]:
    told = json.loads(run([TLSPROF, "doctor", "--format", "json"]).stdout)
    return {one["name"]: one for one in told["capabilities"]}


@pytest.fixture(params=TIERS)
def tier(request) -> str:
    """Each that the kernel lets in; that the others say why is a test of its own."""
    found = capabilities()[f"socket_calls_{request.param}"]
    if found["state"] != "available":
        pytest.skip(f"refused: {found['reason']}")
    return request.param


def turns(report: Report, port: int) -> dict[int, int]:
    figures = [one for one in report.on_port(port).data["connections"] if one["role"] == "server"]
    rows = [row for one in figures for closed in one["closed"] for row in closed["turns"]]
    assert all(row["from"] == row["to"] for row in rows), rows
    return {row["from"]: row["connections"] for row in rows}


def handshakes(service: Service, role: str) -> dict[tuple[str, ...], int]:
    counts: Counter[tuple[str, ...]] = Counter()
    for group in service.groups(role=role):
        counts[tuple(group[label] for label in LABELS)] += group["count"]
    return dict(counts)


@pytest.mark.parametrize("limit", [1, 5, 40])
def test_turns_are_exactly_those_made(limit, tier, tmp_path):
    with plain_nginx.nginx(tmp_path, "tier", limit) as server:
        with Profiling(tmp_path, "--config", configuration(tmp_path, tier)) as profiling:
            made = request(server.port, 400)
            profiling.finish()
    assert made == 400 // limit
    assert turns(profiling.report, server.port) == {limit: made}


@pytest.mark.parametrize("form", ["epoll", "threads"])
def test_handshakes_are_exactly_those_made(form, tier, rsa, tmp_path):
    loads = [Load(tls=tls, **LOAD) for tls in ("1.2", "1.3")]
    options = ["--config", configuration(tmp_path, tier)]
    with servers.selftimed(form, rsa, "--groups", "P-256:X25519") as server:
        report, seen = profile_load(tmp_path, server.port, *loads, options=options)
        server.finish()
    assert handshakes(report.service("selftimed"), "server") == HANDSHAKES
    client = report.service("loadgen")
    assert client.count(role="client", outcome="completed") == seen.completed
    assert client.resumed("client") == seen.resumed
    assert not report.losses_of_events()
    # No probe was hit in a process: what hooks cost is programs, and what leads to them.
    cost = report.data["agent"]
    assert cost["profiled_seconds"] > cost["bpf_run_seconds"] > 0


@pytest.mark.parametrize("refused", TIERS)
def test_a_tier_that_is_refused_is_not_replaced_by_another(refused, tmp_path):
    found = capabilities()[f"socket_calls_{refused}"]
    if found["state"] == "available":
        pytest.skip("the kernel lets it in")
    assert "fexit/tcp_recvmsg: the BPF_PROG_LOAD syscall returned" in found["reason"]
    with plain_nginx.nginx(tmp_path, "refused") as server:
        with Profiling(tmp_path, "--config", configuration(tmp_path, refused)) as profiling:
            assert request(server.port, 10) == 1
            profiling.finish()
    assert turns(profiling.report, server.port) == {}
    expected = f"Turns of TCP connections were not counted: {found['reason']}."
    assert expected in profiling.report.data["notes"]


def test_the_first_tier_that_the_kernel_lets_in_is_used():
    rows = [capabilities()[f"socket_calls_{name}"] for name in TIERS]
    available = [row for row in rows if row["state"] == "available"]
    assert [row["gives"].startswith("in use") for row in available][:1] == [True]
    assert sum(row["gives"].startswith("in use") for row in rows) == 1
