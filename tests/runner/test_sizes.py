"""Functions and files that are too long are found, at the limit they are not."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".ci"))

import sizes

pytestmark = pytest.mark.harness

HEADS = {
    "a.rs": "    pub(crate) const fn long(&self) -> u32 {",
    "a.c": "static int long(struct a *one,\n\t\tint two)\n{",
    "a.py": "def long():",
}


def function(name: str, lines: int) -> str:
    """A function of so many lines, in the language of the file."""
    indent = "    " if name == "a.rs" else ""
    head = HEADS[name]
    end = f"{indent}    return" if name == "a.py" else f"{indent}}}"
    body = [f"{indent}    work"] * (lines - head.count("\n") - 2)
    return "\n".join([head, *body, end]) + "\n"


@pytest.mark.parametrize("name", HEADS)
def test_a_long_function_is_found(tmp_path, monkeypatch, name):
    monkeypatch.setattr(sizes, "ROOT", tmp_path)
    file = tmp_path / name
    file.write_text(function(name, sizes.FUNCTION))
    assert list(sizes.too_long(file)) == []
    file.write_text(function(name, sizes.FUNCTION + 1) * 2)
    assert list(sizes.too_long(file)) == [f"{name}: long has 61 lines"] * 2


def test_a_long_file_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "ROOT", tmp_path)
    file = tmp_path / "a.h"
    file.write_text("int one;\n" * sizes.FILE)
    assert list(sizes.too_long(file)) == []
    file.write_text("int one;\n" * (sizes.FILE + 1))
    assert list(sizes.too_long(file)) == ["a.h has 401 lines"]
