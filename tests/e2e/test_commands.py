"""The commands that look at a host without profiling it."""

import json
import platform
import re
import shutil
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from harness import servers
from harness.load import Load
from harness.paths import SELFTIMED, TLSPROF
from harness.processes import Process, run
from harness.profiler import profile_load


WAIT = "print('ready', flush=True); import time; time.sleep(60)"
LISTENER = f"import socket; s = socket.create_server(('127.0.0.1', 0)); {WAIT}"


@contextmanager
def python(program: Path, code: str) -> Iterator[Process]:
    """Python under another name, since others run on this host, too, and belong to its service."""
    shutil.copy(Path(servers.SYSTEM_PYTHON).resolve(), program)
    with Process([program, "-c", code]) as process:
        process.wait_for_line("ready")
        yield process


def tlsprof(*arguments) -> str:
    done = run([TLSPROF, *arguments])
    assert done.child.returncode == 0, done.describe()
    return done.stdout


def listed_line(listed: str, name: str) -> str:
    """The line of a service in the list."""
    (line,) = [line for line in listed.splitlines() if line.startswith(f"✓ {name} ")]
    return line


def test_list_shows_a_line_for_each_service_that_listens(rsa):
    with servers.selftimed("epoll", rsa) as server:
        line = listed_line(tlsprof("list"), SELFTIMED.name)
    assert re.search(rf" :{server.port} +OpenSSL \d\S+, handshakes and steps$", line), line


def test_list_has_services_without_a_known_library_after_the_others(rsa, tmp_path):
    with servers.selftimed("epoll", rsa), python(tmp_path / "plain", LISTENER):
        listed = tlsprof("list")
    line = listed_line(listed, "plain")
    assert line.endswith("no known TLS library: handshakes from its socket calls"), line
    assert listed.index(f"✓ {SELFTIMED.name}") < listed.index(line)


def test_programs_that_only_load_a_library_are_listed_on_request(tmp_path):
    with python(tmp_path / "client", f"import ssl; {WAIT}") as client:
        shown, everything = tlsprof("list"), tlsprof("list", "--all", "--verbose")
        told = json.loads(tlsprof("list", "--format", "json"))
    assert f"pid {client.pid}" not in shown
    assert "tlsprof list --all" in shown
    assert str(client.pid) in everything
    (service,) = [one for one in told if client.pid in one["pids"]]
    assert service["ports"] == [] and any(library["handshakes"] for library in service["libraries"])


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


IN_OTHER_PIDS = ["unshare", "--pid", "--fork", "--mount-proc"]


def test_doctor_is_not_ready_in_another_pid_namespace():
    done = run([*IN_OTHER_PIDS, TLSPROF, "doctor"])
    assert done.child.returncode == 1, done.describe()
    verdict = " ".join(done.stdout.split("\n\n")[0].split())
    assert verdict.startswith("Not ready: tlsprof runs in a PID namespace of its own"), verdict
    assert "docker --pid=host" in verdict and "hostPID: true" in verdict
    told = json.loads(run([*IN_OTHER_PIDS, TLSPROF, "doctor", "--format", "json"]).stdout)
    assert (told["ready"], told["verdict"]) == (False, verdict)


def test_a_report_from_another_pid_namespace_warns():
    done = run([*IN_OTHER_PIDS, TLSPROF, "report", "--duration", "1s", "--format", "json"])
    (note,) = [one for one in json.loads(done.stdout)["notes"] if "PID namespace" in one]
    assert "Run it in the host's PID namespace" in note
    assert "WARN tlsprof runs in a PID namespace of its own" in done.stderr, done.describe()
    assert "PID namespace of its own" in run([*IN_OTHER_PIDS, TLSPROF, "list"]).stderr


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


def test_a_report_begins_with_what_is_profiled_and_how(rsa, tmp_path):
    output = tmp_path / "report"
    with servers.selftimed("epoll", rsa) as server:
        command = [TLSPROF, "report", "--port", server.port, "--output", output]
        done = run([*command, "--", "true"])
        quiet = run([*command, "--quiet", "--", "true"])
    assert re.search(
        rf"^tlsprof: profiling {SELFTIMED.name} \(OpenSSL \d\S+, its functions\)$", done.stderr, re.MULTILINE
    ), done.describe()
    assert (quiet.child.returncode, quiet.stderr) == (0, ""), quiet.describe()


def test_a_summary_has_a_line_for_each_finding_and_service(rsa):
    with servers.selftimed("epoll", rsa) as server:
        command = Load(full=150).command(server.port)
        told = tlsprof("report", "--summary", "--port", server.port, "--", *command)
    assert re.search(rf"^ +{SELFTIMED.name} .* 150 ", told, re.MULTILINE), told
    assert len(told.splitlines()) < 40, told


def test_explain_has_a_page_for_each_finding():
    names = [line.split()[0] for line in tlsprof("explain").splitlines()]
    assert "slow-key-exchange" in names and len(names) == len(set(names)) > 20
    for name in names:
        page = tlsprof("explain", name)
        assert "What to change" in page and name in page, page
    assert tlsprof("explain", "slow_key_exchange") == tlsprof("explain", "slow-key-exchange")


def test_config_show_is_a_configuration_and_marks_defaults(tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text('[agent]\nbudget = 0.02\n[limits]\nhandshake_silence = "90s"\n')
    shown = tlsprof("config", "show", "--config", config)
    assert str(config) in shown.splitlines()[0]
    assert tomllib.loads(shown)["agent"]["budget"] == 0.02
    assert "\nbudget = 0.02\n" in shown and 'listen = "127.0.0.1:9843"  # default\n' in shown
    again = tmp_path / "again.toml"
    again.write_text(shown)
    assert tlsprof("config", "check", again) == f"ok: {again}\n"
    whole = tlsprof("config", "show", "--config", again)
    assert tomllib.loads(whole) == tomllib.loads(shown) and "# default" not in whole


def test_completions_and_man_pages_come_with_the_program():
    for shell in ("bash", "fish", "zsh"):
        assert "flamegraph" in tlsprof("completions", shell)
    page = tlsprof("man", "report")
    assert page.startswith(".") and '.SH "EXIT STATUS"' in page
    assert "tlsprof\\-report(1)" in tlsprof("man", "config", "check")
