"""What the field reports are tested by: findings, what they predict, and what a change then saves.

The truth is the server's CPU time as the kernel accounts it in /proc, for each request that the
client counts; the profiler has no part in it, and does not run meanwhile.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from .paths import SERVERS
from .processes import Argument, children, run
from .profiler import Profiling, Report
from .sequential import Rounds, assert_agrees
from .servers import SYSTEM_PYTHON, Server
from .waiting import wait_until

TOLERANCE = 0.25
"""Of a predicted saving against the measured one."""

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")

LISTEN, TIME_WAIT = "0A", "06"
"""States in /proc/net/tcp."""

LOAD_SECONDS = 240.0
"""Bound of one load."""

PROFILES = 6
"""Of which one must have a figure."""

T = TypeVar("T")

Load = Callable[[int], int]
"""Makes requests on a port and returns how many."""


@dataclass(frozen=True)
class Spent:
    """CPU time of a server, in seconds, and the requests that it was spent on."""

    user: float
    system: float
    requests: int

    @property
    def each(self) -> float:
        """For one request."""
        return (self.user + self.system) / self.requests


def cpu_seconds(pid: int) -> tuple[float, float]:
    """User and system time of a process and its descendants, ended ones included."""
    # After the name, which may hold anything: state is field 3 of proc(5), utime 14 to cstime 17.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system, ended_user, ended_system = (int(field) * TICK_SECONDS for field in fields[11:15])
    sums = [(user + ended_user, system + ended_system), *map(cpu_seconds, children(pid))]
    return sum(user for user, _ in sums), sum(system for _, system in sums)


def spend(server: Server, load: Load) -> Spent:
    """Runs a load on the server."""
    user, system = cpu_seconds(server.pid)
    requests = load(server.port)
    user_after, system_after = cpu_seconds(server.pid)
    return Spent(user_after - user, system_after - system, requests)


@dataclass(frozen=True)
class Profiled:
    """A profile of one server under a load."""

    report: Report
    port: int
    spent: Spent
    """In the same time."""

    @property
    def service(self):
        return self.report.on_port(self.port)

    def finding(self, name: str) -> Optional[dict[str, Any]]:
        """The finding of that name on the server, if there is one."""
        return find(self.report, self.port, name)

    def saving(self, name: str) -> float:
        """CPU seconds for a request that the finding of that name predicts."""
        finding = self.finding(name)
        assert finding, [one["id"] for one in self.report.data["findings"]]
        assert finding["prediction"]["kind"] in ("saving", "at_most"), finding["prediction"]
        return finding["prediction"]["cpu_seconds"]["likely"] / self.spent.requests

    def share_of(self, activity: str) -> float:
        """Of the CPU time of the server."""
        rows = self.service.data["activities"]
        whole = sum(row["cpu_seconds"] for row in rows)
        return sum(row["cpu_seconds"] for row in rows if row["activity"] == activity) / whole


def find(report: Report, port: int, name: str) -> Optional[dict[str, Any]]:
    """The finding of that name on the service on `port`, if there is one."""
    service = report.on_port(port).name
    found = [
        finding
        for finding in report.data["findings"]
        if finding["id"] == name and finding["service_name"] == service
    ]
    assert len(found) <= 1, found
    return found[0] if found else None


def until_ended(server: Server, load: Load) -> Load:
    """The load, and then the end of all processes that the server started for it: while one ends,
    it could be counted for none."""

    def run_both(port: int) -> int:
        requests = load(port)
        wait_until(lambda: not children(server.pid), "end of the server's children")
        return requests

    return run_both


def profile(folder: Path, server: Server, load: Load, *options: Argument) -> Profiled:
    """Profiles that server alone: no other service of the host tells a cost."""
    with Profiling(folder, "--port", server.port, *options, timeout=120.0) as profiling:
        spent = spend(server, load)
        profiling.finish()
    return Profiled(profiling.report, server.port, spent)


def sampled_often(folder: Path, more: str = "") -> list[Argument]:
    """Options for as many samples as a short run needs, and for `more` of a configuration."""
    config = folder / "tlsprof.toml"
    config.write_text(f"[profile]\nsample_frequency = 499\n{more}")
    return ["--config", config]


@dataclass(frozen=True)
class Saving:
    """Of one change, in any unit, as long as both are in the same."""

    predicted: float
    measured: float


def assert_predicted(measure: Callable[[], dict[str, Saving]]) -> None:
    """Asserts that what is predicted is what is measured, by name.

    `measure` takes what it compares in turn, so that what slows the machine slows all of it.
    """
    rounds = Rounds(measure)
    first = next(rounds.each(lambda one: one))
    for name in first:
        figures = rounds.each(lambda one: one[name].predicted / one[name].measured)
        assert_agrees(figures, expected=1.0, within=TOLERANCE, name=f"predicted / measured, {name}")


def ab(
    requests: int, concurrency: int, *options: Argument, path: str = "/", found: bool = True
) -> Load:
    """Apache's ab: a new connection, and a full handshake, for each request. `found`: whether the
    server has something at `path`; where handshakes are all that matters, it need not."""

    def load(port: int) -> int:
        command = ["ab", "-q", "-n", requests, "-c", concurrency, *options]
        done = run([*command, f"https://127.0.0.1:{port}{path}"], timeout=LOAD_SECONDS)
        assert done.child.returncode == 0, done.describe()
        assert f"Complete requests:      {requests}\n" in done.stdout, done.describe()
        assert "Failed requests:        0\n" in done.stdout, done.describe()
        assert not found or "Non-2xx responses" not in done.stdout, done.describe()
        return requests

    return load


def asked(ask: Callable[[], T], finding: Callable[[T], Optional[dict[str, Any]]]) -> T:
    """The first answer without the finding, or with a figure in it.

    Calibrations run at idle priority: on a machine that is busy with something else one may get no time. And
    where CPU time is stolen, handshakes seem to take more than there was. The finding then says so instead of a figure,
    and is asked again. That is no retry on the figure: the first one counts, whatever it is. How many it took is printed.
    """
    for profiles in range(1, PROFILES + 1):
        answer = ask()
        found = finding(answer)
        if found is None or found["prediction"]["kind"] != "unknown":
            break
    print(f"asked in {profiles} of at most {PROFILES} profiles")
    return answer


def predicted_saving(
    folder: Path, server: Server, load: Load, name: str, *options: Argument
) -> float:
    """CPU seconds for a request that the finding of that name predicts."""
    ask = lambda: profile(folder, server, load, *options)
    return asked(ask, lambda profiled: profiled.finding(name)).saving(name)


def wait_closed(port: int, pid: Argument = "self") -> None:
    """Waits until the kernel is done with all connections of a port, TIME_WAIT excepted: on a busy
    machine it may still be at it when the client has gone. `pid` is a process in the network
    namespace of that port."""

    def open_connections() -> int:
        rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
        local = [row[3] for row in rows if int(row[1].rpartition(":")[2], 16) == port]
        return sum(state not in (LISTEN, TIME_WAIT) for state in local)

    wait_until(lambda: open_connections() == 0, f"connections of port {port} to be closed")


def http_client(requests: int, certificate: Path, *options: Argument, threads: int = 10) -> Load:
    """Clients like JMeter's: threads that each make so many requests, on as few connections as
    the server allows."""

    def load(port: int) -> int:
        command = [SYSTEM_PYTHON, SERVERS / "http_client.py", port, requests, certificate]
        done = run([*command, "--threads", threads, *options], timeout=LOAD_SECONDS)
        assert done.child.returncode == 0, done.describe()
        made = json.loads(done.stdout)["requests"]
        assert made == requests * threads
        wait_closed(port)
        return made

    return load


def h2load(requests: int, clients: int, *options: Argument, path: str = "") -> Load:
    """HTTP/2 on connections that are kept."""

    def load(port: int) -> int:
        command = ["h2load", "-n", requests, "-c", clients, *options]
        done = run([*command, f"https://127.0.0.1:{port}/{path}"], timeout=LOAD_SECONDS)
        assert done.child.returncode == 0, done.describe()
        assert f" {requests} succeeded, 0 failed" in done.stdout, done.describe()
        return requests

    return load
