# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The loads of the benchmarks: a server on one CPU, its client on another."""

import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, Optional

from harness import web_servers
from harness.certificates import make_certificate
from harness.load import Load
from harness.paths import PROGRAMS, TESTS
from harness.processes import Argument, Process, children, run
from harness.servers import Server, on_free_port

SERVER_CPU = 0
CLIENT_CPU = 1
MEBIBYTE = 1 << 20
MANY = 10_000_000
"""Handshakes that no run gets through."""
HOURS_SECONDS = 36_000
DOWNLOAD = "1MiB"


def run_or_fail(command: list[Argument], **options) -> Process:
    done = run(command, **options)
    assert done.child.returncode == 0, done.describe()
    return done


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def nginx(key: str = "rsa2048", workers: int = 1, extra: str = "", cpu: Optional[int] = SERVER_CPU) -> Iterator[Server]:
    """With something to download."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / DOWNLOAD).write_bytes(bytes(MEBIBYTE))
        locations = f"location /{DOWNLOAD} {{ root {folder}; }} {extra}"
        certificate = make_certificate(folder, key)
        with web_servers.nginx(folder, certificate, workers=workers, extra=locations, cpu=cpu) as server:
            yield server


@contextmanager
def redis() -> Iterator[Server]:
    """Without TLS."""

    def start(port: int) -> Process:
        options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        return Process(["redis-server", "--port", port, *options], cpu=SERVER_CPU)

    with on_free_port(start) as server:
        yield server


def _handshakes(full: int, resume: int) -> Callable[[int], list[Argument]]:
    return lambda port: Load(tls="1.3", full=full, resume=resume).command(port)


def _wrk(path: str, connections: int) -> Callable[[int], list[Argument]]:
    options = ["-t1", f"-c{connections}", f"-d{HOURS_SECONDS}s"]
    return lambda port: ["wrk", *options, f"https://127.0.0.1:{port}/{path}"]


@dataclass(frozen=True)
class Workload:
    """Goes on until it is ended."""

    server: Callable[[], Iterator[Server]]
    client: Callable[[int], list[Argument]]
    """The command, by the server's port."""

    @contextmanager
    def running(self) -> Iterator[tuple[int, int]]:
        """The processes of server and client."""
        run_or_fail(["make", "--silent", "-C", TESTS, f"OUT={PROGRAMS}"], timeout=600.0)
        with self.server() as server:
            (worker,) = children(server.pid) or [server.pid]
            with Process(self.client(server.port), cpu=CLIENT_CPU) as client:
                yield worker, client.pid


WORKLOADS: dict[str, Workload] = {
    "full": Workload(nginx, _handshakes(MANY, 0)),
    "resumed": Workload(nginx, _handshakes(1, MANY)),
    "keep-alive": Workload(nginx, _wrk("", 32)),
    "downloads": Workload(nginx, _wrk(DOWNLOAD, 8)),
    "bystander": Workload(
        redis, lambda port: ["redis-benchmark", "-p", port, "-c", 50, "-t", "get", "-l", "-q"]
    ),
}
"""Full and resumed handshakes of TLS 1.3 with RSA-2048, small requests on 32 open connections,
1 MiB on 8, and a server without TLS: one request at a time on 50 connections."""
