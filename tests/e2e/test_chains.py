"""Long certificate chains on a real nginx: found by what they make the server send."""

import re
import ssl
from pathlib import Path
from typing import Optional, Sequence

import pytest

from harness import plain_nginx
from harness.certificates import Certificate, make_chain
from harness.load import Load
from harness.namespaces import namespace
from harness.plain_nginx import unique
from harness.processes import Argument, run
from harness.profiler import Profiling, Report
from harness.scenarios import find, wait_closed

ENOUGH = 120
"""Handshakes, over the default threshold of 100."""

LONG, VERY_LONG, USUAL = 5, 12, 1
"""Intermediates: beyond what is usual, beyond ten segments of Ethernet, and neither."""

REST_BYTES = 1600
"""Most that a server sends in a full handshake besides its certificates, to a client that has no
post-quantum group."""


@pytest.fixture(scope="module")
def chains(tmp_path_factory) -> dict[int, Certificate]:
    """By the number of intermediates."""
    folders = {number: tmp_path_factory.mktemp("chain") for number in (LONG, VERY_LONG, USUAL)}
    return {number: make_chain(folder, number) for number, folder in folders.items()}


def certificate_bytes(chain: Certificate) -> int:
    """Length of the Certificate message (RFC 5246, 7.4.2)."""
    pem = re.findall(r"-----BEGIN.*?END CERTIFICATE-----", chain.cert.read_text(), re.S)
    return 3 + sum(3 + len(ssl.PEM_cert_to_DER_cert(one)) for one in pem)


def profiled(
    folder: Path,
    chain: Certificate,
    tls: str,
    *options: Argument,
    inside: Sequence[Argument] = (),
) -> tuple[Report, Optional[dict]]:
    """A report of an nginx that sends that chain, and the finding."""
    extra = f"ssl_certificate {chain.cert}; ssl_certificate_key {chain.key};"
    extra += "ssl_protocols TLSv1.2 TLSv1.3;" + plain_nginx.ANSWER
    server = plain_nginx.nginx(folder, "nginx-chain", extra=extra, parameters=" ssl", inside=inside)
    with server as nginx, Profiling(folder, *options) as profiling:
        done = run([*inside, *Load(full=ENOUGH, tls=tls, groups="X25519").command(nginx.port)])
        assert done.child.returncode == 0, done.describe()
        wait_closed(nginx.port, nginx.pid)
        profiling.finish()
    return profiling.report, find(profiling.report, nginx.port, "long-certificate-chain")


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
@pytest.mark.parametrize("intermediates", [LONG, USUAL])
def test_a_chain_that_is_much_of_what_is_sent(intermediates, tls, chains, tmp_path):
    report, finding = profiled(tmp_path, chains[intermediates], tls)
    assert (finding is not None) == (intermediates == LONG), report.data["findings"]
    if not finding:
        return
    figures = finding["figures"]
    sent = certificate_bytes(chains[LONG])
    assert finding["severity"] == "low"
    assert figures["full_handshakes"] == ENOUGH
    assert sent < figures["sent_bytes"] < sent + REST_BYTES
    # Segments of loopback are long.
    assert figures["beyond_first_window"] == 0
    if tls == "1.2":
        assert figures["certificates"] == LONG + 1
        assert figures["certificate_bytes"] == sent
    else:
        assert "certificates" not in figures
    assert "ssl_certificate " in finding["remedy"]["directive"]


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_a_chain_that_costs_a_round_trip(tls, chains, tmp_path):
    """With segments of Ethernet. Round trips of loopback are short: the threshold is, too."""
    config = tmp_path / "tlsprof.toml"
    config.write_text("[findings]\nmin_saving = 0.0001\n")
    with namespace(unique("tlsprof-chain")) as inside:
        small = run([*inside, "ip", "link", "set", "lo", "mtu", "1500"])
        assert small.child.returncode == 0, small.describe()
        options = ["--config", config]
        report, finding = profiled(tmp_path, chains[VERY_LONG], tls, *options, inside=inside)
        _, shorter = profiled(tmp_path, chains[LONG], tls, *options, inside=inside)
    assert finding, report.data["findings"]
    assert finding["figures"]["beyond_first_window"] == ENOUGH
    assert finding["severity"] == "medium"
    assert finding["prediction"]["kind"] == "latency"
    assert finding["prediction"]["latency_seconds"]["likely"] > 0
    assert shorter and shorter["figures"]["beyond_first_window"] == 0
    assert shorter["prediction"]["kind"] == "none"
