"""Servers of every TLS stack, from socket calls alone: the report says what the clients saw.

And where the library is probed as well, it says the same, each handshake once.
"""

import re
import subprocess
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Mapping, Sequence

import pytest

from harness import debian, libraries, other_stacks, servers
from harness.certificates import Certificate
from harness.load import Load, Negotiated, Seen, counted, run_load
from harness.paths import COROUTINE_LIBRARY, LOADGEN, PROGRAMS, SELFTIMED
from harness.processes import Process, name_of_copy, private_copy
from harness.profiler import Profiling, Report, Service
from harness.servers import Server
from harness.targets import TARGETS, Target
from harness.together import own_folder, side_by_side, together

LIBRARY_OFF = '[profile]\nlibrary = "off"\n'

PROBED = [name for name, target in TARGETS.items() if target.openssl]

MORE = 5
"""So many times the usual load."""

MLKEM_SINCE = (1, 24)
"""The version of Go that brought X25519MLKEM768."""

MLKEM = Negotiated("TLS1.3", "TLS_AES_256_GCM_SHA384", "X25519MLKEM768", "none")


INSTALLED = {name: target for name, target in TARGETS.items() if not target.missing}

SEEN_AS_CLIENT = "static-http"
"""The server whose clients are looked at in their own role."""


@dataclass(frozen=True)
class Profiled:
    """Servers in one profile, with what each of them and its clients report."""

    report: Report
    services: Mapping[str, Service]
    seen: Mapping[str, Seen]


Starts = Mapping[str, AbstractContextManager[Server]]


def profiled(folder: Path, starts: Starts, loads: Mapping[str, Sequence[Load]], config: str = "") -> Profiled:
    """Profiles the loads of each server one after another; the servers are alive at the end, as
    their ports tell which service each is."""
    file = folder / "tlsprof.toml"
    file.write_text(config)
    with together(starts) as running, Profiling(folder, "--config", file) as profiling:

        def run(name: str) -> Seen:
            return sum((run_load(load, running[name].port) for load in loads[name]), Seen.nothing())

        seen = side_by_side(run, running)
        profiling.finish()
    report = profiling.report
    return Profiled(report, {name: report.on_port(one.port) for name, one in running.items()}, seen)


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


def assert_whole(target: Target, loads: list[Load], seen: Seen) -> None:
    """The client did all that it was asked to, and the server showed all that it can negotiate."""
    assert sum(load.connections for load in loads) > 200
    assert seen.completed == sum(load.completing for load in loads)
    assert seen.plain == sum(load.plain for load in loads)
    assert {each.version for each in seen.handshakes} == {f"TLS{tls}" for tls in target.versions}
    assert {each.resumption for each in seen.handshakes} == {"none"} | target.means
    assert {each.group for each in seen.handshakes if each.group != "none"} >= target.groups


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


def profiled_by_sockets(base: Path, rsa: Certificate, times: int = 1) -> Profiled:
    """Every stack, and those with hybrid groups, in one profile without probes."""
    client = private_copy(str(LOADGEN), base)
    loads = {name: target.loads(times=times) for name, target in INSTALLED.items()}
    loads[SEEN_AS_CLIENT] = [replace(load, program=client) for load in loads[SEEN_AS_CLIENT]]
    hybrid = hybrid_loads()
    loads |= {f"hybrid-{name}": hybrid for name in HYBRID if hybrid}
    starts = {name: target.start(own_folder(base, name), rsa) for name, target in INSTALLED.items()}
    for name, start in HYBRID.items():
        if hybrid:
            starts[f"hybrid-{name}"] = start(own_folder(base, "hybrid", name), rsa)
    return profiled(base, starts, loads, LIBRARY_OFF)


@pytest.fixture(scope="module")
def from_sockets(rsa, tmp_path_factory) -> Profiled:
    return profiled_by_sockets(tmp_path_factory.mktemp("sockets"), rsa)


@pytest.fixture(scope="module")
def from_more_sockets(rsa, tmp_path_factory) -> Profiled:
    return profiled_by_sockets(tmp_path_factory.mktemp("more"), rsa, MORE)


@pytest.fixture(scope="module")
def from_both(rsa, tmp_path_factory) -> Profiled:
    """Those whose library is probed, in one profile with probes. Without plain connections: some
    servers pass them to the library, in which they fail."""
    base = tmp_path_factory.mktemp("both")
    starts = {name: TARGETS[name].start(own_folder(base, name), rsa) for name in PROBED}
    return profiled(base, starts, {name: TARGETS[name].loads(plain=False) for name in PROBED})


def assert_shown(name: str, found: Profiled, times: int = 1) -> None:
    target = TARGETS[name]
    if target.missing:
        pytest.skip(f"not installed: {target.missing}")
    service, seen, loads = found.services[name], found.seen[name], target.loads(times=times)
    assert_whole(target, loads, seen)
    assert_same(service, loads, seen, target)
    assert sources(service) == {"socket"}
    assert signatures(service) == {
        (negotiated, in_clear(negotiated)): count for negotiated, count in seen.handshakes.items()
    }
    assert found.report.losses_of_events() == {}


@pytest.mark.parametrize("name", TARGETS)
def test_socket_calls_show_what_the_clients_saw(name, from_sockets):
    assert_shown(name, from_sockets)


@pytest.mark.long
@pytest.mark.parametrize("name", TARGETS)
def test_socket_calls_show_what_thousands_of_clients_saw(name, from_more_sockets):
    """What comes once in a thousand times: messages that share a segment, or are split otherwise."""
    assert_shown(name, from_more_sockets, MORE)


@pytest.mark.parametrize("name", PROBED)
def test_a_handshake_that_both_sources_saw_is_one(name, from_both):
    """Where no probe can be in libcrypto, because another process that maps it switches stacks,
    signatures are what the wire says."""
    target = TARGETS[name]
    service, seen = from_both.services[name], from_both.seen[name]
    assert_same(service, target.loads(plain=False), seen, target)
    assert sources(service) == {"library"}
    for negotiated, named in signatures(service):
        assert named in (signature(negotiated), in_clear(negotiated)), negotiated


@pytest.mark.host
def test_signatures_are_not_denied_where_libcrypto_cannot_be_probed(rsa, tmp_path):
    """Another process that switches stacks maps it; libssl is probed all the same. Then a
    signature is what the wire says, or unknown."""
    bystander = [servers.SYSTEM_PYTHON, servers.SERVERS / "map_files.py", COROUTINE_LIBRARY]
    bystander.append(libraries.loaded_by(SELFTIMED, "libcrypto.so.3"))
    target = TARGETS["nginx"]
    loads = target.loads(plain=False)
    with Process(bystander) as holder:
        holder.wait_for_line("ready")
        found = profiled(tmp_path, {"nginx": target.start(tmp_path, rsa)}, {"nginx": loads})
    service, seen = found.services["nginx"], found.seen["nginx"]
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
    return servers.selftimed("threads", certificate, program=private_copy(str(program), folder))


HYBRID: dict[str, Callable[[Path, Certificate], AbstractContextManager[Server]]] = {
    "go": other_stacks.go,
    "rustls": other_stacks.rustls,
    "openssl-3.5": with_openssl35,
}


def hybrid_loads() -> list[Load]:
    """With a client that has X25519MLKEM768, and with one that has not; empty if there is none."""
    try:
        client = debian.openssl("3.5").build("loadgen")
    except debian.Unobtainable:
        return []
    suite = dict(tls="1.3", ciphersuites="TLS_AES_256_GCM_SHA384")
    return [Load(full=40, resume=40, dribble=10, program=client, **suite), Load(full=20, **suite)]


@pytest.mark.parametrize("name", HYBRID)
def test_hybrid_group_from_hellos_of_several_segments(name, from_sockets):
    if name == "go" and go_version() < MLKEM_SINCE:
        pytest.skip(f"this Go has no X25519MLKEM768: {go_version()}")
    if f"hybrid-{name}" not in from_sockets.services:
        pytest.skip("a client with X25519MLKEM768 cannot be had")
    service, seen = (found[f"hybrid-{name}"] for found in (from_sockets.services, from_sockets.seen))
    resumed, fallen_back = MLKEM._replace(resumption="psk"), MLKEM._replace(group="x25519")
    assert seen.handshakes == {MLKEM: 50, resumed: 40, fallen_back: 20}
    assert counted(service.groups(role="server", outcome="completed")) == seen.handshakes


def test_clients_are_seen_in_their_own_role(from_sockets):
    """The client is a program whose library is probed elsewhere; here its sockets alone speak."""
    client = from_sockets.report.service(name_of_copy(LOADGEN, Path("sockets0")))
    completed = counted(client.groups(role="client", outcome="completed"))
    assert completed == from_sockets.seen[SEEN_AS_CLIENT].handshakes
    assert client.count(role="server") == 0
