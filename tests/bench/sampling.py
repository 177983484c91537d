#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What sampling the CPUs costs: a sample, the program that is sampled, and the agent.

A sample's cost is the kernel's own count of the time in the BPF program. What it costs the program
that it hits, interrupt and all, is measured by work of a known amount at ten times the usual
frequency, in pairs with no samples; the least time of each run counts, since other programs can
only add to it. The agent's cost is measured beside 500 server processes, idle and busy.
"""

import argparse
import re
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Callable, Iterator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from harness import bpf  # noqa: E402
from harness.certificates import make_certificate  # noqa: E402
from harness.processes import Process, children, run  # noqa: E402
from harness.profiler import Profiling, start_agent  # noqa: E402
from harness.servers import Server, on_free_port  # noqa: E402
from harness.waiting import wait_until  # noqa: E402
from workloads import cpu_seconds, resident_bytes  # noqa: E402

USUAL = 97
AMPLIFIED = 997
PIECES = 12
BEGINNING_SECONDS = 8.0

WORKER = """
import hashlib, sys, time
data = bytes(1 << 20)
for _ in sys.stdin:
    began = time.thread_time()
    for _ in range(300):
        hashlib.sha256(data).digest()
    print("took", time.thread_time() - began, flush=True)
"""

CONFIG = """
daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 128; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl backlog=4096;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        location / {{ return 200 "ok"; }}
    }}
}}
"""


def least_piece(folder: Path, worker: Process, frequency: int) -> float:
    """CPU seconds of a piece of work, the least of some."""
    config = folder / "tlsprof.toml"
    config.write_text(f"[profile]\nsample_frequency = {frequency}\n")
    with Profiling(folder, "--pid", worker.pid, "--config", config):
        times = []
        for _ in range(PIECES):
            worker.say("work")
            times.append(float(worker.wait_for_line("took").split()[1]))
    return min(times)


def print_cost_for_the_sampled(folder: Path, rounds: int) -> None:
    with Process([sys.executable, "-c", WORKER]) as worker:
        ratios = []
        for done in range(rounds):
            print(f"work, {done + 1} of {rounds}", file=sys.stderr)
            pair = [least_piece(folder, worker, frequency) for frequency in (0, AMPLIFIED)]
            ratios.append((pair[1] / pair[0] - 1.0) * USUAL / AMPLIFIED)
    text = f"{median(ratios):.3%} ({min(ratios):.3%}..{max(ratios):.3%})"
    print(f"| CPU time of a program, sampled {USUAL} times a second | {text} |")


@contextmanager
def nginx(folder: Path, workers: int) -> Iterator[Server]:
    certificate = make_certificate(folder, "ecdsa")

    def start(port: int) -> Process:
        config = folder / "nginx.conf"
        values = {"folder": folder, "port": port, "workers": workers}
        values |= {"cert": certificate.cert, "key": certificate.key}
        config.write_text(CONFIG.format(**values))
        return Process(["nginx", "-e", "stderr", "-c", config])

    with on_free_port(start) as server:
        wait_until(lambda: len(children(server.pid)) == workers, "its workers", 60.0)
        yield server


def load(server: Server, seconds: int, options: list[str]) -> float:
    """Requests a second that ab makes."""
    url = f"https://127.0.0.1:{server.port}/"
    ab = run(["ab", "-q", *options, "-c", 100, "-t", seconds, "-n", 10_000_000, url], timeout=seconds + 60.0)
    return float(re.search(r"^Requests per second:\s+([\d.]+)", ab.stdout, re.MULTILINE)[1])


def print_cost_of_the_agent(name: str, followed: list[str], seconds: int, work: Callable[[], str]) -> None:
    with start_agent(followed) as agent:
        # It looks at all images and ports of the host first.
        time.sleep(BEGINNING_SECONDS)
        pid = agent.process.pid
        before, began = cpu_seconds(pid), time.monotonic()
        done = work()
        share = (cpu_seconds(pid) - before) / (time.monotonic() - began)
        memory = resident_bytes(pid) / 2**20
    print(f"| the agent, {name}{done} | {share:.2%} of one core, {memory:.1f} MiB |")


def print_costs_of_the_agent(server: Server, seconds: int) -> None:
    def idle() -> str:
        time.sleep(seconds)
        return ""

    def keep_alive() -> str:
        return f", {load(server, seconds, ['-k']):.0f}/s"

    def handshakes() -> str:
        return f", {load(server, seconds, []):.0f}/s"

    print_cost_of_the_agent("nothing to do", [], seconds, idle)
    print_cost_of_the_agent("keep-alive", [], seconds, keep_alive)
    print_cost_of_the_agent("full handshakes of the server", ["--service", "nginx"], seconds, handshakes)
    print_cost_of_the_agent("full handshakes, the client's too", [], seconds, handshakes)


def print_cost_of_a_sample(server: Server, seconds: int) -> None:
    of_samples = lambda: bpf.runs(lambda one: one["type"] == "perf_event")
    with start_agent(), bpf.statistics():
        runs, spent = of_samples()
        load(server, seconds, [])
        runs_after, spent_after = of_samples()
    each = 1e9 * (spent_after - spent) / max(1, runs_after - runs)
    print(f"| a sample, in the BPF program | {each:.0f} ns, {each * USUAL / 1e9:.3%} of a CPU |")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=20)
    return parser.parse_args()


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        print("| what | cost |\n| --- | --- |")
        with nginx(folder, options.processes) as server:
            print_costs_of_the_agent(server, options.seconds)
            print_cost_of_a_sample(server, options.seconds)
        print_cost_for_the_sampled(folder, options.rounds)


if __name__ == "__main__":
    main()
