"""Handshakes that fail against real servers: the finding tells the cause, and what these clients offered."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Sequence

import pytest

from harness.certificates import Certificate
from harness.load import Load, run_load
from harness.processes import Argument, run
from harness.profiler import Profiling
from harness.scenarios import find
from harness.servers import Server
from harness.together import own_folder, side_by_side, together
from harness.web_servers import apache, nginx

GOOD, BAD = 110, 12
"""Handshakes that complete, over the default threshold of 100, and those that fail, over ten."""

IN_2100 = 4102444800
"""Seconds since 1970: all certificates of the tests have expired."""

NO_TRUST = ["-no-CAfile", "-no-CApath", "-no-CAstore"]

REFUSED = {
    "cipher": (
        "TLSv1.2",
        "ssl_ciphers ECDHE-RSA-AES256-GCM-SHA384;",
        Load(full=GOOD, tls="1.2"),
        ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"],
        "no cipher suite, group or signature in common",
        "up to TLS1.2; suites TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; groups ",
    ),
    "version": (
        "TLSv1.3",
        "",
        Load(full=GOOD, tls="1.3"),
        ["-tls1_2"],
        "no TLS version in common",
        f"alert protocol version {BAD} times: these clients offered up to TLS1.2",
    ),
    "group": (
        "TLSv1.3",
        "ssl_ecdh_curve X25519;",
        Load(full=GOOD, tls="1.3", groups="X25519"),
        ["-tls1_3", "-groups", "P-384"],
        "no cipher suite, group or signature in common",
        "; groups secp384r1.",
    ),
}
"""Versions and what else the server allows, clients that it likes, those that it does not, cause and offer."""


def failing(server: Server, *options: Argument) -> None:
    """Clients that fail."""
    where = ["-connect", f"127.0.0.1:{server.port}", "-servername", "localhost"]
    for _ in range(BAD):
        done = run(["openssl", "s_client", *where, *options])
        assert done.child.returncode != 0, done.describe()


VERSIONS = ("1.2", "1.3")

OPTION = {"1.2": "-tls1_2", "1.3": "-tls1_3"}


@dataclass(frozen=True)
class Case:
    """A server, the handshakes that it completes, and the options of clients that fail."""

    start: AbstractContextManager[Server]
    load: Load
    options: Sequence[Argument]


def cases(base: Path, certificates: dict[str, Certificate]) -> dict[str, Case]:
    rsa, stranger = certificates["rsa2048"], certificates["ecdsa"]
    own = lambda name: (own_folder(base, name), rsa)
    found = {}
    for what, (protocols, extra, load, options, _, _) in REFUSED.items():
        found[what] = Case(nginx(*own(what), extra=extra, protocols=protocols), load, options)
    for tls in VERSIONS:
        strict = [OPTION[tls], "-verify_return_error"]
        load = Load(full=GOOD, tls=tls)
        found[f"issuer-{tls}"] = Case(nginx(*own(f"issuer-{tls}")), load, [*strict, *NO_TRUST])
        expired = [*strict, "-CAfile", rsa.cert, "-attime", IN_2100]
        found[f"expired-{tls}"] = Case(nginx(*own(f"expired-{tls}")), load, expired)
    extra = f"SSLVerifyClient optional\nSSLCACertificateFile {rsa.cert}"
    options = [OPTION["1.2"], "-cert", stranger.cert, "-key", stranger.key]
    server = apache(*own("clients"), "event", extra)
    found["clients"] = Case(server, Load(full=GOOD, tls="1.2"), options)
    return found


@pytest.fixture(scope="module")
def findings(certificates, tmp_path_factory) -> dict[str, Optional[dict]]:
    """Of all cases, in one profile."""
    base = tmp_path_factory.mktemp("failures")
    by_name = cases(base, certificates)
    starts = {name: case.start for name, case in by_name.items()}
    with together(starts) as servers, Profiling(base) as profiling:

        def exercise(name: str) -> None:
            run_load(by_name[name].load, servers[name].port)
            failing(servers[name], *by_name[name].options)

        side_by_side(exercise, servers)
        profiling.finish()
    report = profiling.report
    return {name: find(report, server.port, "handshake-failures") for name, server in servers.items()}


def assert_told(finding: Optional[dict], cause: str, statement: str) -> None:
    assert finding
    assert finding["figures"]["failed_handshakes"] == BAD, finding
    assert finding["title"] == f"Handshakes fail: {cause}"
    assert statement in " ".join(finding["evidence"]), finding["evidence"]


@pytest.mark.parametrize("what", REFUSED)
def test_nothing_in_common(what, findings):
    *_, cause, offer = REFUSED[what]
    assert_told(findings[what], cause, offer)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_certificate_of_an_issuer_that_clients_do_not_know(version, findings):
    cause = "clients do not trust the issuer of the server's certificate"
    statement = f"Clients sent the alert unknown ca {BAD} times: these clients offered up to TLS{version}"
    assert_told(findings[f"issuer-{version}"], cause, statement)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_certificate_that_has_expired(version, findings):
    cause = "the server's certificate has expired"
    statement = f"alert certificate expired {BAD} times: these clients offered up to TLS{version}"
    assert_told(findings[f"expired-{version}"], cause, statement)


def test_client_certificates_of_an_issuer_that_the_server_does_not_know(findings):
    """Asked for in TLS 1.2, where the server's alert is in clear, and not in all handshakes."""
    cause = "the issuer of client certificates is unknown"
    statement = f"The server sent the alert unknown ca {BAD} times: these clients offered up to TLS1.2"
    assert_told(findings["clients"], cause, statement)
