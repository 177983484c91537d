#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How long `tlsprof report --port PORT` takes until it says that it profiles, beside one nginx.

It is time by the clock: run it on an idle machine, with TLSPROF naming a release build.
"""

import argparse
import sys
import time
from pathlib import Path
from signal import SIGINT
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))

from harness.paths import TLSPROF  # noqa: E402
from harness.processes import Process  # noqa: E402
from workloads import nginx  # noqa: E402


def start_milliseconds(port: int) -> float:
    began = time.monotonic()
    with Process([TLSPROF, "report", "--port", port, "--duration", "1h"], stop_signal=SIGINT) as report:
        report.wait_for_line("profiling ")
        return (time.monotonic() - began) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=11)
    options = parser.parse_args()
    with nginx() as server:
        took = [start_milliseconds(server.port) for _ in range(options.starts)]
    print(f"{options.starts} starts: median {median(took):.0f} ms, {min(took):.0f} to {max(took):.0f} ms")


if __name__ == "__main__":
    main()
