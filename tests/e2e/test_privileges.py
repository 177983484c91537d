"""Least privilege: what tlsprof does with few capabilities, and what the agent gives up."""

import os
import pwd
import re
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Iterator

import pytest

from harness import metrics, plain_nginx, servers
from harness.load import Load, run_load
from harness.lowest_rung import load_until
from harness.paths import SELFTIMED, TLSPROF
from harness.processes import Process, run
from harness.profiler import ATTACH_SECONDS, Profiling, start_agent
from harness.waiting import wait_until
from harness.web_servers import nginx

NOBODY = 65534

PROGRAMS = ("bpf", "perfmon")
FILES = ("sys_ptrace", "dac_read_search")
REQUIRED = (*PROGRAMS, *FILES)
RECOMMENDED = (*REQUIRED, "syslog")
"""Those of the systemd unit."""

BIT = {"net_bind_service": 10, "sys_ptrace": 19, "dac_read_search": 2, "sys_admin": 21, "syslog": 34}
BIT |= {"perfmon": 38, "bpf": 39, "checkpoint_restore": 40}

KEPT = sum(1 << BIT[name] for name in (*RECOMMENDED, "checkpoint_restore", "sys_admin"))
"""What an agent that root has started keeps."""

LOAD = Load(full=300, resume=100, no_version=40)
LIBRARY = "tlsprof_agent_library_probes_duty_ratio"


def unprivileged(*capabilities: str) -> list[str]:
    """Runs a command as nobody with these capabilities, without a way to more."""
    sets = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    return ["setpriv", *user, *(f"--{kind}={sets}" for kind in ("inh-caps", "ambient-caps", "bounding-set"))]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that nobody can write to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def test_five_capabilities_are_enough(rsa, tmp_path, open_folder):
    """For a server of another user, with every figure that root gets."""
    with nginx(tmp_path, rsa, workers=1) as server:
        with Profiling(open_folder, "--port", server.port, launcher=unprivileged(*RECOMMENDED)) as profiling:
            seen = run_load(LOAD, server.port)
            profiling.finish()
    service = profiling.report.on_port(server.port)
    assert seen.agrees_with(service.outcomes("server"))
    assert service.resumed("server") == seen.resumed
    assert not any(profiling.report.losses_of_events().values())
    states = {library["state"] for library in service.data["tls_libraries"]}
    assert states == {"profiled"}
    assert {row["step"] for row in service.data["steps"]} >= {"key_exchange", "signing"}
    system = [row["activity"] for row in service.data["activities"] if row["system_seconds"]]
    assert set(system) - {"application"}, "system time is divided"
    assert service.count(cipher="unknown", outcome="completed") == 0


@pytest.mark.parametrize("dropped", FILES)
def test_a_port_is_found_without_the_right_to_read_files_of_others(dropped, rsa, tmp_path, open_folder):
    """The kernel tells who listens; from sockets comes what no library shows."""
    left = unprivileged(*(name for name in RECOMMENDED if name != dropped))
    with nginx(tmp_path, rsa, workers=1) as server:
        with Profiling(open_folder, "--port", server.port, launcher=left) as profiling:
            seen = run_load(LOAD, server.port)
            profiling.finish()
    service = profiling.report.on_port(server.port)
    assert seen.agrees_with(service.outcomes("server"))
    assert service.resumed("server") == seen.resumed


@pytest.mark.parametrize("dropped", PROGRAMS)
def test_a_required_capability_that_is_missing_is_named(dropped, rsa, tmp_path):
    left = unprivileged(*(name for name in RECOMMENDED if name != dropped))
    with nginx(tmp_path, rsa, workers=1) as server:
        done = run([*left, TLSPROF, "report", "--port", server.port, "--duration", "1s"])
    assert done.child.returncode == 1, done.describe()
    assert f"CAP_{dropped.upper()}" in done.stderr and "sudo" in done.stderr, done.describe()
    for other in RECOMMENDED:
        assert other == dropped or f"CAP_{other.upper()}" not in done.stderr, done.describe()


def test_without_syslog_system_time_is_not_divided_and_doctor_says_so():
    done = run([*unprivileged(*REQUIRED), TLSPROF, "doctor"])
    assert done.child.returncode == 0, done.describe()
    assert "without CAP_SYSLOG" in done.stdout, done.describe()
    assert re.search(r"! cpu_samples.*?CAP_SYSLOG", done.stdout, re.DOTALL), done.describe()
    # A host may hide a process from everybody.
    assert not re.search(r"processes cannot be inspected: tlsprof lacks", done.stdout), done.describe()


def test_doctor_says_how_many_processes_are_closed_to_it():
    done = run([*unprivileged("bpf", "perfmon", "dac_read_search", "syslog"), TLSPROF, "doctor"])
    assert done.child.returncode == 1, done.describe()
    assert re.search(r"! processes.*?CAP_SYS_PTRACE", done.stdout, re.DOTALL), done.describe()


def capability_sets(task: Path) -> dict[str, int]:
    """The sets of proc_pid_status(5), as numbers."""
    rows = re.findall(r"^Cap(\w+):\s(\w+)$", (task / "status").read_text(), re.MULTILINE)
    return {name: int(value, 16) for name, value in rows}


def thread(process: Process, name: str) -> Path:
    """The thread of that name. Others come and go meanwhile."""

    def found() -> list[Path]:
        names = {}
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                names[task] = (task / "comm").read_text().strip()
        return [task for task, other in names.items() if other == name]

    return wait_until(found, f"a thread {name}")[0]


def test_the_agent_keeps_what_it_needs_and_its_listener_nothing(rsa, tmp_path):
    with start_agent() as agent:
        main = Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}")
        listener = thread(agent.process, "tlsprof-http")
        wait_until(lambda: capability_sets(main)["Prm"] == KEPT, "the end of the start")
        kept = capability_sets(main)
        assert (kept["Eff"], kept["Bnd"], kept["Inh"], kept["Amb"]) == (KEPT, KEPT, 0, 0)
        assert "NoNewPrivs:\t1" in (main / "status").read_text()
        wait_until(lambda: capability_sets(listener)["Prm"] == 0, "the listener to give up its own")
        assert not any(capability_sets(listener)[name] for name in ("Eff", "Inh", "Amb"))
        # What comes after the start is profiled all the same.
        with servers.selftimed("threads", rsa) as server:
            seen = run_load(LOAD, server.port)

            def count() -> float:
                found = metrics.scrape(agent.url)
                return metrics.total(found, "tlsprof_handshakes_total", service_name=SELFTIMED.name, role="server")

            wait_until(lambda: count() >= sum(seen.outcomes.values()), "the handshakes in the metrics")


OTHER = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
"""As sudo sets them."""

WHO = 'id -u; id -g; echo "$HOME"; grep CapEff /proc/self/status; echo ready; read -r _'

OF_REPORTS = KEPT | 1 << 6 | 1 << 7
"""CAP_SETGID and CAP_SETUID: libraries are calibrated as nobody."""

OF_COMMANDS = 1 << 5
"""CAP_KILL."""

OF_FILES = 1 << 1
"""CAP_DAC_OVERRIDE."""


def report_of(*options) -> list:
    return [TLSPROF, "report", "--pid", os.getpid(), *options]


@pytest.mark.parametrize("options, of_files", [((), 0), (("--output", "report.txt"), OF_FILES)])
def test_a_report_gives_up_what_it_does_not_need_and_its_command_is_the_callers(options, of_files, open_folder):
    os.chown(open_folder, NOBODY, NOBODY)
    open_folder.chmod(0o700)
    command = report_of(*options, "--", "sh", "-c", WHO)
    with Process(command, env=OTHER, cwd=open_folder) as report:
        report.wait_for_line("ready", ATTACH_SECONDS)
        home = pwd.getpwuid(NOBODY).pw_dir
        assert report.stdout.split() == [str(NOBODY), str(NOBODY), home, "CapEff:", "0" * 16, "ready"]
        # Another thread reads it.
        wait_until(lambda: "the command runs as nobody" in report.stderr, "the line on who runs it")
        kept = OF_REPORTS | OF_COMMANDS | of_files
        main = Path(f"/proc/{report.pid}/task/{report.pid}")
        wait_until(lambda: capability_sets(main)["Prm"] == kept, "the end of the start")
        assert "NoNewPrivs:\t1" in (main / "status").read_text()
        # It is ended, though it is another user's.
        report.send(signal.SIGINT)
        report.child.wait(ATTACH_SECONDS)
    if options:
        # As root, in a folder of nobody's.
        assert "tlsprof" in (open_folder / "report.txt").read_text()


NO_USER = "54321"


def test_a_caller_without_a_name_has_no_name_and_no_home_of_roots():
    with pytest.raises(KeyError):
        pwd.getpwuid(int(NO_USER))
    script = 'id -u; id -g; echo "$HOME ${USER-unset} ${LOGNAME-unset}"'
    env = {"SUDO_UID": NO_USER, "SUDO_GID": NO_USER, "HOME": "/root", "USER": "root", "LOGNAME": "root"}
    done = run(report_of("--", "sh", "-c", script), env=env)
    assert done.child.returncode == 0, done.describe()
    assert done.stdout.split()[:5] == [NO_USER, NO_USER, "/", "unset", "unset"], done.describe()


@pytest.mark.parametrize(
    "env, named",
    [
        ({"SUDO_UID": "abc", "SUDO_GID": "1"}, 'SUDO_UID is "abc"'),
        ({"SUDO_UID": "-1", "SUDO_GID": "1"}, 'SUDO_UID is "-1"'),
        ({"SUDO_UID": "1"}, 'SUDO_GID is ""'),
        ({"SUDO_UID": "1", "SUDO_GID": "99999999999"}, 'SUDO_GID is "99999999999"'),
    ],
)
def test_a_command_of_nobody_known_is_not_run_as_root(env, named, tmp_path):
    trace = tmp_path / "trace"
    done = run(report_of("--", "touch", trace), env=env)
    assert done.child.returncode == 1 and named in done.stderr and "--as-root" in done.stderr, done.describe()
    assert "attaching" not in done.stderr and not trace.exists()


def test_a_command_runs_as_root_where_that_is_asked_for(tmp_path):
    done = run(report_of("--as-root", "--", "sh", "-c", "id -u; grep NoNewPrivs /proc/self/status"), env=OTHER)
    assert done.child.returncode == 0, done.describe()
    assert done.stdout.split()[:3] == ["0", "NoNewPrivs:", "0"], done.describe()


def test_a_report_without_a_command_gives_up_what_it_does_not_need():
    with Process(report_of("--duration", "1m")) as report:
        report.wait_for_line("profiling", ATTACH_SECONDS)
        main = Path(f"/proc/{report.pid}/task/{report.pid}")
        wait_until(lambda: capability_sets(main)["Prm"] == OF_REPORTS, "the end of the start")


def test_an_agent_without_more_than_the_unit_gives_it_profiles_what_starts_later(tmp_path, open_folder):
    name = plain_nginx.unique("later")
    with start_agent(launcher=unprivileged(*RECOMMENDED)) as agent:
        sets = capability_sets(Path(f"/proc/{agent.process.pid}"))
        assert sets["Prm"] == sets["Eff"] == sum(1 << BIT[one] for one in RECOMMENDED)
        with plain_nginx.nginx(tmp_path, "later") as server:
            plain_nginx.request(server.port, 50)

            def opened() -> float:
                found = metrics.scrape(agent.url)
                return metrics.total(found, "tlsprof_connections_opened_total", service_name=name)

            wait_until(lambda: opened() == 1, "the connection in the metrics")


def test_a_web_configuration_that_the_listener_cannot_read_again_is_refused_at_the_start(open_folder):
    """The agent could read it with its capabilities; the thread that serves has none."""
    file = open_folder / "web.yml"
    file.write_text("basic_auth_users: {}\n")
    file.chmod(0o600)
    command = [TLSPROF, "agent", "--listen", "127.0.0.1:0", "--web-config", file]
    done = run([*unprivileged(*RECOMMENDED), *command])
    assert done.child.returncode == 1, done.describe()
    assert str(file) in done.stderr and "ermission denied" in done.stderr, done.describe()


def test_five_capabilities_keep_the_budget(open_folder, rsa):
    """The kernel's statistics of programs take more: these count themselves."""
    config = open_folder / "tlsprof.toml"
    config.write_text('[agent]\nbudget = 0.0001\nkeep = "handshakes"\n')
    config.chmod(0o644)
    with start_agent(["--config", config], launcher=unprivileged(*RECOMMENDED)) as agent:
        said = lambda name: metrics.total(metrics.scrape(agent.url), name)
        with servers.selftimed("epoll", rsa) as server:
            load_until(server.port, Load(tls="1.3", full=100), lambda: said(LIBRARY) == 0)
        assert said("tlsprof_agent_bpf_runs_total") > 0
        assert said("tlsprof_agent_bpf_run_seconds_total") > 0
