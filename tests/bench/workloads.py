# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The four loads of the benchmark, and what one run of a load cost nginx."""

import os
import re
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator

from harness import web_servers
from harness.certificates import make_certificate
from harness.load import Load
from harness.paths import PROGRAMS, TESTS
from harness.processes import Argument, Process, children, run
from harness.servers import Server

SERVER_CPU = 0
CLIENT_CPU = 1
MEBIBYTE = 1 << 20
CALIBRATION = 200
"""Handshakes of the run that finds out how many fill the wanted time."""

DOWNLOAD = "1MiB"


def run_or_fail(command: list[Argument], **options) -> Process:
    done = run(command, **options)
    assert done.child.returncode == 0, done.describe()
    return done


@contextmanager
def one_worker() -> Iterator[Server]:
    """nginx on a CPU of its own, with something to download; the client's program is built."""
    run_or_fail(["make", "--silent", "-C", TESTS, f"OUT={PROGRAMS}"], timeout=600.0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / DOWNLOAD).write_bytes(bytes(MEBIBYTE))
        extra = f"location /{DOWNLOAD} {{ root {folder}; }}"
        certificate = make_certificate(folder, "rsa2048")
        with web_servers.nginx(folder, certificate, workers=1, extra=extra, cpu=SERVER_CPU) as server:
            yield server


@dataclass(frozen=True)
class Run:
    """One run of a load."""

    throughput: float
    """Operations a second."""
    cpu: float
    """CPU seconds of nginx for an operation."""
    seconds: float


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _timed(server: Server, load: Callable[[], int]) -> Run:
    """`load` returns how many operations it did."""
    (worker,) = children(server.pid)
    cpu_before, began = cpu_seconds(worker), time.monotonic()
    operations = load()
    seconds = time.monotonic() - began
    return Run(operations / seconds, (cpu_seconds(worker) - cpu_before) / operations, seconds)


def _loadgen(server: Server, load: Load) -> int:
    run_or_fail(load.command(server.port), cpu=CLIENT_CPU, timeout=300.0)
    return load.full + load.resume


def _handshakes(make: Callable[[int], Load]) -> Callable[[Server, float], Run]:
    def workload(server: Server, seconds: float) -> Run:
        trial = _timed(server, lambda: _loadgen(server, make(CALIBRATION)))
        count = max(CALIBRATION, int(trial.throughput * seconds))
        return _timed(server, lambda: _loadgen(server, make(count)))

    return workload


def keep_alive(server: Server, seconds: int) -> list[Argument]:
    return _wrk_command(server, "", 32, seconds)


def downloads(server: Server, seconds: int) -> list[Argument]:
    return _wrk_command(server, DOWNLOAD, 8, seconds)


def _wrk_command(server: Server, path: str, connections: int, seconds: int) -> list[Argument]:
    url = f"https://127.0.0.1:{server.port}/{path}"
    return ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url]


def _wrk(command: Callable[[Server, int], list[Argument]]) -> Callable[[Server, float], Run]:
    def requests(server: Server, seconds: float) -> int:
        done = run(
            command(server, max(1, round(seconds))), cpu=CLIENT_CPU, timeout=seconds + 60.0
        )
        match = re.search(r"(\d+) requests in", done.stdout)
        assert match and "Non-2xx" not in done.stdout, done.describe()
        return int(match.group(1))

    return lambda server, seconds: _timed(server, lambda: requests(server, seconds))


WORKLOADS: dict[str, Callable[[Server, float], Run]] = {
    "full handshakes, RSA-2048, TLS 1.3": _handshakes(lambda n: Load(tls="1.3", full=n)),
    "resumed handshakes, TLS 1.3": _handshakes(lambda n: Load(tls="1.3", full=1, resume=n - 1)),
    "keep-alive small requests": _wrk(keep_alive),
    "1 MiB downloads": _wrk(downloads),
}
