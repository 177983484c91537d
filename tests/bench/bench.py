#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What profiling costs a server, attached and detached in turns under one load.

    tests/bench/bench.py [--load LOAD] [--attach WHAT] [--seconds N] [--empty] [--peer [PEER]]

A window of a tenth of a second without, one with, one without, and so on (turns.py): a percent can
be told that runs in pairs cannot. The server is on one CPU, its client on another. Ratios, with
against without, are medians and 95% of 2,000 resamplings. `both ends` is what is added to the CPU
time of server and client for an operation, `told` what the agent says of that; `agent` is its own.

The programs are those of a running agent, whose links this takes over (agents_hooks.py). WHAT is
`agent` (what the default agent leaves once it has settled under that load), `report` (everything, but key
derivation, which is probed 1 s in 20), `no-steps`, `sockets` (no probes in libraries either), `between` (what is
left between windows of socket calls), or parts of these, as in `states+calls`. `settled` says for how much of
the time the settled agent probes steps and libraries and sees socket calls. Where that is in windows, the agent is one
that nothing brings up from its lowest rung, and `agent` is `between`: what its windows cost is on both sides
of the comparison, and that part of what `sockets` costs is to be added.

--empty takes programs that do nothing instead, without an agent: no profiler with these hooks costs
less. --peer takes ssllatency.bt, or the funclatency of libbpf-tools on one function. Wants root, x86-64, python3-ptrace, bpftool, clang,
Linux 6.17 (probes of a link in /proc) and an idle machine.
"""

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Callable, ContextManager, Iterator, Optional

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH.parent / "e2e"))

from agents_hooks import PARTS, SAMPLES, linked_parts, take_hooks  # noqa: E402
from bpf_calls import attach_to_kernel, pinned_program  # noqa: E402
from harness import lowest_rung, metrics  # noqa: E402
from harness.processes import Process  # noqa: E402
from harness.profiler import Agent, start_agent  # noqa: E402
from harness.waiting import wait_until  # noqa: E402
from turns import Both, in_turns, on_cpu, text, text_of_share, writes  # noqa: E402
from workloads import WORKLOADS, run_or_fail  # noqa: E402

WINDOW_SECONDS = 0.1
ESTIMATE_SECONDS = 4.0
"""The agent reads what its programs count every 2 s. The second reading is of hooks that were attached all the time."""
TOLD_SECONDS = 12.0
SETTLING_SECONDS = 12.0
"""Of the governor."""
CONFIG = '[agent]\nbudget = 1.0\n[profile]\nkey_derivation_interval = "10h"\n'
KEY_DERIVATION_SECONDS = 1.5
"""Its first window is at the start."""
LIBRARY, STEPS, CALLS = "library", "steps", "calls"
ALL = {*PARTS.values(), LIBRARY, SAMPLES}
AGENT, BETWEEN = "agent", "between"
SETS = {
    "report": ALL,
    "no-steps": ALL - {STEPS},
    "sockets": ALL - {STEPS, LIBRARY},
    BETWEEN: {"states", "processes", "accepts"},
}
DUTIES = ("step_probes", "library_probes", "socket_calls")

SSLLATENCY = "/usr/sbin/ssllatency.bt"
FUNCLATENCY = ["stdbuf", "-oL", "/usr/sbin/funclatency"]
HANDSHAKE = "ssl:SSL_do_handshake"
PEER_WINDOW_SECONDS = 2.0
PEER_SECONDS = 60.0
"""To start and to stop it, at most."""

Attach = Callable[[], ContextManager]


@contextmanager
def configured(config: str) -> Iterator[Agent]:
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(config)
        file.flush()
        with start_agent(["--config", file.name]) as agent:
            yield agent


@contextmanager
def agents_hooks(parts: set[str]) -> Iterator[tuple[Attach, Optional[Agent]]]:
    with configured(CONFIG) as agent:
        time.sleep(KEY_DERIVATION_SECONDS)
        hooks = take_hooks(agent.process.pid)
        yield lambda: hooks.attached(parts), agent


@contextmanager
def between_windows() -> Iterator[tuple[Attach, Optional[Agent]]]:
    """The hooks of an agent on its lowest rung, under a load: connections know that their calls are not seen."""
    with configured(lowest_rung.CONFIG) as agent:
        wait_until(lambda: lowest_rung.is_lowest(agent) and not is_in_window(agent), "the lowest rung")
        hooks = take_hooks(agent.process.pid)
        yield lambda: hooks.attached(SETS[BETWEEN]), agent


def is_in_window(agent: Agent) -> bool:
    return CALLS in linked_parts(agent.process.pid)


@contextmanager
def empty_programs() -> Iterator[tuple[Attach, Optional[Agent]]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        objects, pins = Path(folder) / "hooks.o", Path(folder) / "bpf"
        include = f"-I/usr/include/{platform.machine()}-linux-gnu"
        source = BENCH / "hooks.bpf.c"
        run_or_fail(["clang", "-O2", "-g", "-target", "bpf", include, "-c", source, "-o", objects])
        pins.mkdir()
        run_or_fail(["mount", "-t", "bpf", "none", pins])
        stack.callback(run_or_fail, ["umount", pins])
        run_or_fail(["bpftool", "prog", "loadall", objects, pins / "hooks"])
        programs = [pinned_program(path) for path in sorted((pins / "hooks").iterdir())]

        @contextmanager
        def attached() -> Iterator[None]:
            with ExitStack() as links:
                for program in programs:
                    links.callback(os.close, attach_to_kernel(program))
                yield

        yield attached, None


@contextmanager
def ssllatency(_server: int) -> Iterator[None]:
    """bpftrace does not say when its probes are attached: its main loop comes after that."""
    with Process(["bpftrace", SSLLATENCY], stop_signal=signal.SIGINT) as process:
        process.wait_for_line("Tracing", PEER_SECONDS)
        waits_in = Path(f"/proc/{process.pid}/wchan")
        wait_until(lambda: "epoll_wait" in waits_in.read_text(), "its main loop", PEER_SECONDS)
        yield
        process.stop(PEER_SECONDS)


@contextmanager
def funclatency(server: int) -> Iterator[None]:
    """It says so when its two probes are attached."""
    with Process([*FUNCLATENCY, "-p", server, HANDSHAKE], stop_signal=signal.SIGINT) as process:
        process.wait_for_line("Tracing", PEER_SECONDS)
        yield
        process.stop(PEER_SECONDS)


PEERS: dict[str, Callable[[int], ContextManager]] = {"ssllatency": ssllatency, "funclatency": funclatency}


@contextmanager
def peer(name: str, server: int) -> Iterator[tuple[Attach, Optional[Agent]]]:
    yield lambda: PEERS[name](server), None


def what_it_says(agent: Agent, attach: Attach, server: int) -> tuple[float, float]:
    """CPU seconds that an operation has cost the host by what the agent says, and the agent itself, with
    the hooks attached all the time."""

    def said() -> float:
        return metrics.total(metrics.scrape(agent.url), "tlsprof_agent_target_cost_seconds_total")

    def next_estimate() -> tuple[float, int]:
        last = said()
        wait_until(lambda: said() > last, "an estimate")
        return said(), writes(server)

    def used() -> tuple[float, int]:
        return on_cpu(agent.process.pid), writes(server)

    was_lowest = lowest_rung.is_lowest(agent)
    if was_lowest:
        wait_until(lambda: is_in_window(agent), "a window")
        wait_until(lambda: not is_in_window(agent), "its end")
    with attach():
        time.sleep(ESTIMATE_SECONDS)
        before, used_before = next_estimate(), used()
        time.sleep(TOLD_SECONDS)
        # To be asked is work for the agent.
        used_after, after = used(), next_estimate()
    assert lowest_rung.is_lowest(agent) == was_lowest, "the agent changed its rung meanwhile"
    return each(before, after), each(used_before, used_after)


def each(before: tuple[float, int], after: tuple[float, int]) -> float:
    """CPU seconds of an operation."""
    return (after[0] - before[0]) / (after[1] - before[1])


def measure(load: str, what: str, options: argparse.Namespace) -> str:
    """A row of the table."""
    duties = settled(load) if what == AGENT else []
    cells = [load, what, " ".join(f"{duty:.3g}" for duty in duties) or "-"]
    with ExitStack() as stack:
        server, client = stack.enter_context(WORKLOADS[load].running())
        attach, agent = stack.enter_context(source(what, duties, server, options))
        began = writes(server)
        wait_until(lambda: writes(server) > began + 1000, "the load")
        length = PEER_WINDOW_SECONDS if options.peer else WINDOW_SECONDS
        turns = in_turns(Both(server, client), attach, length, options.seconds)
        told, own = what_it_says(agent, attach, server) if agent else (0.0, 0.0)
    added = turns.added()
    cells += [f"{turns.server() * 1e6:.1f} us", text(turns.ratios(lambda one: one.server))]
    cells += [text(turns.ratios(lambda one: one.throughput)), f"{median(added) * 1e6:.2f} us"]
    if agent:
        cells += [f"{told * 1e6:.2f} us", text_of_share(told, added), f"{own * 1e6:.2f} us"]
    else:
        cells += ["-"] * 3
    return f"| {' | '.join(cells)} |"


def source(what: str, duties: list[float], server: int, options: argparse.Namespace) -> ContextManager:
    if options.empty:
        return empty_programs()
    if options.peer:
        return peer(options.peer, server)
    parts = left_by(*duties) if duties else parts_of(what)
    return between_windows() if parts == SETS[BETWEEN] else agents_hooks(parts)


def parts_of(what: str) -> set[str]:
    parts = SETS.get(what) or set(what.split("+"))
    if not parts <= ALL:
        sys.exit(f"--attach {what}: none of {', '.join([AGENT, *SETS, *sorted(ALL)])}")
    return parts


def left_by(steps: float, library: float, calls: float) -> set[str]:
    """What is attached most of the time, by how much of it each kind is."""
    if calls < 1:
        return SETS[BETWEEN]
    if library < 1:
        return SETS["sockets"]
    return SETS["no-steps"] if steps < 0.5 else SETS["report"]


def settled(load: str) -> list[float]:
    """Where the default budget leads: how much of the time there is each of DUTIES."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config, WORKLOADS[load].running():
        with start_agent(["--config", config.name]) as agent:
            time.sleep(SETTLING_SECONDS)
            found = metrics.scrape(agent.url)
            return [metrics.total(found, f"tlsprof_agent_{name}_duty_ratio") for name in DUTIES]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--load", choices=WORKLOADS, action="append", help="all if none is given")
    parser.add_argument("--attach", metavar="WHAT", action="append", help="agent and report if none is given")
    parser.add_argument("--seconds", type=float, default=42.0, help="for each row")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--empty", action="store_true", help="programs that do nothing instead")
    instead.add_argument("--peer", choices=PEERS, nargs="?", const="ssllatency", help="that instead")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    # So that what was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    instead = "empty" if options.empty else options.peer
    sets = [instead] if instead else options.attach or [AGENT, "report"]
    print("| load | attached | settled | CPU for an operation | CPU, with | throughput | both ends | told | told, of measured | agent |")
    print("| --- |" + " --- |" * 9)
    for load in options.load or WORKLOADS:
        for what in sets:
            print(measure(load, what, options), flush=True)


if __name__ == "__main__":
    main()
