"""What a report counts began between the two instants that it divides by, under loads that never stop."""

import json
import re
import signal
import threading
import time
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Sequence

import pytest

from harness import metrics, servers
from harness.load import Load
from harness.paths import SELFTIMED, SERVERS, TLSPROF
from harness.processes import LONG_SECONDS, Argument, Process
from harness.profiler import Report, Service, start_agent
from harness.steal import MOST_EXCUSED, watch_steal
from harness.waiting import wait_until

RATE = 50

EDGES = 2
"""A handshake that the client begins at one end of the window may reach the server on the other side."""

STARTED_WITHIN = 0.5
"""From the beginning of the window until the line that says so has been read, on a busy machine."""

STARTS = 4

MOST_IN_HANDSHAKES = 1.05
"""Of the CPU time of a service: the two clocks of the kernel differ by less."""

SAME_COST = 0.3
"""Of the probe hits and runs of a handshake: those of two windows begin and end within one."""

SCRAPES = 6
SCRAPE_EVERY = 0.4

READ_EVERY = 0.01
READINGS = 0.06
"""CPU seconds: two ticks of 10 ms, and what two CPUs do in the time between two readings."""

FULL_SPEED = Load(full=1_000_000, tls="1.3", threads=4)

RESUMED = Load(full=4, resume=1_000_000, tls="1.3", threads=4)
"""More records a second than full handshakes make: the agent's buffer would run over within a calibration."""


@dataclass
class Profiled:
    """One service of a report, and when its window was, to `STARTED_WITHIN`."""

    report: Report
    service: Service
    latest_begin: float

    @property
    def seconds(self) -> float:
        return self.report.data["duration_seconds"]

    @property
    def stolen(self) -> float:
        """What its notes say of that, and a tick in thirty on each CPU, which they may have missed."""
        told = re.search(r"the hypervisor withheld ([\d.]+)%", json.dumps(self.report.data))
        return min(MOST_EXCUSED, 1 / 30 + (float(told[1]) / 100 if told else 0.0))

    @property
    def handshakes(self) -> int:
        return self.service.count(role="server")

    @property
    def cpu_seconds(self) -> float:
        return sum(self.service.data["cpu_seconds"].values())


def profile(folder: Path, port: int, *options: Argument, interrupt_after: float = 0.0) -> Profiled:
    output = folder / "report.json"
    command = [TLSPROF, "report", "--port", port, "--format", "json", "--output", output, *options]
    with Process(command) as process:
        process.wait_for_line("profiling ")
        begun = time.monotonic()
        if interrupt_after:
            time.sleep(interrupt_after)
            process.send(signal.SIGINT)
        assert process.wait(LONG_SECONDS) == 0, process.describe()
    report = Report(json.loads(output.read_text()))
    return Profiled(report, report.on_port(port), begun)


@dataclass
class Paced:
    """A server whose client begins a handshake each 20 ms, or as soon as it gets to it, and writes down when."""

    port: int
    log: Path

    def begun_in(self, profiled: Profiled) -> tuple[int, int]:
        """The fewest and the most handshakes that began in a window like that."""
        times = [float(line) for line in self.log.read_text().splitlines()]
        first, last = profiled.latest_begin - STARTED_WITHIN, profiled.latest_begin
        begins = [first, last, *(at for at in times if first < at < last)]
        counts = [bisect_left(times, at + profiled.seconds) - bisect_left(times, at) for at in begins]
        return min(counts), max(counts)


@pytest.fixture(scope="module")
def paced(tmp_path_factory, certificates) -> Iterator[Paced]:
    folder = tmp_path_factory.mktemp("paced")
    log = folder / "begun"
    with servers.selftimed("threads", certificates["ecdsa"]) as server:
        client = [servers.SYSTEM_PYTHON, SERVERS / "paced_client.py", server.port, RATE, log]
        with Process(client) as process:
            process.wait_for_line("begins")
            yield Paced(server.port, log)
            assert process.alive(), process.describe()


@pytest.mark.parametrize(
    "options, interrupt_after",
    [
        (["--duration", "1s"], 0.0),
        (["--duration", "5s"], 0.0),
        (["--", "sleep", "2"], 0.0),
        (["--", "true"], 0.0),
        (["--duration", "1h"], 2.0),
    ],
    ids=["1 s", "5 s", "command", "short command", "Ctrl-C"],
)
def test_a_report_counts_what_the_client_began_in_its_time(paced, tmp_path, options: Sequence[Argument], interrupt_after: float):
    profiled = profile(tmp_path, paced.port, *options, interrupt_after=interrupt_after)
    fewest, most = paced.begun_in(profiled)
    assert fewest - EDGES <= profiled.handshakes <= most + EDGES, profiled
    connections = [row for row in profiled.service.data["connections"] if row["role"] == "server"]
    opened = sum(row["opened"] for row in connections)
    ended = sum(closed["count"] for row in connections for closed in row["closed"])
    assert fewest - EDGES <= opened <= most + EDGES, connections
    assert opened - EDGES <= ended <= opened, connections


@pytest.fixture(scope="module")
def busy(certificates) -> Iterator[servers.SelfTimed]:
    """A server at full load."""
    with servers.selftimed("threads", certificates["rsa2048"]) as server:
        with Process(FULL_SPEED.command(server.port)) as load:
            yield server
            assert load.alive(), load.describe()


@pytest.mark.apart
@pytest.mark.parametrize("starts", [STARTS, pytest.param(5 * STARTS, marks=pytest.mark.long)])
def test_handshakes_never_take_more_than_there_was(starts, busy, tmp_path):
    """Handshakes and CPU time begin and end together, whatever was under way."""
    for _ in range(starts):
        profiled = profile(tmp_path, busy.port, "--duration", "300ms")
        share = profiled.service.cpu_seconds(role="server") / profiled.cpu_seconds
        assert 0.3 < share < MOST_IN_HANDSHAKES / (1 - profiled.stolen), (share, profiled.stolen)


@pytest.mark.host
def test_what_comes_after_the_window_is_no_loss(busy, tmp_path):
    """While savings are calibrated, and the report is written, the load goes on."""
    with Process(RESUMED.command(busy.port)) as more:
        # Long enough for a finding whose saving is calibrated, on a busy machine too.
        report = profile(tmp_path, busy.port, "--duration", "3s").report
        assert more.alive(), more.describe()
    predictions = [one["prediction"] for one in report.data["findings"]]
    # At idle priority, so that on a busy machine it may get no time.
    assert any(one.get("source") == "calibration" or one["kind"] == "unknown" for one in predictions), predictions
    assert report.losses_of_events() == {}


@pytest.mark.host
def test_the_cost_of_profiling_is_that_of_the_window(busy, tmp_path):
    """Not of attaching before it, nor of what ran after it."""
    config = tmp_path / "tlsprof.toml"
    config.write_text('[profile]\nsteps = "off"\n')
    lengths = ("300ms", "3s")
    short, long = (profile(tmp_path, busy.port, "--config", config, "--duration", length) for length in lengths)
    each = lambda cost: [one.report.data["agent"][cost] / one.handshakes for one in (short, long)]
    hits, runs = each("probe_hits"), each("bpf_runs")
    # What ran while it attached would be more than all of the short one.
    for in_short, in_long in (hits, runs):
        assert in_short == pytest.approx(in_long, rel=SAME_COST), (hits, runs)


@pytest.mark.apart
def test_an_agent_never_says_that_handshakes_took_more_than_there_was(busy):
    """At no scrape, from its first second on: CPU time is as new as handshakes are."""
    steal = watch_steal()
    with start_agent(["--service", SELFTIMED.name]) as agent:

        def scraped() -> tuple[float, float]:
            """CPU seconds of handshakes, and of the service."""
            samples = metrics.scrape(agent.url)
            of = lambda name: metrics.total(samples, name, service_name=SELFTIMED.name)
            return of("tlsprof_handshake_outcome_cpu_seconds_total"), of("tlsprof_service_cpu_seconds_total")

        wait_until(lambda: scraped()[0] > 0.0, "the first handshakes")
        for _ in range(SCRAPES):
            handshakes, service = scraped()
            assert 0.0 < handshakes <= MOST_IN_HANDSHAKES / (1 - steal()) * service + READINGS
            time.sleep(SCRAPE_EVERY)


class CpuLog:
    """What a process has used at times near to each other, in a `with` block."""

    def __init__(self, pid: int):
        self._pid = pid
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._readings: list[tuple[float, float]] = []

    def used_in(self, profiled: Profiled) -> tuple[float, float]:
        """The least and the most CPU seconds in a window like that."""
        times = [at for at, _ in self._readings]

        def used_at(moment: float) -> float:
            return self._readings[min(bisect_left(times, moment), len(times) - 1)][1]

        begins = [at for at in times if 0.0 <= profiled.latest_begin - at <= STARTED_WITHIN]
        used = [used_at(at + profiled.seconds) - used_at(at) for at in begins]
        return min(used), max(used)

    def _read(self) -> None:
        while not self._over.wait(READ_EVERY):
            self._readings.append((time.monotonic(), cpu_seconds(self._pid)))

    def __enter__(self) -> "CpuLog":
        self._reader.start()
        return self

    def __exit__(self, *_exception) -> None:
        self._over.set()
        self._reader.join()


@pytest.mark.apart
def test_cpu_time_is_that_of_the_same_seconds(busy, tmp_path):
    with CpuLog(busy.pid) as log:
        profiled = profile(tmp_path, busy.port, "--duration", "3s")
    least, most = log.used_in(profiled)
    assert least - READINGS <= profiled.cpu_seconds <= most + READINGS, (least, most, profiled)


def cpu_seconds(pid: int) -> float:
    """Of all threads of a process, those that have ended included (proc_pid_stat(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / 100
