"""Fixtures: built programs, certificates, and the binary under test."""

import fcntl
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness.certificates import Certificate, make_certificate
from harness.paths import PROGRAMS, TESTS, TLSPROF


def pytest_configure(config):
    config.addinivalue_line("markers", "harness: tests of the test programs; need no tlsprof")
    config.addinivalue_line("markers", "long: statistics, endurance and scenarios, for make test-long")


@pytest.fixture(scope="session", autouse=True)
def alone():
    """Two runs on one host would profile, and slow down, each other: the second one waits."""
    with open(Path(tempfile.gettempdir()) / "tlsprof-e2e.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session", autouse=True)
def programs(alone):
    """The C servers and clients, built."""
    subprocess.run(["make", "--silent", "-C", str(TESTS), f"OUT={PROGRAMS}"], check=True)


@pytest.fixture(autouse=True)
def tlsprof(request):
    """Every test but those of the harness needs root and the built binary."""
    if request.node.get_closest_marker("harness"):
        return
    assert os.geteuid() == 0, "end-to-end tests attach to other processes: run them as root"
    assert TLSPROF.is_file(), f"{TLSPROF} is missing: run `make build`, or set TLSPROF"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory) -> dict[str, Certificate]:
    """Certificates by kind."""
    folder = tmp_path_factory.mktemp("certificates")
    folder.chmod(0o755)
    return {kind: make_certificate(folder, kind) for kind in ("rsa2048", "rsa4096", "ecdsa", "ed25519")}


@pytest.fixture(scope="session")
def rsa(certificates) -> Certificate:
    """The RSA-2048 certificate that most tests use."""
    return certificates["rsa2048"]
