"""Modules that import each other are found; a facade is no circle."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".ci"))

from cycles import cycle

pytestmark = pytest.mark.harness


def crate(tmp_path, **modules):
    for name, code in modules.items():
        (tmp_path / f"{name}.rs").write_text(code)
    return tmp_path


def test_a_circle_is_found_through_nested_imports(tmp_path):
    source = crate(
        tmp_path, lib="mod a;\nmod b;", a="use super::{b::{self, One}};", b="use crate::a::Two;"
    )
    assert set(cycle(source)) == {"a", "b"}


def test_a_path_in_the_code_is_a_dependency(tmp_path):
    source = crate(tmp_path, lib="mod a;\nstruct One(a::Two);", a="use super::One;")
    assert set(cycle(source)) == {"crate", "a"}


def test_a_facade_is_no_circle(tmp_path):
    source = crate(
        tmp_path, lib="mod a;\nmod b;\npub use a::One;\nuse b::run;", a="", b="use super::One;"
    )
    assert cycle(source) == []


def test_tests_and_comments_are_left_out(tmp_path):
    source = crate(
        tmp_path,
        lib="mod a;\nmod b;",
        a="//! [`crate::b::One`]\n#[cfg(test)]\nmod tests {\n    use crate::b::One;\n}",
        b='use crate::a::Two;\nconst TEXT: &str = "crate::b::One";',
    )
    assert cycle(source) == []
