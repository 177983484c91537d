"""The agent as service managers and administrators handle it: started, asked, reloaded, stopped."""

import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

from harness import metrics, outlets, servers
from harness.load import Load, run_load
from harness.paths import SELFTIMED, TLSPROF
from harness.processes import Process, name_of_copy, private_copy
from harness.profiler import ATTACH_SECONDS, Agent, start_agent
from harness.waiting import wait_until

HANDSHAKES = "tlsprof_handshakes_total"


def status(agent: Agent, path: str) -> int:
    try:
        with urllib.request.urlopen(agent.url.replace("/metrics", path), timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def listen(path: Path) -> socket.socket:
    """A service manager's socket (sd_notify(3))."""
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(path))
    manager.settimeout(ATTACH_SECONDS)
    return manager


def said(manager: socket.socket) -> set[str]:
    """The variables of the next message."""
    return {line.partition("=")[0] for line in manager.recv(4096).decode().splitlines()}


def test_the_service_manager_learns_when_it_is_ready_and_when_it_reloads(tmp_path):
    path = tmp_path / "notify"
    with listen(path) as manager:
        with start_agent(["--service", "nothing"], env={"NOTIFY_SOCKET": str(path)}) as agent:
            assert said(manager) == {"READY"}
            assert status(agent, "/-/ready") == status(agent, "/-/healthy") == 200
            agent.process.child.send_signal(signal.SIGHUP)
            assert said(manager) == {"RELOADING", "MONOTONIC_USEC"}
            assert said(manager) == {"READY"}
        assert said(manager) == {"STOPPING"}


def counted(agent: Agent, service: str) -> float:
    return metrics.total(metrics.scrape(agent.url), HANDSHAKES, service_name=service, outcome="completed")


def test_a_reload_keeps_the_counters(rsa, tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text("[agent]\nbudget = 1.0\n[findings]\nmin_handshakes = 1000000\n")
    service = name_of_copy(SELFTIMED, tmp_path)
    program = private_copy(str(SELFTIMED), tmp_path)
    with servers.selftimed("epoll", rsa, program=program) as server:
        with start_agent(["--config", config]) as agent:
            run_load(Load(full=200), server.port)
            wait_until(lambda: counted(agent, service) == 200, "the handshakes before")

            config.write_text("[limits]\nservices = 0\n")
            agent.process.child.send_signal(signal.SIGHUP)
            line = agent.process.wait_for_line("stays as it was")
            assert f"{config}:2: limits.services: must be at least 1" in line

            config.write_text("[agent]\nbudget = 0.5\n[limits]\nservices = 7\n")
            agent.process.child.send_signal(signal.SIGHUP)
            line = agent.process.wait_for_line("configuration reloaded")
            assert "restart the agent for the changes of [limits]" in line

            run_load(Load(full=100), server.port)
            wait_until(lambda: counted(agent, service) == 300, "those before and after")


def in_history(agent: Agent, service: str) -> float:
    return outlets.in_live_page(outlets.live_state(agent, service)).completed


def test_a_reload_keeps_the_history_of_the_live_page(rsa, tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text("[agent]\nbudget = 1.0\n")
    service = name_of_copy(SELFTIMED, tmp_path)
    program = private_copy(str(SELFTIMED), tmp_path)
    with servers.selftimed("epoll", rsa, program=program) as server, start_agent(["--config", config]) as agent:
        run_load(Load(full=200), server.port)
        wait_until(lambda: in_history(agent, service) == 200, "the handshakes before")
        run_before = outlets.live_state(agent, service)["run"]

        config.write_text("[agent]\nbudget = 0.5\n")
        agent.process.child.send_signal(signal.SIGHUP)
        agent.process.wait_for_line("configuration reloaded")

        run_load(Load(full=100), server.port)
        wait_until(lambda: in_history(agent, service) == 300, "those before and after")
        # Pages that are open go on where they were.
        assert outlets.live_state(agent, service)["run"] == run_before


def test_thresholds_of_findings_are_taken_over(rsa, tmp_path):
    """Each handshake is a full one: a finding, once 200 of them are enough for it."""
    config = tmp_path / "tlsprof.toml"
    config.write_text("[agent]\nbudget = 1.0\n[findings]\nmin_handshakes = 1000000\n")
    service = name_of_copy(SELFTIMED, tmp_path)
    program = private_copy(str(SELFTIMED), tmp_path)

    def findings() -> float:
        return metrics.total(metrics.scrape(agent.url), "tlsprof_finding", service_name=service)

    with servers.selftimed("epoll", rsa, "--no-tickets", program=program) as server:
        with start_agent(["--config", config]) as agent:
            run_load(Load(full=300), server.port)
            wait_until(lambda: counted(agent, service) == 300, "the handshakes")
            assert findings() == 0
            config.write_text("[agent]\nbudget = 1.0\n[findings]\nmin_handshakes = 50\n")
            agent.process.child.send_signal(signal.SIGHUP)
            wait_until(lambda: findings() > 0, "a finding")


def test_an_address_for_everyone_is_warned_about(tmp_path):
    command = [TLSPROF, "agent", "--service", "nothing", "--listen"]
    with Process([*command, "0.0.0.0:0"]) as agent:
        agent.wait_for_line("listening on ", timeout=ATTACH_SECONDS)
        assert "anyone who can reach 0.0.0.0:0 can read the metrics" in agent.stderr
    with Process([*command, "127.0.0.1:0"]) as agent:
        agent.wait_for_line("listening on ", timeout=ATTACH_SECONDS)
        assert "anyone who can reach" not in agent.stderr


def test_its_process_has_the_names_of_all_prometheus_clients():
    with start_agent(["--service", "nothing"]) as agent:
        wait_until(lambda: status(agent, "/-/ready") == 200, "its first figures")
        samples = metrics.scrape(agent.url)
        pid = agent.process.pid
        # Threads and files of the start go.
        open_now = lambda: len(list(Path(f"/proc/{pid}/fd").iterdir()))
        threads_now = lambda: len(list(Path(f"/proc/{pid}/task").iterdir()))
        told = lambda name: metrics.total(metrics.scrape(agent.url), name)
        wait_until(lambda: told("process_threads") == threads_now(), "the threads")
        # The scrape's own connection, and the folder that is being read, come and go.
        wait_until(lambda: abs(told("process_open_fds") - open_now()) <= 3, "the files")
        start = float(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]) / 100
        booted = next(
            float(line.split()[1])
            for line in Path("/proc/stat").read_text().splitlines()
            if line.startswith("btime ")
        )
    assert metrics.total(samples, "process_start_time_seconds") == booted + start
    assert metrics.total(samples, "process_cpu_seconds_total") == metrics.total(
        samples, "tlsprof_agent_cpu_seconds_total"
    )
