"""The ways to see socket calls, each forced: the same traffic gives the same counts.

No probe is placed in a library here, so that all that is told comes from socket calls.
"""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Callable, Mapping

import pytest

from harness import plain_nginx, servers
from harness.load import Load, Seen, run_load
from harness.paths import LOADGEN, SELFTIMED, TLSPROF
from harness.plain_nginx import request
from harness.processes import name_of_copy, private_copy, run
from harness.profiler import Profiling, Report, Service
from harness.servers import Server
from harness.together import own_folder, together

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


LIMITS = (1, 5, 40)
FORMS = ("epoll", "threads")


@dataclass(frozen=True)
class Profiled:
    """One profile by one tier."""

    report: Report
    ports: Mapping[int, int]
    """By the limit of requests."""
    made: Mapping[int, int]
    seen: Mapping[str, Seen]
    """By the form of the server."""


def profiled_by(tier: str, folder: Path, rsa) -> Profiled:
    own = {form: own_folder(folder, form) for form in FORMS}
    starts = {limit: plain_nginx.nginx(folder, f"tier{limit}", limit) for limit in LIMITS}
    for form in FORMS:
        program = private_copy(str(SELFTIMED), own[form])
        starts[form] = servers.selftimed(form, rsa, "--groups", "P-256:X25519", program=program)

    def load(form: str, server: Server) -> Seen:
        client = private_copy(str(LOADGEN), own[form])
        loads = [Load(tls=tls, program=client, **LOAD) for tls in ("1.2", "1.3")]
        return sum((run_load(load, server.port) for load in loads), Seen.nothing())

    with together(starts) as running:
        with Profiling(folder, "--config", configuration(folder, tier)) as profiling:
            made = {limit: request(running[limit].port, 400) for limit in LIMITS}
            seen = {form: load(form, running[form]) for form in FORMS}
            profiling.finish()
    return Profiled(profiling.report, {limit: running[limit].port for limit in LIMITS}, made, seen)


@pytest.fixture(scope="module")
def profiled(rsa, tmp_path_factory) -> Callable[[str], Profiled]:
    """A profile by each tier that the kernel lets in, made when it is first asked for; that the
    others say why is a test of its own."""

    @cache
    def by(tier: str) -> Profiled:
        return profiled_by(tier, tmp_path_factory.mktemp(tier), rsa)

    def get(tier: str) -> Profiled:
        found = capabilities()[f"socket_calls_{tier}"]
        if found["state"] != "available":
            pytest.skip(f"refused: {found['reason']}")
        return by(tier)

    return get


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("limit", LIMITS)
def test_turns_are_exactly_those_made(limit, tier, profiled):
    found = profiled(tier)
    assert found.made[limit] == 400 // limit
    assert turns(found.report, found.ports[limit]) == {limit: 400 // limit}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("form", FORMS)
def test_handshakes_are_exactly_those_made(form, tier, profiled):
    found = profiled(tier)
    report, seen = found.report, found.seen[form]
    assert handshakes(report.service(name_of_copy(SELFTIMED, Path(form))), "server") == HANDSHAKES
    client = report.service(name_of_copy(LOADGEN, Path(form)))
    by_service = {service.name: service.count(role="client") for service in report.services}
    assert client.count(role="client", outcome="completed") == seen.completed, by_service
    assert client.resumed("client") == seen.resumed
    assert not report.losses_of_events()
    # No probe was hit in a process: what hooks cost is programs, and what these displace from the caches,
    # which is nothing where they find them warm.
    cost = report.data["agent"]
    assert cost["profiled_seconds"] >= cost["bpf_run_seconds"] > 0


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
