"""Field report D: a program is started for each TLS connection, as DeleGate's filter and inetd do.

Three devices against that, each alone and all together, as in the report: connections that are
kept, sessions that are resumed, and no program of its own for each connection.
"""

import itertools
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Iterator

import pytest

from harness import other_stacks
from harness.profiler import Profiling, Report
from harness.scenarios import (
    TICK_SECONDS,
    Load,
    Saving,
    Spent,
    assert_predicted,
    find,
    http_client,
    profile,
    sampled_often,
    spend,
    until_ended,
)
from harness.servers import Server

FINDING = "process-per-connection"

THREADS = 10
REQUESTS = 300
"""As in the report."""


@dataclass(frozen=True)
class Devices:
    """What is done against the cost of connections."""

    keep_alive: bool = False
    sessions: bool = False
    no_program: bool = False

    def options(self) -> list[str]:
        """For our server."""
        options = ["--requests", "100" if self.keep_alive else "1"]
        options += [] if self.sessions else ["--no-sessions"]
        return options + ([] if self.no_program else ["--exec"])

    @property
    def name(self) -> str:
        """For a service, which is named by its program."""
        return "http-" + "-".join(option.lstrip("-") for option in self.options())


NONE = Devices()
ALL = Devices(True, True, True)
MATRIX = [Devices(*devices) for devices in itertools.product([False, True], repeat=3)]


@dataclass(frozen=True)
class Cell:
    """One server of the matrix, under the load."""

    server: Server
    spent: Spent


@dataclass(frozen=True)
class Matrix:
    """All of them, in one report."""

    cells: dict[Devices, Cell]
    report: Report

    def each(self, **devices: bool) -> float:
        """CPU seconds for a request."""
        return self.cells[Devices(**devices)].spent.each

    def has_finding(self, devices: Devices) -> bool:
        return find(self.report, self.cells[devices].server.port, FINDING) is not None


@pytest.fixture(scope="module")
def load(rsa) -> Load:
    return http_client(
        REQUESTS // THREADS, rsa.cert, "--resume", "--tls", "TLSv1_2", threads=THREADS
    )


@pytest.fixture(scope="module")
def servers(tmp_path_factory, rsa) -> Iterator[dict[Devices, Server]]:
    with ExitStack() as stack:
        yield {
            devices: stack.enter_context(
                other_stacks.static_http(
                    tmp_path_factory.mktemp("server"), rsa, "1.2", devices.options(), devices.name
                )
            )
            for devices in MATRIX
        }


@pytest.fixture(scope="module")
def matrix(servers, load, tmp_path_factory) -> Matrix:
    with Profiling(tmp_path_factory.mktemp("matrix")) as profiling:
        cells = {
            devices: Cell(server, spend(server, until_ended(server, load)))
            for devices, server in servers.items()
        }
        profiling.finish()
    return Matrix(cells, profiling.report)


@pytest.mark.parametrize("devices", MATRIX, ids=lambda devices: devices.name)
def test_no_cpu_time_of_short_lived_processes_is_lost(devices, matrix):
    cell = matrix.cells[devices]
    cpu = matrix.report.on_port(cell.server.port).data["cpu_seconds"]
    whole = cell.spent.user + cell.spent.system
    assert_of_ticks(cpu["user"] + cpu["system"], whole, fields=4)
    # Divided as the kernel does it, for each process by what its ticks hit.
    assert_of_ticks(cpu["system"], cell.spent.system, fields=2)


def assert_of_ticks(seconds: float, ticked: float, fields: int) -> None:
    """CPU time in /proc is the sum of so many fields, each of them cut to whole ticks. That of the agent is cut, too, where it has
    no other source."""
    assert 0.95 * ticked - 2 * TICK_SECONDS <= seconds <= 1.05 * ticked + fields * TICK_SECONDS, (seconds, ticked)


def test_each_device_alone_saves(matrix):
    worst = matrix.each()
    assert matrix.each(no_program=True) < 0.7 * worst
    assert matrix.each(keep_alive=True) < 0.2 * worst
    assert matrix.each(sessions=True) < worst
    # Without programs to start, more of what is left is in the handshakes.
    assert matrix.each(no_program=True, sessions=True) < 0.7 * matrix.each(no_program=True)


def test_all_devices_together_are_best(matrix):
    assert matrix.each(keep_alive=True, sessions=True, no_program=True) < 0.1 * matrix.each()


def test_programs_are_found_where_each_connection_has_one(matrix):
    found = {devices for devices in MATRIX if matrix.has_finding(devices)}
    assert found == {NONE, Devices(sessions=True)}


def test_the_programs_are_counted(matrix):
    finding = find(matrix.report, matrix.cells[NONE].server.port, FINDING)
    assert finding["figures"]["connections"] == REQUESTS
    # The first ones may be started before the ledger knows the service.
    assert REQUESTS - THREADS <= finding["figures"]["processes_forked"] <= REQUESTS
    assert REQUESTS - THREADS <= finding["figures"]["programs_executed"] <= REQUESTS


def test_the_saving_of_no_programs_is_predicted(servers, load, tmp_path):
    worst, better = servers[NONE], servers[Devices(no_program=True)]
    to_the_end = until_ended(worst, load)
    options = sampled_often(tmp_path)

    def measure() -> dict[str, Saving]:
        saved = spend(worst, to_the_end).each - spend(better, load).each
        predicted = profile(tmp_path, worst, to_the_end, *options).saving(FINDING)
        return {"no programs": Saving(predicted, saved)}

    assert_predicted(measure)
