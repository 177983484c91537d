"""Targets survive the profiler, and the profiler survives what happens on a host."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from harness import bpf, libraries, servers, web_servers
from harness.load import Load, run_load
from harness.paths import SELFTIMED
from harness.profiler import LOG, Profiling, profile_load, start_agent

KILLS = 3

LOAD = Load(full=60, resume=60)


def load_until(stop: Event, port: int) -> int:
    """Runs load after load; every connection of each must go as planned. Returns how many."""
    rounds = 0
    while not stop.is_set():
        run_load(Load(full=200, resume=200), port)
        rounds += 1
    return rounds


@pytest.mark.long
def test_killed_agent_leaves_no_trace_and_no_failed_request(rsa, tmp_path):
    stop = Event()
    probes_before = bpf.uprobe_events()
    with web_servers.nginx(tmp_path, rsa) as server, ThreadPoolExecutor() as pool:
        load = pool.submit(load_until, stop, server.port)
        try:
            for _ in range(KILLS):
                with start_agent() as agent:
                    pid = agent.process.pid
                    programs, links = bpf.owned_by(pid, "prog"), bpf.owned_by(pid, "link")
                    assert programs and links
                    agent.kill()
                    bpf.wait_unloaded(programs, links)
            assert not load.done(), load.result()
        finally:
            stop.set()
        assert load.result() >= 1
        run_load(LOAD, server.port)
    assert bpf.uprobe_events() == probes_before


def test_process_started_after_the_profile(rsa, tmp_path):
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    with Profiling(tmp_path, *LOG) as profiling:
        with servers.selftimed("epoll", rsa, env=environment) as server:
            profiling.wait_attached(tmp_path / "lib" / "libssl.so.3")
            run_load(LOAD, server.port)
            measured = server.finish()
    assert profiling.report.service(SELFTIMED.name).outcomes("server") == measured.outcomes


def test_library_loaded_after_the_start(rsa, tmp_path):
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    late = servers.python(tmp_path, "threaded_server.py", rsa, "--late", env=environment)
    with late as server, Profiling(tmp_path, *LOG) as profiling:
        server.process.say("")
        server.process.wait_for_line("ready")
        profiling.wait_attached(tmp_path / "lib" / "libssl.so.3")
        seen = run_load(LOAD, server.port)
        port = server.port
        profiling.finish()
        service = profiling.report.on_port(port)
    assert service.count(role="server", outcome="completed") == seen.completed


def test_library_replaced_while_old_processes_keep_it(rsa, tmp_path):
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    installed = tmp_path / "lib" / "libssl.so.3"
    with servers.selftimed("epoll", rsa, env=environment) as old:
        shutil.copy(installed, tmp_path / "new")
        os.replace(tmp_path / "new", installed)
        with servers.selftimed("threads", rsa, env=environment) as new:
            with Profiling(tmp_path) as profiling:
                run_load(LOAD, old.port)
                run_load(Load(full=30, garbage=10), new.port)
            service = profiling.report.service(SELFTIMED.name)
            totals = [old.finish().outcomes, new.finish().outcomes]
    assert service.outcomes("server") == {
        outcome: sum(total[outcome] for total in totals) for outcome in totals[0]
    }
    states = [
        library["state"]
        for library in service.data["tls_libraries"]
        if library["path"] == str(installed)
    ]
    assert states == ["profiled", "profiled"], service.data["tls_libraries"]


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
def test_process_for_each_connection(tls, rsa, tmp_path):
    load = Load(tls=tls, full=100, resume=100, abort_hello=10, abort_flight=10, garbage=10, reject=10)
    with servers.selftimed("fork", rsa) as server:
        report, _seen = profile_load(tmp_path, server.port, load)
        measured = server.finish()
    assert measured.completed == 200
    assert report.service(SELFTIMED.name).outcomes("server") == measured.outcomes


def test_process_killed_in_the_middle_of_a_handshake(rsa, tmp_path):
    """Its handshakes are abandoned, and none of them is lost."""
    stalled = 5
    with servers.selftimed("threads", rsa) as server, Profiling(tmp_path) as profiling:
        run_load(LOAD, server.port)
        with servers.stalled_clients(server.port, stalled):
            server.process.child.kill()
            server.process.wait(10.0)
    assert profiling.report.service(SELFTIMED.name).outcomes("server") == {
        "completed": LOAD.full + LOAD.resume,
        "failed": 0,
        "abandoned": stalled,
    }
