#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How the kernel divides CPU time into user and system for processes of different lengths.

Each process reads /dev/zero, which is kernel work. What a read costs is taken from one long
process. The least share of kernel time that is possible in short ones is that of their reads:
forking and ending them comes on top, most of it kernel work too.

    python3 tests/bench/accounting.py [--repeats N]
"""

import argparse
import os
import statistics

READS = 40_000
SIZE = 1 << 20
buffer = bytearray(SIZE)


def process(reads: int) -> tuple[float, float]:
    """User and system time of one process with so many reads."""
    pid = os.fork()
    if pid == 0:
        zeros = os.open("/dev/zero", os.O_RDONLY)
        for _ in range(reads):
            os.preadv(zeros, [buffer], 0)
        os._exit(0)
    _, _, usage = os.wait4(pid, 0)
    return usage.ru_utime, usage.ru_stime


def processes(number: int) -> tuple[float, float]:
    """User and system time of all reads, spread over so many processes."""
    times = [process(READS // number) for _ in range(number)]
    return sum(user for user, _ in times), sum(system for _, system in times)


def main() -> None:
    """Prints a line for each number of processes: medians over the repeats."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    runs: dict[int, list[tuple[float, float, float]]] = {}
    for _ in range(repeats):
        _, alone = processes(1)
        for number in (1, 100, 500, 2000):
            user, system = processes(number)
            total = user + system
            row = (1e3 * total / number, min(1.0, alone / total), system / total)
            runs.setdefault(number, []).append(row)
    print("processes  each lives  kernel time at least  kernel time by the kernel")
    for number, rows in runs.items():
        each, least, told = (statistics.median(column) for column in zip(*rows, strict=True))
        told_range = f"{min(row[2] for row in rows):.0%} to {max(row[2] for row in rows):.0%}"
        print(f"{number:9}  {each:7.2f} ms  {least:20.0%}  {told:6.0%} ({told_range})")


if __name__ == "__main__":
    main()
