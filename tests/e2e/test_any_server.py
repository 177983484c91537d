"""Servers of every TLS stack, from socket calls alone: the report says what the clients saw.

And where the library is probed as well, it says the same, each handshake once.
"""

import re
import subprocess
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Callable

import pytest

from harness import debian, libraries, other_stacks, servers
from harness.certificates import Certificate
from harness.load import Load, Negotiated, Seen, counted, run_load
from harness.paths import COROUTINE_LIBRARY, PROGRAMS, SELFTIMED
from harness.processes import Process
from harness.profiler import Profiling, Report, Service
from harness.servers import Server
from harness.targets import TARGETS, Target

LIBRARY_OFF = '[profile]\nlibrary = "off"\n'

PROBED = [name for name, target in TARGETS.items() if target.openssl]

ATTEMPTS = 3
SKIPPED = "program_skipped"
"""The kernel left out a program, because a thread had been preempted inside it: rare, counted, and
no fault of what is tested here. It is measured again then."""

MLKEM_SINCE = (1, 24)
"""The version of Go that brought X25519MLKEM768."""

MLKEM = Negotiated("TLS1.3", "TLS_AES_256_GCM_SHA384", "X25519MLKEM768", "none")


def profiled(folder: Path, server: Server, loads: list[Load], config: str = "") -> tuple[Report, Seen]:
    """Profiles the loads one after another; the server is alive at the end, as its ports tell
    which service it is."""
    file = folder / "tlsprof.toml"
    file.write_text(config)
    with Profiling(folder, "--config", file) as profiling:
        seen = sum((run_load(load, server.port) for load in loads), Seen.nothing())
        profiling.finish()
    return profiling.report, seen


def assert_same(service: Service, loads: list[Load], seen: Seen, target: Target) -> None:
    """Everything that both the report and the client count."""
    assert counted(service.groups(role="server", outcome="completed")) == seen.handshakes
    outcomes = service.outcomes("server")
    failed, abandoned = (sum(getattr(load, kind) for load in loads) for kind in ("failing", "aborted"))
    assert outcomes.pop("completed") == seen.completed
    if target.silent:
        assert sum(outcomes.values()) == failed + abandoned
    else:
        assert outcomes == {"failed": failed, "abandoned": abandoned}
    assert opened(service) - service.count(role="server") == seen.plain


def opened(service: Service) -> int:
    """Connections that were opened to the service."""
    return sum(row["opened"] for row in service.data["connections"] if row["role"] == "server")


def sources(service: Service) -> set[str]:
    return {group["source"] for group in service.groups(role="server")}


def signature(negotiated: Negotiated) -> str:
    """The server's, with an RSA key of 2048 bits."""
    resumed = negotiated.resumption != "none"
    return "none" if resumed or negotiated.cipher.startswith("TLS_RSA_WITH_") else "rsa_2048"


def in_clear(negotiated: Negotiated) -> str:
    """The server's signature, as far as it travels in clear."""
    encrypted = negotiated.version == "TLS1.3" and negotiated.resumption == "none"
    return "unknown" if encrypted else signature(negotiated)


def signatures(service: Service) -> Counter[tuple[Negotiated, str]]:
    """Completed handshakes by what they negotiated and by who signed."""
    counts: Counter[tuple[Negotiated, str]] = Counter()
    for group in service.groups(role="server", outcome="completed"):
        (negotiated,) = counted([group])
        counts[negotiated, group["signature"]] += group["count"]
    return counts


@pytest.mark.parametrize("name", TARGETS)
def test_socket_calls_show_what_the_clients_saw(name, rsa, tmp_path):
    target = TARGETS[name]
    if target.missing:
        pytest.skip(f"not installed: {target.missing}")
    loads = target.loads()
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        folder.chmod(0o755)
        with target.start(folder, rsa) as server:
            report, seen = profiled(folder, server, loads, LIBRARY_OFF)
        if SKIPPED not in report.losses_of_events():
            break
    service = report.on_port(server.port)
    assert_same(service, loads, seen, target)
    assert sources(service) == {"socket"}
    assert signatures(service) == {
        (negotiated, in_clear(negotiated)): count for negotiated, count in seen.handshakes.items()
    }
    assert report.losses_of_events() == {}


@pytest.mark.parametrize("name", PROBED)
def test_a_handshake_that_both_sources_saw_is_one(name, rsa, tmp_path):
    """Without plain connections: some servers pass them to the library, in which they fail. Where
    no probe can be in libcrypto, because another process that maps it switches stacks, signatures
    are what the wire says."""
    target = TARGETS[name]
    loads = target.loads(plain=False)
    with target.start(tmp_path, rsa) as server:
        report, seen = profiled(tmp_path, server, loads)
    service = report.on_port(server.port)
    assert_same(service, loads, seen, target)
    assert sources(service) == {"library"}
    for negotiated, named in signatures(service):
        assert named in (signature(negotiated), in_clear(negotiated)), negotiated


def test_signatures_are_not_denied_where_libcrypto_cannot_be_probed(rsa, tmp_path):
    """Another process that switches stacks maps it; libssl is probed all the same. Then a
    signature is what the wire says, or unknown."""
    bystander = [servers.SYSTEM_PYTHON, servers.SERVERS / "map_files.py", COROUTINE_LIBRARY]
    bystander.append(libraries.loaded_by(SELFTIMED, "libcrypto.so.3"))
    target = TARGETS["nginx"]
    loads = target.loads(plain=False)
    with Process(bystander) as holder, target.start(tmp_path, rsa) as server:
        holder.wait_for_line("ready")
        report, seen = profiled(tmp_path, server, loads)
    service = report.on_port(server.port)
    states = [library["state"].split(":")[0] for library in service.data["tls_libraries"]]
    assert sorted(states) == ["not profiled", "profiled"]
    assert_same(service, loads, seen, target)
    assert signatures(service) == {
        (negotiated, in_clear(negotiated)): count for negotiated, count in seen.handshakes.items()
    }


def go_version() -> tuple[int, ...]:
    """The version of Go that built the server."""
    text = subprocess.run(
        ["go", "version", PROGRAMS / "go_server"], check=True, capture_output=True, text=True
    ).stdout
    found = re.search(r"go(\d+)\.(\d+)", text.splitlines()[0].rsplit(" ", 1)[1])
    assert found, text
    return tuple(int(part) for part in found.groups())


def with_openssl35(folder: Path, certificate: Certificate) -> AbstractContextManager[Server]:
    program = debian.openssl("3.5").build("selftimed")
    return servers.selftimed("threads", certificate, program=program)


HYBRID: dict[str, Callable[[Path, Certificate], AbstractContextManager[Server]]] = {
    "go": other_stacks.go,
    "rustls": other_stacks.rustls,
    "openssl-3.5": with_openssl35,
}


@pytest.mark.parametrize("name", HYBRID)
def test_hybrid_group_from_hellos_of_several_segments(name, rsa, tmp_path):
    if name == "go" and go_version() < MLKEM_SINCE:
        pytest.skip(f"this Go has no X25519MLKEM768: {go_version()}")
    try:
        client = debian.openssl("3.5").build("loadgen")
    except debian.Unobtainable as why:
        pytest.skip(f"a client with X25519MLKEM768 cannot be had: {why}")
    suite = dict(tls="1.3", ciphersuites="TLS_AES_256_GCM_SHA384")
    load = Load(full=100, resume=100, dribble=20, program=client, **suite)
    with HYBRID[name](tmp_path, rsa) as server:
        report, seen = profiled(tmp_path, server, [load, Load(full=30, **suite)], LIBRARY_OFF)
    service = report.on_port(server.port)
    resumed, fallen_back = MLKEM._replace(resumption="psk"), MLKEM._replace(group="x25519")
    assert seen.handshakes == {MLKEM: 120, resumed: 100, fallen_back: 30}
    assert counted(service.groups(role="server", outcome="completed")) == seen.handshakes


def test_clients_are_seen_in_their_own_role(rsa, tmp_path):
    """The client is a program whose library is probed elsewhere; here its sockets alone speak."""
    loads = TARGETS["static-http"].loads(plain=False)
    with other_stacks.static_http(tmp_path, rsa) as server:
        report, seen = profiled(tmp_path, server, loads, LIBRARY_OFF)
    client = report.service("loadgen")
    assert counted(client.groups(role="client", outcome="completed")) == seen.handshakes
    assert client.count(role="server") == 0
