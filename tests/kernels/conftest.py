"""Fixtures: guests, one for each kernel, that ran their checks."""

import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Callable, Iterator

import pytest

from harness.certificates import make_certificate
from harness.load import Load
from harness.paths import PROGRAMS, TESTS, TLSPROF
from harness.suites import Unobtainable
from matrix.guest import Guest, boot
from matrix.initramfs import Workload, build, with_modules
from matrix.kernels import KERNELS, bootable

GUESTS_AT_ONCE = 2

MIX = dict(full=40, resume=40, abort_hello=5, abort_flight=5, garbage=5, no_group=5, reject=5)

WORKLOAD = Workload(
    handshakes=[Load(tls=tls, **MIX) for tls in ("1.2", "1.3")],
    requests=100,
    requests_per_connection=5,
)

GUESTS = pytest.StashKey[dict[str, Guest]]()


@pytest.fixture(scope="session")
def workload() -> Workload:
    return WORKLOAD


@pytest.fixture(scope="session")
def initramfs_of(tmp_path_factory) -> Callable[[str], Path]:
    """Builds a file system that runs these checks."""
    assert TLSPROF.is_file(), f"{TLSPROF} is missing: run `make build`, or set TLSPROF"
    subprocess.run(["make", "--silent", "-C", str(TESTS), f"OUT={PROGRAMS}"], check=True)

    def build_of(checks: str) -> Path:
        folder = tmp_path_factory.mktemp("initramfs")
        return build(folder, make_certificate(folder, "rsa2048"), WORKLOAD, checks)

    return build_of


@pytest.fixture(scope="session")
def initramfs(initramfs_of) -> Path:
    return initramfs_of("checks")


@pytest.fixture(scope="session")
def guests(request, initramfs, tmp_path_factory) -> Iterator[dict[str, Future[Guest]]]:
    """All guests that the selected tests want, started in their order, a few at a time."""

    def run(name: str) -> Guest:
        kernel, folder = bootable(KERNELS[name]), tmp_path_factory.mktemp(f"linux-{name}")
        return boot(kernel, with_modules(initramfs, kernel, folder), folder)

    parametrized = [item for item in request.session.items if hasattr(item, "callspec")]
    params = [item.callspec.params for item in parametrized]
    wanted = dict.fromkeys(one["guest"] for one in params if "guest" in one)
    pool = ThreadPoolExecutor(GUESTS_AT_ONCE)
    try:
        yield {name: pool.submit(run, name) for name in wanted}
    finally:
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session", params=KERNELS)
def guest(request, guests) -> Guest:
    """A guest for each kernel that can be had here; the others are skipped by name."""
    try:
        finished = guests[request.param].result()
    except Unobtainable as why:
        pytest.skip(f"kernel {request.param} cannot be had: {why}")
    request.config.stash.setdefault(GUESTS, {})[request.param] = finished
    return finished


def pytest_terminal_summary(terminalreporter, config):
    for name, guest in config.stash.get(GUESTS, {}).items():
        version = guest.checks["kernel"].text
        terminalreporter.write_line(f"kernel {name}: {version}, {guest.seconds:.0f} s")
