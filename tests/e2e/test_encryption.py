"""The share of encryption against servers that know it themselves, or whose symbols tell it."""

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import servers, symbols
from harness.certificates import Certificate
from harness.downloads import download
from harness.paths import RECORD_CLOCK, SELFTIMED
from harness.processes import private_copy
from harness.profiler import Profiling, Service
from harness.sequential import Rounds, assert_agrees

pytestmark = [
    pytest.mark.apart,
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed"),
]

SHARE_TOLERANCE = 0.03
MEBIBYTES = 1000
DOWNLOADS = 2

FREQUENCY = 997
MOST_SAMPLES = f"[profile]\nsample_frequency = {FREQUENCY}\n"

RECORD_SUITES = {
    "AES-128-GCM": ("--tls", "1.3", "--ciphersuites", "TLS_AES_128_GCM_SHA256"),
    "AES-256-GCM": ("--tls", "1.3", "--ciphersuites", "TLS_AES_256_GCM_SHA384"),
    "AES-256-GCM in TLS 1.2": ("--tls", "1.2", "--ciphers", "ECDHE-RSA-AES256-GCM-SHA384"),
    "ChaCha20-Poly1305": ("--tls", "1.3", "--ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"),
    "AES-128-CBC, HMAC-SHA1": ("--tls", "1.2", "--ciphers", "ECDHE-RSA-AES128-SHA"),
    "AES-128-CBC, HMAC-SHA256": ("--tls", "1.2", "--ciphers", "ECDHE-RSA-AES128-SHA256"),
    "AES-128-CCM": ("--tls", "1.3", "--ciphersuites", "TLS_AES_128_CCM_SHA256"),
}
"""OpenSSL's protection of records, by the options of the self-timed server."""


def share_of(service: Service, activity: str) -> float:
    rows = service.data["activities"]
    seconds = sum(row["cpu_seconds"] for row in rows if row["activity"] == activity)
    return seconds / sum(row["cpu_seconds"] for row in rows)


def shares_off(folder: Path, certificate: Certificate) -> dict[str, float]:
    """How far the share of encryption is from what the servers measure around each call of libssl into
    libcrypto for a record, and what perf says of libssl itself. A server for each suite, one profile and
    one perf of all."""
    config = folder / "tlsprof.toml"
    config.write_text(MOST_SAMPLES)
    preloaded = {"LD_PRELOAD": str(RECORD_CLOCK)}
    with ExitStack() as stack:
        running = {}
        for suite, options in RECORD_SUITES.items():
            program = private_copy(str(SELFTIMED), folder, suite.replace(" ", "-"))
            server = servers.selftimed("threads", certificate, *options, program=program, env=preloaded)
            running[suite] = stack.enter_context(server)
        with Profiling(folder, "--config", config) as profiling:
            fetches = [download(server.port, MEBIBYTES, DOWNLOADS) for server in running.values()]
            places = symbols.perf_places_of_each(
                folder, [server.pid for server in running.values()], FREQUENCY, fetches
            )
            # While the servers live: their ports tell them in the report.
            profiling.finish()
        found = {}
        for suite, server in running.items():
            service = profiling.report.on_port(server.port)
            assert service.data["cpu_samples"]["cipher_alone"] == 0
            used = sum(row["cpu_seconds"] for row in service.data["activities"])
            records = server.finish().record_seconds / used
            modules = places[server.pid]
            libssl = sum(modules[one] for one in modules if Path(one.module).name.startswith("libssl.so"))
            framing = libssl / sum(modules.values())
            share = share_of(service, "encryption")
            print(f"{suite}: {share:.3f}; {records:.3f} records, {framing:.3f} libssl, {used:.2f} s")
            assert records > 0.05 and framing < 0.06, (suite, records, framing)
            found[suite] = share - records - framing
        return found


@pytest.fixture(scope="module")
def rounds(rsa, tmp_path_factory) -> Rounds[dict[str, float]]:
    return Rounds(lambda: shares_off(tmp_path_factory.mktemp("encryption"), rsa))


@pytest.mark.parametrize("suite", RECORD_SUITES)
def test_encryption_of_every_suite_takes_what_the_server_measures(suite, rounds):
    figures = rounds.each(lambda one: one[suite])
    assert_agrees(figures, expected=0.0, within=SHARE_TOLERANCE, name=suite)
