#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What idle TLS connections and many processes cost: memory and CPU of the agent, and memory of
the kernel.

An nginx holds the connections; clients in a few processes make them and keep them open. Kernel
memory is what slab, per-CPU and vmalloc areas grow by from before the agent starts, less what they
grow by in the same load without it. It is the whole machine's: run it on an idle one.
"""

import argparse
import multiprocessing
import resource
import socket
import ssl
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Iterator, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from harness.certificates import make_certificate  # noqa: E402
from harness.processes import Process  # noqa: E402
from harness.profiler import Agent, start_agent  # noqa: E402
from harness.servers import Server, on_free_port  # noqa: E402
from harness.waiting import wait_until  # noqa: E402
from workloads import cpu_seconds, resident_bytes  # noqa: E402

CLIENTS = 8
"""Processes that hold connections, and nginx workers: a process has at most 20,000 descriptors
on some machines. Each client has an address, 127.0.0.2 and on, and so a range of ports."""
HOLD_SECONDS = 20.0
START_SECONDS = 600.0

CONFIG = """
daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 19000; }}
http {{
    access_log off;
    keepalive_timeout 1h;
    client_header_timeout 1h;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl reuseport backlog=4096;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        location / {{ return 200 "ok"; }}
    }}
}}
"""


@dataclass
class Costs:
    """At the time when all connections are open and idle."""

    kernel_bytes: int
    agent_bytes: int = 0
    agent_cpu: float = 0.0
    """CPU seconds a second while nothing moved."""
    start: float = 0.0
    """Seconds that another agent takes to start then."""


def hold(port: int, address: str, count: int, ready: Event, done: Event) -> None:
    """Opens `count` TLS connections from that address and keeps them."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connections = []
    for _ in range(count):
        plain = socket.socket()
        plain.bind((address, 0))
        plain.connect(("127.0.0.1", port))
        connections.append(context.wrap_socket(plain))
    ready.set()
    done.wait()


@contextmanager
def connections(port: int, count: int) -> Iterator[None]:
    """That many idle connections."""
    done = multiprocessing.Event()
    events, holders = [], []
    for number in range(CLIENTS):
        ready = multiprocessing.Event()
        address = f"127.0.0.{number + 2}"
        holder = multiprocessing.Process(target=hold, args=(port, address, count // CLIENTS, ready, done))
        holder.start()
        events.append(ready)
        holders.append(holder)
    try:
        for ready in events:
            assert ready.wait(START_SECONDS), "the connections did not open"
        yield
    finally:
        done.set()
        for holder in holders:
            holder.join()


def kernel_bytes() -> int:
    """Memory of the kernel itself, without caches."""
    wanted = {"SUnreclaim", "Percpu", "VmallocUsed"}
    lines = Path("/proc/meminfo").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.split(":")[0] in wanted)


def idle_cpu(pid: int, seconds: float) -> float:
    """CPU seconds a second of a process over that time."""
    before = cpu_seconds(pid)
    multiprocessing.Event().wait(seconds)
    return (cpu_seconds(pid) - before) / seconds


def measure(server: Server, count: int, processes: int, agent: Optional[Agent], before: int) -> Costs:
    with ExitStack() as stack:
        for _ in range(processes):
            stack.enter_context(Process(["sleep", "3600"]))
        stack.enter_context(connections(server.port, count))
        if not agent:
            return Costs(kernel_bytes() - before)
        cpu = idle_cpu(agent.process.pid, HOLD_SECONDS)
        costs = Costs(kernel_bytes() - before, resident_bytes(agent.process.pid), cpu)
        began = time.monotonic()
        with start_agent():
            costs.start = time.monotonic() - began
        return costs


@contextmanager
def nginx(folder: Path) -> Iterator[Server]:
    certificate = make_certificate(folder, "ecdsa")

    def start(port: int) -> Process:
        config = folder / "nginx.conf"
        values = {"folder": folder, "port": port, "workers": CLIENTS}
        values |= {"cert": certificate.cert, "key": certificate.key}
        config.write_text(CONFIG.format(**values))
        return Process(["nginx", "-e", "stderr", "-c", config])

    with on_free_port(start) as server:
        yield server


def run_once(count: int, processes: int, with_agent: bool) -> Costs:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        before = kernel_bytes()
        agent = stack.enter_context(start_agent()) if with_agent else None
        if agent:
            wait_until(lambda: resident_bytes(agent.process.pid) > 0, "the agent")
        server = stack.enter_context(nginx(folder))
        return measure(server, count, processes, agent, before)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=1_000)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    base = run_once(0, 0, with_agent=True)
    without = run_once(options.connections, options.processes, with_agent=False)
    full = run_once(options.connections, options.processes, with_agent=True)
    kernel = full.kernel_bytes - without.kernel_bytes - base.kernel_bytes
    memory = full.agent_bytes - base.agent_bytes
    sockets = 2 * options.connections
    print("| what | cost |\n| --- | --- |")
    print(f"| kernel memory, nothing running | {base.kernel_bytes / 2**20:.1f} MiB |")
    print(f"| agent memory, nothing running | {base.agent_bytes / 2**20:.1f} MiB |")
    print(f"| kernel memory for each of {sockets} sockets | {kernel / sockets:.0f} bytes |")
    print(f"| agent memory for each of {options.connections} connections | {memory / options.connections:.0f} bytes |")
    print(f"| agent CPU, all idle | {full.agent_cpu:.2%} of one core (nothing running: {base.agent_cpu:.2%}) |")
    print(f"| start of another agent beside it | {full.start:.1f} s (nothing running: {base.start:.1f} s) |")


if __name__ == "__main__":
    main()
