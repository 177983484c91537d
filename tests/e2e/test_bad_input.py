"""Wrong requests and hostile surroundings: clear errors, and the rest goes on."""

import socket
import subprocess
import threading
from pathlib import Path

import pytest

from harness import libraries, servers
from harness.load import Load, run_load
from harness.paths import LOADGEN, SELFTIMED, SERVERS, TLSPROF
from harness.processes import Process, run
from harness.profiler import Profiling, profile_load, start_agent
from harness.together import side_by_side

FAILURE = 1
USAGE = 2

LOAD = Load(full=60, resume=60)


def tlsprof(*arguments, **options) -> Process:
    done = run([TLSPROF, *arguments], **options)
    assert "panicked" not in done.stderr, done.describe()
    return done


def assert_refused(done: Process, status: int, *words: str) -> None:
    """It ended with `status` and one message that holds all `words`."""
    assert done.child.returncode == status, done.describe()
    for word in words:
        assert word.lower() in done.stderr.lower(), done.describe()


def pid_without_process() -> int:
    """One above the largest that the kernel gives out."""
    return int(Path("/proc/sys/kernel/pid_max").read_text()) + 1


@pytest.mark.parametrize(
    "arguments, named",
    [
        (["--no-such-option"], "--no-such-option"),
        (["no-such-command"], "no-such-command"),
        (["report", "--duration", "soon"], "soon"),
        (["report", "--port", "70000"], "70000"),
        (["report", "--pid", "nginx"], "nginx"),
        (["report", "--pid", "1", "--port", "443"], "--port"),
        (["report", "--format", "paper"], "paper"),
        (["report", "--summary", "--format", "json"], "--summary"),
        (["agent", "--listen", "nowhere"], "nowhere"),
        (["completions", "cmd.exe"], "cmd.exe"),
    ],
)
def test_usage_errors_have_status_2(arguments, named):
    assert_refused(tlsprof(*arguments), USAGE, named)


def test_unknown_pid(tmp_path):
    pid = pid_without_process()
    done = tlsprof("report", "--pid", pid, "--duration", "1s", "--output", tmp_path / "report")
    assert_refused(done, FAILURE, str(pid), "no")


def test_process_without_tls_library():
    """No mistake: a library may come, or be one that tlsprof does not know. But it is said."""
    with Process(["sleep", "60"]) as process:
        done = tlsprof("report", "--pid", process.pid, "--duration", "1s")
    assert done.child.returncode == 0, done.describe()
    for told in (done.stderr, done.stdout):
        assert "No TLS library that tlsprof can probe" in " ".join(told.split()), done.describe()
    assert "\nsleep\n" in done.stdout


def test_port_on_which_nobody_listens():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        done = tlsprof("report", "--port", port, "--duration", "1s")
    assert_refused(done, FAILURE, str(port))


def test_unknown_service():
    done = tlsprof("report", "--service", "no-such-service", "--duration", "1s")
    assert_refused(done, FAILURE, "no-such-service")


def test_a_misspelt_service_is_answered_with_near_names(rsa):
    # Not at its end: there names of the copies of other workers are as near.
    misspelt = SELFTIMED.name[1:]
    with servers.selftimed("epoll", rsa):
        done = tlsprof("report", "--service", misspelt, "--duration", "1s")
        with start_agent(["--service", misspelt]) as agent:
            pass
    assert_refused(done, FAILURE, f"did you mean `{SELFTIMED.name}`")
    assert f"no service `{misspelt}` (did you mean `{SELFTIMED.name}`" in agent.process.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["explain", "slow-key-exchang"], ["slow-key-exchang", "did you mean `slow-key-exchange`"]),
        (["man", "reprot"], ["reprot", "did you mean `report`"]),
    ],
)
def test_unknown_names_are_answered_with_near_ones(arguments, words):
    assert_refused(tlsprof(*arguments), FAILURE, *words)


def test_agents_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = tlsprof("agent", "--listen", address)
    assert_refused(done, FAILURE, address, "in use")


@pytest.mark.parametrize("option", ["--output", "--flamegraph"])
def test_output_that_cannot_be_written(option, tmp_path):
    marker = tmp_path / "command-ran"
    output = tmp_path / "no" / "such" / "folder" / "file"
    done = tlsprof("report", option, output, "--", "touch", marker)
    assert_refused(done, FAILURE, str(output))
    assert not marker.exists(), "it ran the command before it looked at the output"


def test_command_that_does_not_exist():
    done = tlsprof("report", "--", "/no/such/command")
    assert_refused(done, FAILURE, "/no/such/command")


def test_configuration_that_does_not_exist(tmp_path):
    done = tlsprof("agent", "--config", tmp_path / "none.toml")
    assert_refused(done, FAILURE, str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    "text, line, key",
    [
        ("# tlsprof\n\n[agent]\nno_such_key = 1\n", 4, "no_such_key"),
        ("\n[agent]\nlisten = 7\n", 3, "listen"),
        ('[agent]\nlisten = "nowhere"\n', 2, "listen"),
        ("[no_such_table]\n", 1, "no_such_table"),
        ('[agent]\nlisten "127.0.0.1:0"\n', 2, ""),
    ],
    ids=["unknown-key", "wrong-type", "wrong-value", "unknown-table", "not-toml"],
)
def test_configuration_errors_name_key_and_line(text, line, key, tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text(text)
    assert_refused(tlsprof("agent", "--config", config), FAILURE, f"{config}:{line}", key)


def test_config_check_names_every_error(tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text("[agent]\nlisten = 7\nno_such_key = 1\n\n[limits]\nservices = 0\n")
    done = tlsprof("config", "check", config)
    expected = [f"{config}:2: agent.listen", f"{config}:3: agent.no_such_key", f"{config}:6: limits.services"]
    assert_refused(done, FAILURE, *expected)
    config.write_text('[agent]\nweb_config = "/no/such/web.yml"\n')
    assert_refused(tlsprof("config", "check", config), FAILURE, "/no/such/web.yml")
    assert_refused(tlsprof("config", "check", tmp_path / "none"), FAILURE, str(tmp_path / "none"))


@pytest.mark.parametrize("command", [["report", "--duration", "1s"], ["agent"]])
def test_no_privilege(command):
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = run([*as_nobody, TLSPROF, *command])
    assert "panicked" not in done.stderr
    assert_refused(done, FAILURE, "root", "CAP_BPF")


def test_process_that_exits_while_it_is_attached(rsa):
    """The process ends at some moment of the attachment, another one each time."""

    def ends_after(delay: float) -> tuple[int, Process]:
        with servers.selftimed("threads", rsa) as server:
            end = threading.Timer(delay, server.process.child.kill)
            end.start()
            done = tlsprof("report", "--pid", server.pid, "--duration", "2s")
            end.join()
        return server.pid, done

    for pid, done in side_by_side(ends_after, (0.0, 0.05, 0.2, 0.5), at_once=4).values():
        if done.child.returncode != 0:
            assert_refused(done, FAILURE, str(pid))


@pytest.mark.host
def test_processes_that_come_and_go_do_not_disturb_the_count(rsa, tmp_path):
    """Each of them maps libssl, and most are gone before anybody can look at them."""
    swarm = ["sh", "-c", 'while :; do "$1" 2>/dev/null; done', "sh", LOADGEN]
    with servers.selftimed("epoll", rsa) as server, Process(swarm):
        report, seen = profile_load(tmp_path, server.port, LOAD)
    assert report.service(SELFTIMED.name).count(outcome="completed") == seen.completed


def test_hostile_images_do_not_stop_the_rest(rsa, tmp_path):
    library = libraries.loaded_by(SELFTIMED, "libssl.so.3")
    images = libraries.hostile_images(library, tmp_path / "images")
    cut = libraries.hostile_images(library, tmp_path / "cut", fuzzed=1)[-1]
    command = [servers.SYSTEM_PYTHON, SERVERS / "map_files.py"]
    with Process([*command, *images, cut]) as holder, servers.selftimed("epoll", rsa) as server:
        holder.wait_for_line("ready")
        cut.write_bytes(cut.read_bytes()[:5000])
        with Profiling(tmp_path) as profiling, Process([*command, *images]) as late:
            late.wait_for_line("ready")
            seen = run_load(LOAD, server.port)
        assert holder.alive()
    assert profiling.report.service(SELFTIMED.name).count(outcome="completed") == seen.completed


def test_command_that_fails_is_told_in_the_report(tmp_path):
    """And the report is written all the same."""
    output = tmp_path / "report.json"
    done = tlsprof("report", "--format", "json", "--output", output, "--", "sh", "-c", "exit 7")
    assert output.is_file(), done.describe()
    assert subprocess.run(["grep", "-q", '"exit_status": *7', output]).returncode == 0
