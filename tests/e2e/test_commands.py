"""The commands that look at a host without profiling it."""

import json
import platform
import re

from harness import servers
from harness.load import Load
from harness.paths import SELFTIMED, TLSPROF
from harness.processes import run
from harness.profiler import profile_load


def tlsprof(*arguments) -> str:
    done = run([TLSPROF, *arguments])
    assert done.child.returncode == 0, done.describe()
    return done.stdout


def test_list_shows_the_service_and_its_library(rsa):
    with servers.selftimed("epoll", rsa) as server:
        listed = tlsprof("list")
    # A service's name stands at the beginning of a line, what belongs to it below.
    (block,) = re.findall(rf"^{SELFTIMED.name}\n(?:\s+.*\n)+", listed, re.MULTILINE)
    assert "OpenSSL" in block and str(server.port) in block


def test_verbose_list_shows_probe_sites(rsa):
    with servers.selftimed("epoll", rsa):
        listed = tlsprof("list", "--verbose")
    assert re.search(r"SSL_free\+\d+ +0x[0-9a-f]+ .*emulated", listed), listed


def test_doctor_begins_with_its_verdict():
    told = tlsprof("doctor")
    assert told.startswith("Ready: tlsprof can profile this host\n"), told
    assert platform.release() in told
    assert "uprobe" in told
    assert "os error" not in told
    assert json.loads(tlsprof("doctor", "--format", "json"))["ready"] is True


def test_doctor_sends_a_user_without_privileges_to_root():
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = run([*as_nobody, TLSPROF, "doctor"])
    assert done.child.returncode == 1, done.describe()
    assert done.stdout.startswith("Not ready: run as root (sudo tlsprof doctor)\n"), done.describe()
    assert "os error" not in done.stdout, done.describe()
    told = json.loads(run([*as_nobody, TLSPROF, "doctor", "--format", "json"]).stdout)
    assert told["ready"] is False


def test_one_service_can_be_chosen_by_name_pid_or_port(rsa, tmp_path):
    load = Load(full=20)
    with servers.selftimed("epoll", rsa) as server:
        for option in (["--service", SELFTIMED.name], ["--pid", server.pid], ["--port", server.port]):
            report, seen = profile_load(tmp_path, server.port, load, options=option)
            assert [service.name for service in report.services] == [SELFTIMED.name]
            assert report.services[0].count(outcome="completed") == seen.completed


def test_text_report_names_the_service(rsa, tmp_path):
    output = tmp_path / "report.txt"
    with servers.selftimed("epoll", rsa) as server:
        command = Load(full=20).command(server.port)
        tlsprof("report", "--output", output, "--", *command)
    assert SELFTIMED.name in output.read_text()
