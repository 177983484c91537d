"""A report while a command runs: the command is let alone, and nothing that was measured is lost."""

import json
from pathlib import Path

import pytest

from harness.load import Load
from harness.paths import HOG, TLSPROF
from harness.processes import Process, children, name_of_copy, run
from harness.samples import hog
from harness.steal import watch_steal
from harness.web_servers import nginx

FAILURE = 1

LOAD = Load(full=120, tls="1.3")

FULL_DISK = "/dev/full"


def report(*arguments, **options) -> Process:
    done = run([TLSPROF, "report", *arguments], **options)
    assert "panicked" not in done.stderr, done.describe()
    return done


def test_output_and_status_of_the_command_pass_through():
    done = report("--", "sh", "-c", "echo to-stdout; echo to-stderr >&2; exit 7")
    assert done.child.returncode == 7, done.describe()
    assert done.stdout.startswith("to-stdout\n"), done.describe()
    assert "to-stderr\n" in done.stderr, done.describe()
    assert "ended with status 7" in " ".join(done.stdout.split()), done.describe()


def test_a_command_that_a_signal_ends_is_told_as_shells_do():
    done = report("--", "sh", "-c", "kill -KILL $$")
    assert done.child.returncode == 128 + 9, done.describe()


def test_a_time_limit_ends_the_command_and_not_its_report():
    script = "trap 'echo told to end; exit 3' TERM; echo begun; while :; do sleep 0.1; done"
    done = report("--duration", "2s", "--", "sh", "-c", script)
    assert done.child.returncode == 0, done.describe()
    assert done.stdout.startswith("begun\ntold to end\n"), done.describe()
    assert "ended with status 3" in " ".join(done.stdout.split()), done.describe()


def test_a_time_limit_that_is_not_reached_changes_nothing():
    done = report("--duration", "1h", "--", "sh", "-c", "exit 7")
    assert done.child.returncode == 7, done.describe()


def test_the_cost_of_a_request_stands_beside_the_output(rsa, tmp_path):
    with nginx(tmp_path, rsa, workers=1) as server:
        done = report("--port", server.port, "--", *LOAD.command(server.port))
    assert done.child.returncode == 0, done.describe()
    told = " ".join(done.stdout.split())
    assert f"({LOAD.full} requests, everything included)." in told, done.describe()


@pytest.mark.parametrize("form, mark", [("text", "TLS handshakes"), ("json", "schema_version"), ("html", "</html>")])
def test_a_full_disk_costs_no_report(form, mark):
    done = report("--format", form, "--output", FULL_DISK, "--", "true")
    assert done.child.returncode == FAILURE, done.describe()
    for word in (FULL_DISK, "No space left", "standard output"):
        assert word in done.stderr, done.describe()
    assert done.stdout.strip(), "the report is lost"
    assert mark in done.stdout or "No TLS handshake" in done.stdout, done.describe()


def test_samples_become_rarer_and_each_counts_as_the_time_that_it_stands_for(tmp_path):
    """499 a second, from the sixth second on 293, from the eighth on 199."""
    with hog(tmp_path, name_of_copy(HOG, tmp_path), "--compute", 60) as computing:
        computing.process.say("go")
        steal = watch_steal()
        done = report("--format", "json", "--pid", computing.process.pid, "--", "sleep", "10")
        stolen = steal()
    found = json.loads(done.stdout)
    sampling = found["sampling"]
    periods = [sampling["first_period_seconds"], sampling["period_seconds"]]
    assert periods == pytest.approx([1 / 499, 1 / 199], rel=0.001)
    (service,) = found["services"]
    samples = service["cpu_samples"]
    # At the last period each it would be 2.1, at the first 0.8. Samples may be lost to a hypervisor, and each time that it has
    # taken the CPU away may bring one that no CPU time stands for, even if that was for half a period.
    assert 0.85 < samples["sampled_ratio"] < 1.1 + 2 * stolen, (samples, stolen)
    assert 0.5 < samples["effective"] / samples["count"] < 0.95, samples
    used = sum(row["cpu_seconds"] for row in service["activities"])
    assert 10 * 199 < samples["count"] * 10 / used < 10 * 499, samples


def test_a_report_goes_to_a_pipe():
    done = report("--format", "json", "--output", "/dev/stdout", "--", "true")
    assert done.child.returncode == 0, done.describe()
    assert json.loads(done.stdout)["command"]["arguments"] == ["true"]


@pytest.mark.parametrize("before", [None, "an older report"])
def test_a_profile_that_fails_leaves_the_file_alone(tmp_path, before):
    output, graph = tmp_path / "report.json", tmp_path / "graph.svg"
    if before is not None:
        output.write_text(before)
    files = ["--output", output, "--cpu-breakdown", graph]
    done = report(*files, "--service", "no-such-service", "--", "true")
    assert done.child.returncode == FAILURE, done.describe()
    assert (output.read_text() if output.exists() else None) == before
    assert not graph.exists()


def test_a_command_that_is_missing_is_named_before_anything_is_attached():
    done = report("--", "no-such-command")
    assert done.child.returncode == FAILURE, done.describe()
    assert "the command `no-such-command` is not in PATH" in done.stderr, done.describe()
    assert "attaching" not in done.stderr, done.describe()


def test_a_folder_that_is_not_there_is_told_before_the_profile(tmp_path):
    done = report("--output", tmp_path / "none" / "report.json", "--", "touch", tmp_path / "ran")
    assert done.child.returncode == FAILURE, done.describe()
    assert "report.json" in done.stderr and not (tmp_path / "ran").exists(), done.describe()


def test_a_shorter_report_replaces_a_longer_one(tmp_path):
    output = tmp_path / "report.json"
    output.write_text("x" * 4_000_000)
    done = report("--format", "json", "--output", output, "--", "true")
    assert done.child.returncode == 0, done.describe()
    assert json.loads(output.read_text())["command"]["arguments"] == ["true"]


def test_what_a_service_did_before_it_vanished_is_kept(rsa, tmp_path):
    output = tmp_path / "report.json"
    with nginx(tmp_path, rsa, workers=1) as server:
        pids = [server.pid, *children(server.pid)]
        script = 'pids="$1"; shift; "$@"; kill -KILL $pids'
        command = ["sh", "-c", script, "sh", " ".join(map(str, pids)), *LOAD.command(server.port)]
        done = report("--port", server.port, "--format", "json", "--output", output, "--", *command)
    assert done.child.returncode == 0, done.describe()
    (service,) = services_with_handshakes(output)
    completed = [group["count"] for group in service["handshakes"] if group["outcome"] == "completed"]
    assert sum(completed) == LOAD.full
    assert service["cpu_seconds"]["user"] + service["cpu_seconds"]["system"] > 0.0


def test_a_page_needs_nothing_but_itself(rsa, tmp_path):
    output = tmp_path / "report.html"
    with nginx(tmp_path, rsa, workers=1) as server:
        command = LOAD.command(server.port)
        done = report("--port", server.port, "--output", output, "--", *command)
    assert done.child.returncode == 0, done.describe()
    page = output.read_text()
    assert page.startswith("<!DOCTYPE html>") and name_of_copy("nginx", tmp_path) in page
    assert "default-src 'none'" in page
    for forbidden in ("<script", "http:", "src="):
        assert forbidden not in page, forbidden


def services_with_handshakes(report: Path) -> list[dict]:
    services = json.loads(report.read_text())["services"]
    return [service for service in services if service["handshakes"]]
