"""What a run of tests came to: counts, times of parts, files and tests, and time budgets. Pure."""

import re
import tomllib
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable, Sequence

BUDGET_FACTOR = 3.0
"""A file exceeds its budget when it takes this many times as long, and the allowance more: growth, not noise."""

ALLOWANCE_SECONDS = 20.0
"""What a cold cache or a busy neighbour costs a file, however small it is. A file that takes less needs no budget."""

NOT_MEASURED = "not measured: this kernel hid"
"""So begins the reason of a skip that excuses a failure: tests/e2e/harness/hidden.py."""

MOST_NOT_MEASURED = 6
"""A hidden change concerns one connection, and so one server. In a scene that tests share, at most six of them count
the connections of one server (test_outlets.py). Where more fail, hidden changes do not explain all of them."""


@dataclass(frozen=True)
class Case:
    """One test of one part."""

    file: str
    name: str
    seconds: float
    outcome: str
    """passed, failed, skipped or not measured."""


@dataclass
class Part:
    """What one part came to."""

    name: str
    seconds: float
    status: int
    tests: list[Case] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        return sum(test.outcome == outcome for test in self.tests)

    @property
    def broke_off(self) -> bool:
        """Ended with an error that no test explains."""
        return self.status != 0 and self.count("failed") == 0

    @property
    def failed(self) -> int:
        return self.count("failed") + self.broke_off


def of_junit(path: Path, files: str = "") -> list[Case]:
    """The tests in a JUnit file of pytest (family xunit1, which names files); none if there is no
    file. `files` is put before the names of theirs."""
    if not path.is_file():
        return []
    cases = xml.parse(path).iter("testcase")
    return [
        Case(files + case.get("file", ""), case.get("name", ""), float(case.get("time", 0)), _outcome(case))
        for case in cases
    ]


def _outcome(case: xml.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skip = case.find("skipped")
    if skip is None:
        return "passed"
    return "not measured" if skip.get("message", "").startswith(NOT_MEASURED) else "skipped"


OUTCOMES = {"ok": "passed", "FAILED": "failed", "ignored": "skipped", "not ok": "failed"}

CARGO_SUITE = re.compile(r"^\s*(?:Running|Doc-tests) (\S+)")
CARGO_TEST = re.compile(r"^test (.+?) \.\.\. (ok|FAILED|ignored)\b")
NATIVE_TEST = re.compile(r"^(ok|not ok) (.+)$")


def of_cargo(lines: Iterable[str]) -> list[Case]:
    """The tests that `cargo test` prints; it tells no times."""
    found, suite = [], ""
    for line in lines:
        if match := CARGO_SUITE.match(line):
            suite = match[1]
        elif match := CARGO_TEST.match(line):
            found.append(Case(suite, match[1], 0.0, OUTCOMES[match[2]]))
    return found


def of_native(lines: Iterable[str]) -> list[Case]:
    """The tests that the native BPF tests print."""
    matches = (NATIVE_TEST.match(line) for line in lines)
    return [Case("bpf", match[2], 0.0, OUTCOMES[match[1]]) for match in matches if match]


def write_junit(path: Path, part: Part) -> None:
    """A JUnit file of a part whose tests write none."""
    suite = xml.Element("testsuite", name=part.name, time=f"{part.seconds:.3f}")
    for test in part.tests:
        case = xml.SubElement(suite, "testcase", classname=test.file, name=test.name)
        if test.outcome != "passed":
            xml.SubElement(case, "failure" if test.outcome == "failed" else "skipped")
    xml.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def seconds_by_file(parts: Iterable[Part]) -> dict[str, float]:
    """Time of each test file, longest first. A part whose tests tell no times counts as one file, under its name."""
    sums: dict[str, float] = {}
    for part in parts:
        timed = [test for test in part.tests if test.seconds]
        for test in timed:
            sums[test.file] = sums.get(test.file, 0.0) + test.seconds
        if part.tests and not timed:
            sums[part.name] = part.seconds
    return dict(sorted(sums.items(), key=lambda one: -one[1]))


def read_budgets(path: Path) -> dict[str, float]:
    """Seconds by test file."""
    return {name: float(seconds) for name, seconds in tomllib.loads(path.read_text()).items()}


def over_budget(seconds: dict[str, float], budgets: dict[str, float]) -> list[str]:
    """A sentence for each file that takes too long, or has no budget."""
    sentences = []
    for file, took in seconds.items():
        if file not in budgets:
            if took > ALLOWANCE_SECONDS:
                sentences.append(f"{file} took {took:.0f} s and has no time budget")
        elif took > BUDGET_FACTOR * budgets[file] + ALLOWANCE_SECONDS:
            sentences.append(f"{file} took {took:.0f} s; its time budget is {budgets[file]:g} s")
    return sentences


def unmeasured(parts: Iterable[Part]) -> list[str]:
    """A sentence if too many tests were not measured."""
    count = sum(part.count("not measured") for part in parts)
    if count <= MOST_NOT_MEASURED:
        return []
    return [f"{count} tests were not measured; hidden states excuse {MOST_NOT_MEASURED} at most"]


def summary(parts: Iterable[Part], exceeded: Sequence[str] = ()) -> str:
    """The last line of a run. Each limit that was `exceeded` is a failure."""
    parts = list(parts)
    passed, skipped, hidden = (
        sum(part.count(outcome) for part in parts) for outcome in ("passed", "skipped", "not measured")
    )
    line = f"{passed} passed, {sum(part.failed for part in parts) + len(exceeded)} failed"
    line += f" (limits exceeded: {len(exceeded)})" if exceeded else ""
    line += f", {skipped} skipped" if skipped else ""
    return line + (f", {hidden} not measured (the kernel hid states)" if hidden else "")


def times(parts: Iterable[Part], seconds: float, slowest: int = 20) -> str:
    """Time of the run and of each part, some of which ran beside each other, and the slowest test files and tests."""
    parts = list(parts)
    tests = sorted((test for part in parts for test in part.tests), key=lambda one: -one.seconds)
    rows = [("all", seconds, " ".join(part.name for part in parts))]
    rows += [("part", part.seconds, part.name) for part in parts]
    rows += [("file", took, file) for file, took in list(seconds_by_file(parts).items())[:slowest]]
    rows += [("test", one.seconds, f"{one.file}::{one.name}") for one in tests[:slowest] if one.seconds]
    return "\n".join(f"{kind:4}  {took:7.1f} s  {name}" for kind, took, name in rows)
