#!/usr/bin/env python3
"""Fails if a file of Rust, C or Python has more than 400 lines, or a function more than 60.

Functions are found by their indentation: rustfmt and clang-format see to it.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[1]
FILE, FUNCTION = 400, 60

RUST = re.compile(r" *(?:pub(?:\([a-z ]+\))? )?(?:(?:const|async|unsafe|extern \"C\") )*fn (\w+)")
C = re.compile(r"\w.*?(\w+)\(")


def functions(text: str, head: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """Name and lines of each function: from its head to the brace of the same indentation."""
    begun = {}
    for number, line in enumerate(text.splitlines()):
        indent = line[: len(line) - len(line.lstrip())]
        if (found := head.match(line)) and not line.endswith((";", "}")):
            begun[indent] = (found[1], number)
        elif line.startswith(indent + "}") and indent in begun:
            name, start = begun.pop(indent)
            yield name, number - start + 1


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def too_long(file: Path) -> Iterator[str]:
    text = file.read_text()
    lines = text.count("\n")
    if lines > FILE:
        yield f"{file.relative_to(ROOT)} has {lines} lines"
    rust = file.suffix == ".rs"
    found = python_functions(text) if file.suffix == ".py" else functions(text, RUST if rust else C)
    for name, length in found:
        if length > FUNCTION:
            yield f"{file.relative_to(ROOT)}: {name} has {length} lines"


if __name__ == "__main__":
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.rs", "*.[ch]", "*.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    problems = [one for name in listed.stdout.splitlines() for one in too_long(ROOT / name)]
    print(*problems, sep="\n", end="\n" if problems else "")
    sys.exit(bool(problems))
