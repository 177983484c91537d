#!/usr/bin/env python3
"""Fails if modules of one crate import each other in a circle.

    .ci/cycles.py [CRATE...]

A module is a file. It depends on the module in which an item that it names is defined: a facade
that only re-exports the item does not count. Unit tests are left out.
"""

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

AGENT = Path(__file__).resolve().parents[1] / "agent"
CRATES = [str(file.parent.relative_to(AGENT)) for file in sorted(AGENT.rglob("Cargo.toml"))]

COMMENT = re.compile(r"//[^\n]*")
STRING = re.compile(r'"(?:\\.|[^"\\])*"', re.S)
TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*mod \w+ \{")
USE = re.compile(r"^\s*(pub(?:\([^)]*\))? )?use ([^;]+);", re.M)
PATH = re.compile(r"(?<![\w:])\w+(?:::\w+)+")


def modules(source: Path) -> dict[tuple[str, ...], str]:
    """The code of each module."""
    found = {}
    for file in source.rglob("*.rs"):
        path = file.relative_to(source).with_suffix("").parts
        name = path[:-1] if path[-1] in ("lib", "main", "mod") else path
        code = STRING.sub('""', COMMENT.sub("", file.read_text()))
        found[name] = TESTS.split(code)[0]
    return found


def paths(tree: str) -> list[str]:
    """`a::{b, c::d}` as `a::b` and `a::c::d`."""
    tree = re.sub(r"\s+as \w+|\s", "", tree)
    head, brace, rest = tree.partition("{")
    if not brace:
        return [tree.removesuffix("::self")]
    found, depth, part = [], 0, ""
    for letter in rest[:-1] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            found += [head + path for path in paths(part)] if part else []
            part = ""
        else:
            part += letter
    return [path.removesuffix("::self") for path in found]


def resolve(path: str, module: tuple, known: dict) -> tuple[tuple, str | None] | None:
    """The module of this crate that a path leads to, and the item in it."""
    parts, base = path.split("::"), module
    if parts[0] == "crate":
        parts, base = parts[1:], ()
    elif parts[0] not in ("self", "super") and module + (parts[0],) not in known:
        return None
    while parts and parts[0] in ("self", "super"):
        base = base[:-1] if parts.pop(0) == "super" else base
    while parts and base + (parts[0],) in known:
        base += (parts.pop(0),)
    return base, parts[0] if parts else None


def dependencies(known: dict[tuple, str]) -> dict[tuple, set[tuple]]:
    """Which modules each one depends on."""
    names, imported = {module: set() for module in known}, {}
    for module, code in known.items():
        for public, tree in USE.findall(code):
            for target in filter(None, (resolve(path, module, known) for path in paths(tree))):
                if target[1]:
                    imported[module, target[1]] = target
                # An item that is only re-exported stands in the code once.
                if not public or len(re.findall(rf"\b{target[1]}\b", code)) > 1:
                    names[module].add(target)
        for path in PATH.findall(USE.sub("", code)):
            names[module].add(resolve(path, module, known))
    graph = {}
    for module, targets in names.items():
        graph[module] = set()
        for target in filter(None, targets):
            seen = set()
            while target in imported and target not in seen:
                seen.add(target)
                target = imported[target]
            if target[1] and target[0] != module:
                graph[module].add(target[0])
    return graph


def cycle(source: Path) -> list[str]:
    """Modules that depend on each other in a circle; empty if there are none."""
    try:
        TopologicalSorter(dependencies(modules(source))).prepare()
    except CycleError as error:
        return ["::".join(module) or "crate" for module in reversed(error.args[1])]
    return []


if __name__ == "__main__":
    found = {crate: cycle(AGENT / crate / "src") for crate in sys.argv[1:] or CRATES}
    for crate, circle in found.items():
        if circle:
            print(f"agent/{crate}: modules import each other: {' -> '.join(circle)}")
    sys.exit(any(found.values()))
