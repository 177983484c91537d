"""What the runner makes of the tests' output: counts, times and time budgets."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".ci"))

import results
from harness import hidden
from results import Part, Case

pytestmark = pytest.mark.harness

CARGO = """\
     Running unittests src/lib.rs (target/ci/deps/tlsprof-1)
test ledger::tests::sums ... ok
test ledger::tests::is_left_out ... ignored, no kernel
test units::tests::rounds ... FAILED
test result: FAILED. 1 passed; 1 failed; 1 ignored
"""


def outcomes(tests):
    return [(test.name, test.outcome) for test in tests]


def test_cargo_tests_are_counted_by_name():
    assert outcomes(results.of_cargo(CARGO.splitlines())) == [
        ("ledger::tests::sums", "passed"),
        ("ledger::tests::is_left_out", "skipped"),
        ("units::tests::rounds", "failed"),
    ]


def test_native_tests_are_counted_by_name():
    lines = ["ok turns are counted", "not ok bounds hold", "1 passed, 1 failed"]
    assert outcomes(results.of_native(lines)) == [
        ("turns are counted", "passed"),
        ("bounds hold", "failed"),
    ]


def test_a_junit_file_is_read_as_it_is_written(tmp_path):
    part = Part("unit", 1.5, 1, results.of_cargo(CARGO.splitlines()))
    results.write_junit(tmp_path / "unit.xml", part)
    assert outcomes(results.of_junit(tmp_path / "unit.xml")) == outcomes(part.tests)


def test_a_part_without_a_result_file_has_broken_off(tmp_path):
    part = Part("e2e", 3.0, 2, results.of_junit(tmp_path / "missing.xml"))
    assert part.broke_off and part.failed == 1
    assert results.summary([part]) == "0 passed, 1 failed"


def test_files_that_two_parts_run_are_told_apart(tmp_path):
    junit = tmp_path / "aarch64.xml"
    junit.write_text('<testsuite><testcase file="kernels/test_a.py" name="x" time="2.0"/></testsuite>')
    assert results.of_junit(junit, "aarch64/") == [Case("aarch64/kernels/test_a.py", "x", 2.0, "passed")]


def test_skipped_tests_are_part_of_the_sum():
    tests = [Case("a", "x", 1.0, "passed"), Case("a", "y", 1.0, "skipped")]
    assert results.summary([Part("e2e", 2.0, 0, tests)]) == "1 passed, 0 failed, 1 skipped"


def skipped(reason: str) -> str:
    return f'<testcase file="a.py" name="x" time="1.0"><skipped message="{reason}"/></testcase>'


def test_what_the_kernel_hid_is_counted_apart_and_bounded(tmp_path):
    few = skipped("no Grafana") + results.MOST_NOT_MEASURED * skipped(f"{hidden.NOT_MEASURED} 2 changes")
    ends = []
    for one in (few, few + skipped(f"{hidden.NOT_MEASURED} 2 changes")):
        junit = tmp_path / "e2e.xml"
        junit.write_text(f"<testsuite>{one}</testsuite>")
        part = Part("e2e", 2.0, 0, results.of_junit(junit))
        ends.append(results.summary([part], results.unmeasured([part])))
    assert ends == [
        "0 passed, 0 failed, 1 skipped, 6 not measured (the kernel hid states)",
        "0 passed, 1 failed (limits exceeded: 1), 1 skipped, 7 not measured (the kernel hid states)",
    ]


@pytest.mark.parametrize(
    "took, budget, over",
    [(22.0, 1.0, False), (49.0, 10.0, False), (51.0, 10.0, True), (25.0, None, True), (19.0, None, False)],
)
def test_growth_exceeds_a_time_budget_and_noise_does_not(took, budget, over):
    budgets = {} if budget is None else {"e2e/test_a.py": budget}
    assert bool(results.over_budget({"e2e/test_a.py": took}, budgets)) == over


def test_a_part_whose_tests_tell_no_times_has_a_time_budget():
    part = Part("unit", 30.0, 0, [Case("a", "x", 0.0, "passed"), Case("b", "y", 0.0, "passed")])
    assert results.seconds_by_file([part]) == {"unit": 30.0}


def test_times_are_of_files_and_tests_longest_first():
    tests = [Case("a.py", "x", 1.0, "passed"), Case("b.py", "y", 3.0, "passed"), Case("a.py", "z", 2.5, "passed")]
    part = Part("e2e", 6.5, 0, tests)
    assert list(results.seconds_by_file([part]).items()) == [("a.py", 3.5), ("b.py", 3.0)]
    lines = results.times([part], seconds=7.0).splitlines()
    assert lines[:2] == ["all       7.0 s  e2e", "part      6.5 s  e2e"]
    first = [line for line in lines if line.startswith("test")][0]
    assert first.endswith("b.py::y")
