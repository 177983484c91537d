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


CARGO = os.environ.get("CARGO", "cargo").split()


def output(*command: str) -> str:
    return subprocess.run([*CARGO, *command], check=True, stdout=subprocess.PIPE, text=True).stdout


def linked_packages() -> list[dict[str, Any]]:
    """Those that the program is made of on any machine, with what runs in the compiler for it."""
    names = set()
    for target in TARGETS:
        tree = output(
            "tree", "--locked", "--package=tlsprof", "--edges=normal", f"--target={target}",
            "--prefix=none", "--format={p}",
        )  # fmt: skip
        # "ring v0.17.14", "serde_derive v1.0.229 (proc-macro)"
        names |= {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    metadata = json.loads(output("metadata", "--format-version=1", "--locked"))
    own = set(metadata["workspace_members"])
    packages = [one for one in metadata["packages"] if one["id"] not in own]
    linked = [one for one in packages if (one["name"], f"v{one['version']}") in names]
    return sorted(linked, key=lambda one: (one["name"], one["version"]))


def texts(package: dict[str, Any]) -> list[str]:
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if LICENCE_FILE.match(path.name))
    return [path.read_text(errors="replace").strip() for path in files if path.is_file()]


def main() -> None:
    crates = linked_packages()
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
