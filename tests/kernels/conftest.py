"""Fixtures: guests, one for each kernel, that ran their checks."""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Iterator

import pytest

from harness.certificates import make_certificate
from harness.load import Load
from harness.paths import TLSPROF
from harness.suites import Unobtainable
from matrix.guest import Guest, Scenario, boot
from matrix.initramfs import Workload, build, with_modules
from matrix.kernels import KERNELS, bootable
from matrix.programs import programs

GUESTS_AT_ONCE = 2

MIX = dict(full=40, resume=40, abort_hello=5, abort_flight=5, garbage=5, no_group=5, reject=5)

WORKLOAD = Workload(
    handshakes=[Load(tls=tls, **MIX) for tls in ("1.2", "1.3")],
    requests=100,
    requests_per_connection=5,
    # No resumption: a ticket from another day is refused.
    hardy=[Load(tls="1.3", full=60, abort_hello=5, garbage=5, no_group=5, reject=5)],
)

SCENARIOS = {
    "guest": Scenario("checks"),
    "survivor": Scenario("survival", cpus=2, bound=600.0),
    "divided": Scenario("softirqs", cpus=2),
    "interrupted": Scenario("interrupts", cpus=2),
    "locked": Scenario("lockdown", options="lockdown=confidentiality"),
}
"""By the fixture that has the guest."""

ON_EVERY_COMMIT = {("guest", "5.10"), ("guest", "newest")}
"""The oldest and the newest kernel; the other guests take part in `make test-long`."""

GUESTS = pytest.StashKey[dict[tuple[str, str], Guest]]()


def pytest_collection_modifyitems(items):
    for item in items:
        params = item.callspec.params.items() if hasattr(item, "callspec") else ()
        if {one for one in params if one[0] in SCENARIOS} - ON_EVERY_COMMIT:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def workload() -> Workload:
    return WORKLOAD


@pytest.fixture(scope="session")
def initramfs(tmp_path_factory) -> Path:
    assert TLSPROF.is_file(), f"{TLSPROF} is missing: run `make build`, or set TLSPROF"
    try:
        of_guests = programs(tmp_path_factory.mktemp("programs"))
    except Unobtainable as why:
        pytest.skip(f"kernels {', '.join(KERNELS)} have nothing to run: {why}")
    folder = tmp_path_factory.mktemp("initramfs")
    return build(folder, of_guests, make_certificate(folder, "rsa2048"), WORKLOAD)


@pytest.fixture(scope="session")
def guests(
    request, initramfs, tmp_path_factory
) -> Iterator[dict[tuple[str, str], Future[Guest]]]:
    """All guests that the selected tests want, by scenario and kernel, started in their order,
    a few at a time."""

    def run(scenario: str, name: str) -> Guest:
        kernel, folder = bootable(KERNELS[name]), tmp_path_factory.mktemp(f"{scenario}-{name}")
        whole = with_modules(initramfs, kernel, folder)
        return boot(kernel, SCENARIOS[scenario], whole, folder)

    parametrized = [item for item in request.session.items if hasattr(item, "callspec")]
    params = [item.callspec.params.items() for item in parametrized]
    wanted = dict.fromkeys(one for some in params for one in some if one[0] in SCENARIOS)
    pool = ThreadPoolExecutor(GUESTS_AT_ONCE)
    try:
        yield {one: pool.submit(run, *one) for one in wanted}
    finally:
        pool.shutdown(cancel_futures=True)


def finished(request, guests) -> Guest:
    """The guest of the fixture that asks, skipped by name if its kernel cannot be had."""
    scenario, name = request.fixturename, request.param
    try:
        guest = guests[scenario, name].result()
    except Unobtainable as why:
        pytest.skip(f"kernel {name} cannot be had: {why}")
    request.config.stash.setdefault(GUESTS, {})[scenario, name] = guest
    return guest


def those(*names: str) -> list[str]:
    """Kernels of that name, if they are for the machine that is tested."""
    return [name for name in names if name in KERNELS]


@pytest.fixture(scope="session", params=KERNELS)
def guest(request, guests) -> Guest:
    """A guest for each kernel that can be had here."""
    return finished(request, guests)


@pytest.fixture(scope="session", params=those("6.12"))
def survivor(request, guests) -> Guest:
    """A guest with two CPUs, one of which leaves, and a clock that jumps."""
    return finished(request, guests)


@pytest.fixture(scope="session", params=those("6.1", "6.18"))
def divided(request, guests) -> Guest:
    """A guest of whose two CPUs one takes the packets of two services."""
    return finished(request, guests)


@pytest.fixture(scope="session", params=those("6.1", "6.12", "6.18", "newest"))
def interrupted(request, guests) -> Guest:
    """A guest whose two CPUs both take packets, in interrupts."""
    return finished(request, guests)


@pytest.fixture(scope="session", params=those("5.10", "newest"))
def locked(request, guests) -> Guest:
    """A guest whose kernel is locked down for confidentiality."""
    return finished(request, guests)


def pytest_terminal_summary(terminalreporter, config):
    for (scenario, name), guest in config.stash.get(GUESTS, {}).items():
        version = guest.checks["kernel"].text
        terminalreporter.write_line(
            f"kernel {name} ({scenario}): {version}, {guest.seconds:.0f} s"
        )
