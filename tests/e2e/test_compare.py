"""Comparisons of reports of a real nginx: what changed is told, what did not is not."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.certificates import Certificate
from harness.load import Load, run_load
from harness.paths import TLSPROF
from harness.processes import Argument, Process, run
from harness.profiler import Profiling
from harness.web_servers import nginx

FAILURE = 1
USAGE = 2

REPEATS = 5

LOAD = Load(full=75, resume=75, tls="1.3", groups="X25519:P-384")
"""Clients take the group that the server wants."""

SLOW = "ssl_ecdh_curve secp384r1;"
FAST = "ssl_ecdh_curve X25519;"


def tlsprof(*arguments: Argument) -> Process:
    done = run([TLSPROF, *arguments])
    assert "panicked" not in done.stderr, done.describe()
    return done


def profile(folder: Path, certificate: Certificate, extra: str, name: str) -> Path:
    """A report of a fresh nginx under the load."""
    with nginx(folder, certificate, workers=1, extra=extra) as server:
        with Profiling(folder, "--port", server.port) as profiling:
            run_load(LOAD, server.port)
            profiling.finish()
    report = folder / f"{name}.json"
    (folder / "report.json").rename(report)
    return report


@dataclass(frozen=True)
class Reports:
    """Repeats of two configurations."""

    slow: list[Path]
    fast: list[Path]

    def labelled(self) -> list[str]:
        labels = [f"slow={report}" for report in self.slow]
        return labels + [f"fast={report}" for report in self.fast]


@pytest.fixture(scope="module")
def reports(rsa, tmp_path_factory) -> Reports:
    """The two in turn, so that what else the host does meets both."""
    folder = tmp_path_factory.mktemp("compare")
    folder.chmod(0o755)
    runs = Reports([], [])
    for repeat in range(REPEATS):
        runs.slow.append(profile(folder, rsa, SLOW, f"slow{repeat}"))
        runs.fast.append(profile(folder, rsa, FAST, f"fast{repeat}"))
    return runs


def compared(*arguments: Argument) -> dict[str, Any]:
    done = tlsprof("compare", "--format", "json", *arguments)
    assert done.child.returncode == 0, done.describe()
    return json.loads(done.stdout)


def service(comparison: dict[str, Any]) -> dict[str, Any]:
    (only,) = comparison["services"]
    return only


def change(comparison: dict[str, Any], figure: str, at: int = 0) -> dict[str, Any]:
    found = [one for one in service(comparison)["figures"] if one["figure"] == figure]
    assert len(found) == 1, [one["figure"] for one in service(comparison)["figures"]]
    return found[0]["changes"][at]


def verdicts(comparison: dict[str, Any]) -> dict[str, str]:
    return {one["figure"]: one["changes"][0]["verdict"] for one in service(comparison)["figures"]}


def test_a_faster_group_is_better(reports):
    comparison = compared(*reports.labelled())
    for figure in ("cpu_per_full_handshake", "cpu_per_request"):
        one = change(comparison, figure)
        assert one["verdict"] == "better", one
        assert one["low"] <= one["change"] <= one["high"] < 0
    # What was counted did not change: each connection is a handshake and a request.
    for figure in ("handshakes_per_request", "resumption_share", "turns_per_connection"):
        assert change(comparison, figure)["verdict"] == "no_difference"
    (mix,) = [mix for mix in service(comparison)["mixes"] if mix["of"] == "group"]
    shares = {part["name"]: part["shares"] for part in mix["parts"]}
    assert shares == {"secp384r1": [1.0, 0.0], "x25519": [0.0, 1.0]}
    findings = {one["id"]: one["runs"] for one in service(comparison)["findings"]}
    assert findings["slow-key-exchange"] == [REPEATS, 0]


def test_the_way_back_is_worse_and_fails_if_that_is_asked_for(reports):
    back = reports.labelled()[REPEATS:] + reports.labelled()[:REPEATS]
    assert change(compared(*back), "cpu_per_full_handshake")["verdict"] == "worse"
    assert tlsprof("compare", *back).child.returncode == 0
    assert tlsprof("compare", "--fail-if-worse", *back).child.returncode == FAILURE


def test_a_report_has_not_changed_from_itself(reports, tmp_path):
    copy = tmp_path / "copy.json"
    copy.write_text(reports.slow[0].read_text())
    for other in (copy, reports.slow[0]):
        done = tlsprof("compare", "--fail-if-worse", "--format", "json", reports.slow[0], other)
        assert done.child.returncode == 0, done.describe()
        assert ("given twice" in done.stderr) == (other != copy)
        real = {"better", "worse", "higher", "lower"}
        assert not real & set(verdicts(json.loads(done.stdout)).values()), done.describe()


def test_a_difference_is_noise_if_runs_are_said_to_differ_as_much(reports):
    pair = (reports.slow[0], reports.fast[0])
    assert change(compared("--noise", "100%", *pair), "cpu_per_full_handshake")["verdict"] in (
        "no_difference",
        "not_enough_data",
    )


def test_more_reports_make_a_matrix(reports):
    labels = ["slow", "fast", "again", "third"]
    files = [reports.slow[0], *reports.fast]
    comparison = compared(*(f"{label}={file}" for label, file in zip(labels, files)))
    ranking = service(comparison)["ranking"]
    assert ranking["figure"] == "cpu_per_request"
    assert ranking["order"][-1] == "slow"
    assert not any("slow" in alike for alike in ranking["alike"])
    assert [change(comparison, "cpu_per_request", at)["label"] for at in range(3)] == labels[1:]
    text = tlsprof("compare", *(f"{label}={file}" for label, file in zip(labels, files))).stdout
    assert "against first" in text and "slow (first)" in text, text


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_a_comparison_goes_to_a_file(form, reports, tmp_path):
    output = tmp_path / "comparison"
    done = tlsprof("compare", "--format", form, "--output", output, reports.slow[0], reports.fast[0])
    assert done.child.returncode == 0 and not done.stdout, done.describe()
    assert "slow0" in output.read_text()


def test_services_of_other_names_are_paired(reports, tmp_path):
    name = service(compared(reports.slow[0], reports.fast[0]))["names"][0]
    other = tmp_path / "other.json"
    other.write_text(reports.fast[0].read_text().replace(f'"{name}"', '"apache2.service"'))
    done = tlsprof("compare", reports.slow[0], other)
    assert done.child.returncode == FAILURE, done.describe()
    for word in ("no active service in common", name, "apache2.service", "--service"):
        assert word in done.stderr, done.describe()
    comparison = compared("--service", f"{name}=apache2.service", reports.slow[0], other)
    assert service(comparison)["names"] == [name, "apache2.service"]


@pytest.mark.parametrize(
    "content, told",
    [
        ("", "is empty"),
        ("tlsprof spends 7%", "not JSON"),
        ("[]", "not a report"),
        ("{}", "schema_version"),
        ('{"schema_version": 1}', "missing field"),
        ('{"schema_version": 99, "tlsprof_version": "12.0.0"}', "newer tlsprof (12.0.0)"),
        ('{"schema_version": 0}', "version 0"),
        ('{"schema_version": 1,\n"services": [', "line 2"),
    ],
)
def test_what_is_no_report_is_told(content, told, tmp_path):
    file = tmp_path / "bad.json"
    file.write_text(content)
    other = tmp_path / "other.json"
    other.write_text(content)
    done = tlsprof("compare", file, other)
    assert done.child.returncode == FAILURE, done.describe()
    assert told in done.stderr and str(file) in done.stderr, done.describe()


def test_a_report_that_was_cut_off_tells_where(reports, tmp_path):
    lines = reports.slow[0].read_text().splitlines()
    line = len(lines) // 2
    # At the end of a line: half a number would be called an invalid one.
    cut = tmp_path / "cut.json"
    cut.write_text("\n".join(lines[:line]))
    done = tlsprof("compare", reports.slow[0], cut)
    assert done.child.returncode == FAILURE, done.describe()
    assert f"line {line}" in done.stderr and "truncated" in done.stderr, done.describe()


@pytest.mark.parametrize("file, told", [("/", "directory"), ("/no/such", "No such file"), ("/dev/zero", "64 MiB")])
def test_what_cannot_be_read_is_told(file, told, tmp_path):
    done = tlsprof("compare", file, tmp_path / "other.json")
    assert done.child.returncode == FAILURE, done.describe()
    assert told in done.stderr, done.describe()


@pytest.mark.parametrize(
    "arguments",
    [["one.json"], [], ["--noise", "soon", "a", "b"], ["--format", "xml", "a", "b"], ["=a", "b"]],
)
def test_wrong_usage(arguments):
    assert tlsprof("compare", *arguments).child.returncode == USAGE


def test_repeats_alone_are_nothing_to_compare(reports):
    done = tlsprof("compare", *(f"same={report}" for report in reports.slow))
    assert done.child.returncode == FAILURE and "nothing to compare" in done.stderr, done.describe()
