#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Throughput of nginx with a profiler attached against without, in paired runs.

Each round measures without, with, and takes the ratio of the two; the table
shows the median ratio and the range. nginx has one worker on the first core,
the client is on the second. Besides throughput it shows the CPU time that
nginx spends on an operation, which tells the cost also where it is the client
that limits the throughput.
"""

import argparse
import signal
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from harness.processes import Argument, Process  # noqa: E402
from harness.profiler import start_agent  # noqa: E402
from harness.servers import Server  # noqa: E402
from harness.waiting import wait_until  # noqa: E402
from workloads import MEBIBYTE, WORKLOADS, cpu_seconds, one_worker, resident_bytes  # noqa: E402

SSLLATENCY = "/usr/sbin/ssllatency.bt"
TOOL_START_SECONDS = 120.0
TOOL_STOP_SECONDS = 120.0


@dataclass
class Ratios:
    """With the tool against without, of each round."""

    throughput: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


@dataclass
class OwnCost:
    """What the tool's own process used while the loads ran."""

    cpu_seconds: float = 0.0
    seconds: float = 0.0
    memory_bytes: int = 0


@contextmanager
def tlsprof(*options: Argument) -> Iterator[Process]:
    with start_agent(options) as agent:
        yield agent.process
        agent.process.stop(TOOL_STOP_SECONDS)


@contextmanager
def sockets() -> Iterator[Process]:
    """tlsprof without probes in the TLS library: socket calls only."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write('[profile]\nlibrary = "off"\n')
        config.flush()
        with tlsprof("--config", config.name) as process:
            yield process


@contextmanager
def ssllatency() -> Iterator[Process]:
    """bpftrace does not say when its probes are attached: its main loop comes after that."""
    with Process(["bpftrace", SSLLATENCY], stop_signal=signal.SIGINT) as process:
        process.wait_for_line("Tracing", TOOL_START_SECONDS)
        waits_in = Path(f"/proc/{process.pid}/wchan")
        wait_until(lambda: "epoll_wait" in waits_in.read_text(), "bpftrace's main loop", TOOL_START_SECONDS)
        yield process
        process.stop(TOOL_STOP_SECONDS)


TOOLS = {"tlsprof": tlsprof, "sockets": sockets, "ssllatency": ssllatency}


def pair(server: Server, workload: str, tool: str, seconds: float, ratios: Ratios, own: OwnCost) -> None:
    """One round: without the tool, then with it."""
    measure = WORKLOADS[workload]
    without = measure(server, seconds)
    with TOOLS[tool]() as process:
        before = cpu_seconds(process.pid)
        attached = measure(server, seconds)
        own.cpu_seconds += cpu_seconds(process.pid) - before
        own.seconds += attached.seconds
        own.memory_bytes = max(own.memory_bytes, resident_bytes(process.pid))
    ratios.throughput.append(attached.throughput / without.throughput)
    ratios.cpu.append(attached.cpu / without.cpu)


def text(values: list[float]) -> str:
    return f"{median(values):.3f} ({min(values):.3f}..{max(values):.3f})"


def print_tables(results: dict[tuple[str, str], Ratios], costs: dict[str, OwnCost]) -> None:
    print("| load | tool | throughput, with / without | nginx CPU an operation, with / without |")
    print("| --- | --- | --- | --- |")
    for (workload, tool), ratios in results.items():
        print(f"| {workload} | {tool} | {text(ratios.throughput)} | {text(ratios.cpu)} |")
    print("\n| tool | own CPU, of one core | own memory |\n| --- | --- | --- |")
    for tool, cost in costs.items():
        share = cost.cpu_seconds / cost.seconds
        print(f"| {tool} | {share:.2%} | {cost.memory_bytes / MEBIBYTE:.1f} MiB |")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs and few rounds")
    parser.add_argument("--tool", choices=TOOLS, action="append", help="all if none is given")
    parser.add_argument("--load", choices=WORKLOADS, action="append", help="all if none is given")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    seconds, rounds = (1.5, 3) if options.quick else (4.0, 7)
    tools = options.tool or list(TOOLS)
    results: dict[tuple[str, str], Ratios] = {}
    costs = {tool: OwnCost() for tool in tools}
    with one_worker() as server:
        for workload in options.load or WORKLOADS:
            for tool in tools:
                ratios = results.setdefault((workload, tool), Ratios())
                for done in range(rounds):
                    print(f"{workload}, {tool}: {done + 1} of {rounds}", file=sys.stderr)
                    pair(server, workload, tool, seconds, ratios, costs[tool])
    print_tables(results, costs)


if __name__ == "__main__":
    main()
