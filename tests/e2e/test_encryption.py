"""The share of encryption against servers that know it themselves, or whose symbols tell it."""

import shutil

import pytest

from harness import servers
from harness.downloads import download
from harness.paths import RECORD_CLOCK
from harness.profiler import Profiling, Service
from harness.samples import perf_shares
from harness.settling import assert_median

SHARE_TOLERANCE = 0.03
REPEATS = dict(least=1, most=7)
DOWNLOADS = 2

MOST_SAMPLES = '[profile]\nsample_frequency = 997\n'

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


@pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed")
@pytest.mark.parametrize("suite", RECORD_SUITES)
def test_encryption_takes_what_the_server_measures(suite, rsa, tmp_path):
    """Around each call of libssl into libcrypto for a record; what libssl itself does, perf tells."""
    config = tmp_path / "tlsprof.toml"
    config.write_text(MOST_SAMPLES)
    preloaded = {"LD_PRELOAD": str(RECORD_CLOCK)}

    def measure() -> float:
        with servers.selftimed("threads", rsa, *RECORD_SUITES[suite], env=preloaded) as server:
            with Profiling(tmp_path, "--pid", server.pid, "--config", config) as profiling:
                client = download(server.port, 1000, DOWNLOADS)
                modules = perf_shares(tmp_path, server.pid, 997, client)
                # While the server lives: its port tells it in the report.
                profiling.finish()
            measured = server.finish()
        service = profiling.report.on_port(server.port)
        assert service.data["cpu_samples"]["cipher_alone"] == 0
        used = sum(row["cpu_seconds"] for row in service.data["activities"])
        records = measured.record_seconds / used
        framing = sum(modules[name] for name in modules if name.startswith("libssl.so"))
        share = share_of(service, "encryption")
        print(f"{suite}: {share:.3f}; {records:.3f} records, {framing:.3f} libssl, {used:.2f} s")
        assert records > 0.05 and framing < 0.06, (measured, modules)
        return share - records - framing

    assert_median(measure, expected=0.0, within=SHARE_TOLERANCE, **REPEATS)
