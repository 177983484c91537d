"""Handshakes that fail against real servers: the finding tells the cause, and what these clients offered."""

from pathlib import Path
from typing import Optional, Sequence

import pytest

from harness.certificates import Certificate
from harness.load import Load, run_load
from harness.processes import Argument, run
from harness.profiler import Profiling, Report
from harness.scenarios import find
from harness.servers import Server
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
        "alert protocol version: these clients offered up to TLS1.2",
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


def profiled(
    folder: Path, server: Server, load: Load, options: Sequence[Argument]
) -> tuple[Report, Optional[dict]]:
    with Profiling(folder, "--port", server.port) as profiling:
        run_load(load, server.port)
        failing(server, *options)
        profiling.finish()
    return profiling.report, find(profiling.report, server.port, "handshake-failures")


def assert_told(found: tuple[Report, Optional[dict]], cause: str, statement: str) -> None:
    report, finding = found
    assert finding, report.data["findings"]
    assert finding["figures"]["failed_handshakes"] == BAD, finding
    assert finding["title"] == f"Handshakes fail: {cause}"
    assert statement in " ".join(finding["evidence"]), finding["evidence"]


@pytest.mark.parametrize("what", REFUSED)
def test_nothing_in_common(what, rsa, tmp_path):
    protocols, extra, load, options, cause, offer = REFUSED[what]
    with nginx(tmp_path, rsa, extra=extra, protocols=protocols) as server:
        found = profiled(tmp_path, server, load, options)
    assert_told(found, cause, offer)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_certificate_of_an_issuer_that_clients_do_not_know(version, rsa, tmp_path):
    options = [f"-tls{version.replace('.', '_')}", "-verify_return_error", *NO_TRUST]
    with nginx(tmp_path, rsa) as server:
        found = profiled(tmp_path, server, Load(full=GOOD, tls=version), options)
    cause = "clients do not know who issued the server's certificate"
    assert_told(found, cause, f"clients sent the alert unknown ca: these clients offered up to TLS{version}")


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_certificate_that_has_expired(version, rsa, tmp_path):
    options = [f"-tls{version.replace('.', '_')}", "-verify_return_error"]
    options += ["-CAfile", rsa.cert, "-attime", IN_2100]
    with nginx(tmp_path, rsa) as server:
        found = profiled(tmp_path, server, Load(full=GOOD, tls=version), options)
    cause = "clients find the server's certificate expired"
    assert_told(found, cause, f"alert certificate expired: these clients offered up to TLS{version}")


def test_client_certificates_of_an_issuer_that_the_server_does_not_know(
    rsa: Certificate, certificates, tmp_path
):
    """Asked for in TLS 1.2, where the server's alert is in clear, and not in all handshakes."""
    stranger = certificates["ecdsa"]
    extra = f"SSLVerifyClient optional\nSSLCACertificateFile {rsa.cert}"
    options = ["-tls1_2", "-cert", stranger.cert, "-key", stranger.key]
    with apache(tmp_path, rsa, "event", extra) as server:
        found = profiled(tmp_path, server, Load(full=GOOD, tls="1.2"), options)
    cause = "client certificates are of an unknown issuer"
    assert_told(found, cause, "the server sent the alert unknown ca: these clients offered up to TLS1.2")
