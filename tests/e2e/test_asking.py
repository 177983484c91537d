"""Kinds of keys that TLS 1.3 hides: learned by connections of tlsprof's own, if the user wants it."""

import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Sequence

import pytest

from harness.load import Load, run_load
from harness.processes import Argument
from harness.profiler import Profiling, Report
from harness.servers import Server
from harness.together import own_folder, together
from harness.web_servers import nginx

pytestmark = pytest.mark.alone

STATUS = "location = /status { stub_status; }"
FIRST = Load(full=1, tls="1.3")
MORE = Load(full=200, resume=50, tls="1.3")
ALL = FIRST.full + MORE.full + MORE.resume
ASKED = 2
"""Connections to a port: one that understands RSA only, one that understands all but RSA."""
HIDES = "TLS 1.3 encrypts certificates"


def config(folder: Path, asks: bool = False) -> list[Argument]:
    path = folder / "tlsprof.toml"
    path.write_text('[profile]\nlibrary = "off"\n' + "ask_certificates = true\n" * asks)
    return ["--config", path]


def accepted(server: Server) -> int:
    """Connections that nginx has accepted, but for the one that finds it out."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", server.port), 10.0) as connection:
        with context.wrap_socket(connection) as client:
            client.sendall(b"GET /status HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: client.recv(4096), b"")).decode()
    found = re.search(r"accepts handled requests\s+(\d+)", text)
    assert found, text
    return int(found[1]) - 1


def profile(
    folder: Path, servers: Mapping[str, Server], options: Sequence[Argument], asks: Mapping[str, str] = {}
) -> Report:
    """A first handshake of each server; what tlsprof then says of its port, if it asks; and more
    handshakes."""
    with Profiling(folder, "--log", "info", *options) as profiling:
        for name, server in servers.items():
            run_load(FIRST, server.port)
            if name in asks:
                profiling.wait_for_line(asks[name])
        for server in servers.values():
            run_load(MORE, server.port)
        profiling.finish()
    return profiling.report


def notes(report: Report, server: Server) -> list[str]:
    found = [note for note in report.data["notes"] if note.startswith(HIDES)]
    return [note for note in found if f"on port {server.port} " in note]


def full(report: Report, server: Server) -> dict[str, int]:
    """Full handshakes by signature."""
    groups = report.on_port(server.port).groups(
        role="server", version="TLS1.3", resumption="none", outcome="completed", source="socket"
    )
    return {group["signature"]: group["count"] for group in groups}


def assert_only_the_load_counts(report: Report, server: Server) -> None:
    service = report.on_port(server.port)
    assert service.outcomes("server") == {"completed": ALL, "failed": 0, "abandoned": 0}
    (connections,) = [row for row in service.data["connections"] if row["role"] == "server"]
    assert connections["opened"] == ALL
    own = [other for other in report.services if other.data["executable"].endswith("/tlsprof")]
    assert all(other.count(role="client") == 0 for other in own)


KINDS = {
    "ecdsa": ("ecdsa_p256", ""),
    "rsa2048": ("rsa_2048", " reuseport"),
    # There is no socket to tell apart yet when the connection stands.
    "ed25519": ("ed25519", " deferred"),
}
"""Keys, by their signatures and by how their servers listen."""


@dataclass(frozen=True)
class Asked:
    """One profile of a server for each kind, and the connections that each accepted."""

    report: Report
    servers: Mapping[str, Server]
    accepted: Mapping[str, int]


@pytest.fixture(scope="module")
def asked(certificates, tmp_path_factory) -> Asked:
    base = tmp_path_factory.mktemp("asking")
    starts = {
        kind: nginx(
            own_folder(base, kind), certificates[kind], extra=STATUS, protocols="TLSv1.3", parameters=listen
        )
        for kind, (_, listen) in KINDS.items()
    }
    asks = {kind: f"its signature, {label}, " for kind, (label, _) in KINDS.items()}
    with together(starts) as servers:
        report = profile(base, servers, config(base, asks=True), asks)
        return Asked(report, servers, {kind: accepted(server) for kind, server in servers.items()})


@pytest.mark.parametrize("kind", KINDS)
def test_the_signature_is_known_from_the_answer_on(kind, asked):
    label, _ = KINDS[kind]
    report, server = asked.report, asked.servers[kind]
    assert asked.accepted[kind] == ALL + ASKED
    assert full(report, server) == {"unknown": FIRST.full, label: MORE.full}
    assert_only_the_load_counts(report, server)
    (note,) = notes(report, server)
    assert f"its signature, {label}, " in note and "SNI" in note and "count as" not in note


def test_two_kinds_of_keys_are_ambiguous(certificates, tmp_path):
    second = certificates["rsa2048"]
    extra = f"{STATUS} ssl_certificate {second.cert}; ssl_certificate_key {second.key};"
    with nginx(tmp_path, certificates["ecdsa"], extra=extra, protocols="TLSv1.3") as server:
        options = [*config(tmp_path), "--ask-certificates"]
        report = profile(tmp_path, {"both": server}, options, {"both": "keys of several types"})
        assert accepted(server) == ALL + ASKED
    assert full(report, server) == {"unknown": FIRST.full + MORE.full}
    assert_only_the_load_counts(report, server)
    (note,) = notes(report, server)
    assert "keys of several types (ecdsa_p256, rsa_2048)" in note


def test_without_leave_nothing_is_asked(certificates, tmp_path):
    with nginx(tmp_path, certificates["ecdsa"], extra=STATUS, protocols="TLSv1.3") as server:
        report = profile(tmp_path, {"one": server}, config(tmp_path))
        assert accepted(server) == ALL
    assert full(report, server) == {"unknown": FIRST.full + MORE.full}
    assert notes(report, server) == []


def test_where_nothing_is_hidden_nothing_is_asked(certificates, tmp_path):
    """TLS 1.2 shows its signatures."""
    with nginx(tmp_path, certificates["ecdsa"], extra=STATUS, protocols="TLSv1.2") as server:
        with Profiling(tmp_path, *config(tmp_path, asks=True)) as profiling:
            run_load(Load(full=50, tls="1.2"), server.port)
            profiling.finish()
        assert accepted(server) == 50
    report = profiling.report
    assert report.on_port(server.port).count(role="server", signature="ecdsa_p256") == 50
    assert notes(report, server) == []
