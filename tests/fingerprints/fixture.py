#!/usr/bin/python3
"""Draws some samples of a program for the unit tests of the fingerprints.

    fixture.py --of Aes --name "OpenSSL 3.0.19, AES-256-GCM" -- openssl speed -evp aes-256-gcm

`--of KIND`: the program does little else, and samples are drawn where most of them are, so
that its start is left out. Without, the program is an ordinary one, and all are drawn from.
Prints a section of agent/evidence/src/fingerprint/testdata/: a heading, and lines of the code
before the sampled instruction and from it on, in hexadecimal. README.md has the commands.
"""

import argparse
from collections import Counter

from samples import Place, record

BLOCK = 1024  # bytes
HOT = 0.04  # of all samples in one block


def hot(places: Counter[Place]) -> Counter[Place]:
    """The places in those blocks of code where a program spends its time."""
    blocks: Counter[tuple[str, int]] = Counter()
    for place, count in places.items():
        blocks[place.path, place.offset // BLOCK] += count
    least = HOT * places.total()
    return Counter(
        {p: n for p, n in places.items() if blocks[p.path, p.offset // BLOCK] >= least}
    )


def draw(places: Counter[Place], number: int) -> list[Place]:
    """Every n-th sample in the order of addresses, from the middle of the first n on."""
    order = sorted(places.elements(), key=lambda place: (place.path, place.offset))
    number = min(number, len(order))
    return [order[len(order) * (2 * index + 1) // (2 * number)] for index in range(number)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", default="Other")
    parser.add_argument("--name", required=True)
    parser.add_argument("--number", type=int, default=10)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    places = record(arguments.command)
    if arguments.of != "Other":
        places = hot(places)
    print(f"# {arguments.of}: {arguments.name}")
    for place in draw(places, arguments.number):
        before, code = place.code()
        print(before.hex(), code.hex())


if __name__ == "__main__":
    main()
