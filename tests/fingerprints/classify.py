#!/usr/bin/python3
"""Runs a command and says what the fingerprints make of the code that it spends its time in.

    classify.py [--by-place] -- openssl speed -seconds 2 -evp aes-256-gcm
"""
import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from samples import Place, record

CLASSIFIER = Path(
    os.environ.get("CLASSIFIER", Path(__file__).parents[2] / "target/debug/examples/fingerprint")
)


def kinds(places: Counter[Place]) -> dict[Place, str]:
    """What the code at each place is."""
    order = list(places)
    lines = "".join(f"{before.hex()} {code.hex()}\n" for before, code in map(Place.code, order))
    output = subprocess.run(
        [CLASSIFIER], input=lines, check=True, capture_output=True, text=True
    ).stdout
    return dict(zip(order, output.splitlines(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by-place", type=int, default=0, help="show this many of each kind")
    parser.add_argument("--save", type=Path, help="write weight, kind, file, offset and code")
    parser.add_argument("--module", default="", help="only files whose path contains this")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    places = record(arguments.command)
    places = Counter({p: n for p, n in places.items() if arguments.module in p.path})
    found = kinds(places)
    total = sum(places.values()) or 1
    shares = Counter()
    modules = Counter()
    for place, count in places.items():
        shares[found[place]] += count
        modules[found[place], Path(place.path).name] += count
    print(f"{total} samples at {len(places)} places", file=sys.stderr)
    print("  ".join(f"{kind} {count / total:.1%}" for kind, count in shares.most_common()))
    if arguments.by_place:
        for (kind, module), count in modules.most_common():
            print(f"  {kind:10} {count / total:6.1%} {module}")
        for kind in shares:
            mine = [(count, place) for place, count in places.items() if found[place] == kind]
            mine.sort(key=lambda item: -item[0])
            for count, place in mine[: arguments.by_place]:
                print(f"  {kind:10} {count:5} {Path(place.path).name} {place.offset:#x}")
    if arguments.save:
        with arguments.save.open("w") as out:
            for place, count in places.most_common():
                before, code = place.code()
                out.write(f"{count} {found[place]} {place.path} {place.offset:#x} ")
                out.write(f"{before.hex()} {code.hex()}\n")


if __name__ == "__main__":
    main()
