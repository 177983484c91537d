"""Fixtures: built programs, certificates, and the binary under test."""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import hidden
from harness.certificates import Certificate, make_certificate
from harness.paths import HOG, LOADGEN, PROGRAMS, SELFTIMED, SELFTIMED_GNUTLS, TESTS, TLSPROF, WORKER

# With it, reports run their command as that user, who cannot open the folders of these tests.
os.environ.pop("SUDO_UID", None)
# A shell ignores it in what it runs in the background, and what is ignored stays so in all that the
# tests start: nothing that they interrupt would end.
signal.signal(signal.SIGINT, signal.default_int_handler)

LOCK = pytest.StashKey()
LOCK_FILE = Path(tempfile.gettempdir()) / "tlsprof-e2e.lock"


def pytest_sessionstart(session) -> None:
    """Where workers run the tests, the process that they belong to keeps others out."""
    if getattr(session.config.option, "numprocesses", None):
        lock = session.config.stash[LOCK] = open(LOCK_FILE, "w")
        fcntl.flock(lock, fcntl.LOCK_EX)


@pytest.fixture(scope="session", autouse=True)
def alone(request):
    """Two runs that profile one host would profile, and slow down, each other: the second waits."""
    if WORKER or all(item.get_closest_marker("harness") for item in request.session.items):
        yield
        return
    with open(LOCK_FILE, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session", autouse=True)
def programs():
    """The C servers and clients, built."""
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    with open(PROGRAMS / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "--silent", "-C", str(TESTS), f"OUT={PROGRAMS}"], check=True)
    if WORKER:
        for program in (SELFTIMED, SELFTIMED_GNUTLS, LOADGEN, HOG):
            program.parent.mkdir(exist_ok=True)
            shutil.copy(PROGRAMS / program.name.removesuffix(f"-{WORKER}"), program)


@pytest.fixture(autouse=True)
def tlsprof(request):
    """Every test but those of the harness needs root and the built binary."""
    if request.node.get_closest_marker("harness"):
        return
    assert os.geteuid() == 0, "end-to-end tests attach to other processes: run them as root"
    assert TLSPROF.is_file(), f"{TLSPROF} is missing: run `make build`, or set TLSPROF"


@pytest.fixture(scope="module", autouse=True)
def supervisor():
    """What happens where some kernels run no BPF program, while the tests of a file run."""
    if os.geteuid() != 0:
        yield None
        return
    with hidden.watched(hidden.supervisor()) as watched:
        yield watched


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A figure that is wrong after something was hidden from every BPF program has not been measured.

    What was hidden since the file's tests began counts: they share profiles, and some are made only when a test first
    asks for them. How many tests this may excuse is bounded (.ci/results.py).
    """
    report = (yield).get_result()
    supervisor = getattr(item, "funcargs", {}).get("supervisor")
    if not (report.failed and supervisor and call.excinfo.errisinstance(AssertionError)):
        return
    changes = supervisor.hidden_changes()
    if changes:
        print(report.longreprtext, supervisor.trace.read_text(), sep="\n")
        report.outcome = "skipped"
        reason = f"{hidden.NOT_MEASURED} {changes} changes of TCP states from BPF programs"
        report.longrepr = (str(item.path), item.location[1], reason)


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
