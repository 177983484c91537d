#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the agent itself takes while an nginx gets so many handshakes and requests a second.

Handshakes are full ones with ECDSA keys, each on a new connection; requests come on open connections. The
rows are the default agent, once it has settled, and one without a budget, for which all is exact. Rates are
what the clients reached: run it on an idle machine, with TLSPROF naming a release build.
"""

import argparse
import ssl
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from harness import metrics  # noqa: E402
from harness.load import Load  # noqa: E402
from harness.processes import Process  # noqa: E402
from harness.profiler import Agent, start_agent  # noqa: E402
from turns import on_cpu  # noqa: E402
from workloads import HOURS_SECONDS, MANY, nginx, resident_bytes  # noqa: E402

BUDGETS = {"default": "", "no budget": "[agent]\nbudget = 1.0\n"}
SETTLING_SECONDS = 15.0
CONNECTIONS = 30
STATUS = "location /status { stub_status; }"
"""Its third line ends with the requests so far."""


@contextmanager
def load(handshakes: int, requests: int) -> Iterator[str]:
    """The server's address."""
    with nginx("ecdsa", workers=2, extra=STATUS, cpu=None) as server:
        url = f"https://127.0.0.1:{server.port}/"
        each = requests // CONNECTIONS
        steady = ["h2load", "--h1", "-c", CONNECTIONS, "-D", HOURS_SECONDS, f"--rps={each}", url]
        opened = Load(tls="1.3", full=MANY, rate=handshakes).command(server.port)
        with Process(steady), Process(opened):
            yield url


def measure(budget: str, options: argparse.Namespace) -> str:
    """A row of the table."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as config:
        config.write(BUDGETS[budget])
        config.flush()
        with load(options.handshakes, options.requests) as url, start_agent(["--config", config.name]) as agent:
            time.sleep(SETTLING_SECONDS)
            before = now(agent, url)
            time.sleep(options.seconds)
            done = now(agent, url).since(before)
            memory = resident_bytes(agent.process.pid)
    cells = [budget, f"{done.handshakes / done.at:.0f}", f"{1 - done.estimated / done.handshakes:.1%}"]
    cells += [f"{done.requests / done.at:.0f}", f"{done.cpu / done.at:.2%}", f"{done.cpu / done.handshakes * 1e6:.1f} us"]
    return f"| {' | '.join(cells)} | {memory / 2**20:.1f} MiB |"


@dataclass(frozen=True)
class Done:
    """So far, or since then: seconds, CPU seconds of the agent, and counts."""

    at: float
    cpu: float
    handshakes: float
    estimated: float
    requests: float

    def since(self, before: "Done") -> "Done":
        return Done(*(now - then for now, then in zip(astuple(self), astuple(before))))


def now(agent: Agent, url: str) -> Done:
    found = metrics.scrape(agent.url)
    total = lambda name: metrics.total(found, name, role="server")
    handshakes, estimated = total("tlsprof_handshakes_total"), total("tlsprof_handshakes_estimated_total")
    return Done(time.monotonic(), on_cpu(agent.process.pid), handshakes, estimated, requests_of(url))


def requests_of(url: str) -> float:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(f"{url}status", context=context) as status:
        return float(status.read().splitlines()[2].split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--handshakes", type=int, default=1_200, help="a second")
    parser.add_argument("--requests", type=int, default=30_000, help="a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each row")
    options = parser.parse_args()
    print("| agent | handshakes/s | of them seen | requests/s | of a core | for each handshake | memory |")
    print("| --- |" + " --- |" * 6)
    for budget in BUDGETS:
        print(measure(budget, options), flush=True)


if __name__ == "__main__":
    main()
