#!/usr/bin/env python3
"""Prints the licences of all crates that are in the program, each text once.

Their authors ask that their notices go with copies of their work. Read from what cargo fetched;
a crate without a licence file is listed by what its manifest states.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|unlicense)", re.IGNORECASE)


def metadata() -> dict[str, Any]:
    command = [*os.environ.get("CARGO", "cargo").split(), "metadata", "--format-version", "1"]
    command.append("--locked")
    command += [word for target in TARGETS for word in ("--filter-platform", target)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def linked_packages(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that the program is made of: not what builds or tests it."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    packages = {package["id"]: package for package in data["packages"]}
    waiting, seen = list(data["workspace_members"]), set()
    while waiting:
        if (one := waiting.pop()) in seen:
            continue
        seen.add(one)
        for dependency in nodes[one]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    foreign = seen - set(data["workspace_members"])
    return sorted((packages[one] for one in foreign), key=lambda p: (p["name"], p["version"]))


def texts(package: dict[str, Any]) -> list[str]:
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if LICENCE_FILE.match(path.name))
    return [path.read_text(errors="replace").strip() for path in files if path.is_file()]


def main() -> None:
    crates = linked_packages(metadata())
    if not crates:
        sys.exit("notices: no crate found")
    of_text: dict[str, list[str]] = defaultdict(list)
    print("tlsprof contains these crates, unchanged, under the licences that follow. Their source")
    print("is at https://crates.io/crates/NAME/VERSION.\n")
    for crate in crates:
        name = f"{crate['name']} {crate['version']}"
        print(f"  {name}: {crate['license'] or 'see below'}")
        for text in texts(crate):
            of_text[text].append(name)
    for text, names in of_text.items():
        print(f"\n{'-' * 78}\n{', '.join(names)}\n\n{text}")


if __name__ == "__main__":
    main()
