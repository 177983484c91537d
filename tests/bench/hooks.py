#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the hooks of socket evidence cost nginx, attached and detached in turns under one load.

    tests/bench/hooks.py [--load LOAD] [--windows N] [--empty]

A window without, one with, one without, and so on; each one with is compared with the mean of its
neighbours. So what changes on the machine more slowly than that is in both, and a percent can be
told that paired runs cannot (bench.py). An operation is a write of nginx's worker, CPU time is the
scheduler's own count. Ratios, with against without, are medians and 95% of 2,000 resamplings. `both ends`
is what the hooks add to the CPU time of nginx and its client, `told` what the agent says of that.

The links of a running agent are closed by a debugger, and then its programs, with its maps, are
attached by this program. The agent goes on reading what they send. --empty takes programs that do
nothing instead, without an agent: no profiler with these hooks costs less. Samples of the CPU
are off. Wants root, gdb, bpftool, clang, kernel 6.3 or later and an idle machine.
"""

import argparse
import os
import platform
import random
import re
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Callable, Iterator, Optional

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH.parent / "e2e"))

from bpf_calls import attached, pinned_program, program_by_id  # noqa: E402
from harness import bpf, metrics  # noqa: E402
from harness.load import Load  # noqa: E402
from harness.processes import Argument, Process, children, run  # noqa: E402
from harness.profiler import Agent, start_agent  # noqa: E402
from harness.servers import Server  # noqa: E402
from harness.waiting import wait_until  # noqa: E402
from workloads import CLIENT_CPU, downloads, keep_alive, one_worker, run_or_fail  # noqa: E402

WINDOW_SECONDS = 0.1
SETTLING_SECONDS = 0.03
"""Attaching patches the kernel's code on all CPUs."""
MANY = 10_000_000
"""Handshakes that no run gets through."""
ESTIMATE_SECONDS = 4.0
"""The agent keeps statistics in a part of the time, and estimates the whole every 2 s."""
CONFIG = '[profile]\nlibrary = "off"\nsample_frequency = 0\n'
TRACEPOINT_LINKS = ("tracing", "raw_tracepoint")
"""Kernels name those of tp_btf programs in one way or the other."""
LOADS = ("full", "resumed", "keep-alive", "downloads")


def client(load: str, server: Server, seconds: int) -> list[Argument]:
    """Goes on for `seconds` at least, if it is not ended before."""
    if load == "keep-alive":
        return keep_alive(server, seconds)
    if load == "downloads":
        return downloads(server, seconds)
    full, resume = (MANY, 0) if load == "full" else (1, MANY)
    return Load(tls="1.3", full=full, resume=resume).command(server.port)


def writes(pid: int) -> int:
    return int(re.search(r"^syscw: (\d+)", Path(f"/proc/{pid}/io").read_text(), re.MULTILINE)[1])


def on_cpu(pid: int) -> float:
    """Seconds, of all its threads."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


@dataclass(frozen=True)
class Both:
    """The two ends of a load."""

    server: int
    client: int


@dataclass(frozen=True)
class Window:
    """CPU seconds an operation, and operations a second."""

    server: float
    client: float
    throughput: float


def window(ends: Both) -> Window:
    time.sleep(SETTLING_SECONDS)
    began, done = time.monotonic(), writes(ends.server)
    server, client = on_cpu(ends.server), on_cpu(ends.client)
    time.sleep(WINDOW_SECONDS)
    seconds, done = time.monotonic() - began, writes(ends.server) - done
    server, client = on_cpu(ends.server) - server, on_cpu(ends.client) - client
    return Window(server / done, client / done, done / seconds)


@dataclass
class Turns:
    """Windows with the hooks, for each the mean of those without just before and after it, and the
    operations from attaching to detaching, in all."""

    with_hooks: list[Window] = field(default_factory=list)
    without: list[Window] = field(default_factory=list)
    operations: int = 0

    def ratios(self, of: Callable[[Window], float]) -> list[float]:
        return [of(one) / of(other) for one, other in zip(self.with_hooks, self.without)]

    def added(self) -> float:
        """CPU seconds of both ends for an operation."""
        pairs = zip(self.with_hooks, self.without)
        return median(
            one.server + one.client - other.server - other.client for one, other in pairs
        )


def between(one: Window, other: Window) -> Window:
    return Window(
        mean((one.server, other.server)),
        mean((one.client, other.client)),
        mean((one.throughput, other.throughput)),
    )


def in_turns(ends: Both, programs: list[int], count: int) -> Turns:
    turns = Turns()
    before = window(ends)
    for done in range(count):
        with attached(programs):
            began = writes(ends.server)
            turns.with_hooks.append(window(ends))
            turns.operations += writes(ends.server) - began
        after = window(ends)
        turns.without.append(between(before, after))
        before = after
        if done % 50 == 0:
            print(f"window {done} of {count}", file=sys.stderr)
    return turns


def text(values: list[float]) -> str:
    """Median and 95% of resamplings."""
    medians = sorted(median(random.choices(values, k=len(values))) for _ in range(2000))
    return f"{median(values):.3f} ({medians[50]:.3f}..{medians[1949]:.3f})"


def release_links(pid: int) -> list[int]:
    """Its programs run no more, and stay in the kernel as long as what is returned is open."""
    links = {
        descriptor: int(fields["prog_id"])
        for descriptor, fields in bpf.descriptors(pid)
        if fields.get("link_type") in TRACEPOINT_LINKS
    }
    programs = [program_by_id(program) for program in links.values()]
    command: list[Argument] = ["gdb", "-p", pid, "-batch", "-ex", "set language c"]
    for descriptor in links:
        command += ["-ex", f"print ((int (*)(int)) __close)({descriptor})"]
    done = run(command)
    assert links and done.stdout.count(" = 0") == len(links), done.describe()
    return programs


@contextmanager
def agents_programs() -> Iterator[tuple[list[int], Optional[Agent]]]:
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(CONFIG)
        config.flush()
        with start_agent(["--config", config.name]) as agent:
            yield release_links(agent.process.pid), agent


@contextmanager
def empty_programs() -> Iterator[tuple[list[int], Optional[Agent]]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        objects, pins = Path(folder) / "hooks.o", Path(folder) / "bpf"
        include = f"-I/usr/include/{platform.machine()}-linux-gnu"
        source = BENCH / "hooks.bpf.c"
        run_or_fail(["clang", "-O2", "-g", "-target", "bpf", include, "-c", source, "-o", objects])
        pins.mkdir()
        run_or_fail(["mount", "-t", "bpf", "none", pins])
        stack.callback(run_or_fail, ["umount", pins])
        run_or_fail(["bpftool", "prog", "loadall", objects, pins / "hooks"])
        yield [pinned_program(path) for path in sorted((pins / "hooks").iterdir())], None


def target_cost(agent: Agent) -> float:
    """Seconds that the agent says its hooks have cost the host."""
    return metrics.total(metrics.scrape(agent.url), "tlsprof_agent_target_cost_seconds_total")


def measure(load: str, server: Server, empty: bool, count: int) -> str:
    """A row of the table."""
    (worker,) = children(server.pid)
    seconds = int(count * 2 * (WINDOW_SECONDS + SETTLING_SECONDS)) + 30
    with ExitStack() as stack:
        programs, agent = stack.enter_context(empty_programs() if empty else agents_programs())
        for program in programs:
            stack.callback(os.close, program)
        loading = Process(client(load, server, seconds), cpu=CLIENT_CPU)
        stack.enter_context(loading)
        began = writes(worker)
        wait_until(lambda: writes(worker) > began + 1000, "the load")
        before = target_cost(agent) if agent else 0.0
        turns = in_turns(Both(worker, loading.pid), programs, count)
        if agent:
            time.sleep(ESTIMATE_SECONDS)
        told = (target_cost(agent) - before) / turns.operations if agent else 0.0
    return (
        f"| {load} | {median(one.server for one in turns.without) * 1e6:.1f} us "
        f"| {text(turns.ratios(lambda one: one.server))} "
        f"| {text(turns.ratios(lambda one: one.throughput))} "
        f"| {turns.added() * 1e6:.2f} us | {f'{told * 1e6:.2f} us' if agent else '-'} |"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--load", choices=LOADS, action="append", help="all if none is given")
    parser.add_argument("--windows", type=int, default=250, help="with the hooks, for each load")
    parser.add_argument("--empty", action="store_true", help="programs that do nothing instead")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    with one_worker() as server:
        print("| load | CPU of nginx for an operation | with hooks | throughput | both ends | told |")
        print("| --- | --- | --- | --- | --- | --- |")
        for load in options.load or LOADS:
            print(measure(load, server, options.empty, options.windows), flush=True)


if __name__ == "__main__":
    main()
