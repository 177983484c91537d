"""Processes that nobody chose to profile, but that have our probes in the library they share.

A bystander here switches stacks in the middle of its handshakes: return probes kill it.
"""

import pytest

from harness import coroutines, libraries, servers
from harness.load import Load, run_load
from harness.paths import SELFTIMED, TLSPROF
from harness.processes import run
from harness.profiler import Profiling, Service

# One of them maps the system's own libraries.
pytestmark = pytest.mark.host

LIBRARIES = 2
"""libssl and libcrypto, copied for each test: nothing else on the host uses these."""

LOAD = Load(full=20, resume=20)


def states(service: Service) -> list[str]:
    found = [library["state"] for library in service.data["tls_libraries"]]
    assert len(found) == LIBRARIES, service
    return found


def assert_spared(service: Service, bystander: servers.Server) -> None:
    """No library is profiled, and the bystander is named as the reason. Socket calls need no probe."""
    for state in states(service):
        assert state.startswith(f"not profiled: process {bystander.pid} (coroutines)"), state
    assert service.count(source="library") == 0
    assert bystander.process.alive()


def wait_until_released(profiling: Profiling, bystander: servers.Server) -> None:
    for _ in range(LIBRARIES):
        profiling.wait_for_line(f"not profiled: process {bystander.pid} (coroutines)")


def test_the_bystander_is_there_before_the_profile(rsa, tmp_path):
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    with servers.selftimed("epoll", rsa, env=environment) as chosen:
        with coroutines.server(rsa, environment) as bystander:
            with Profiling(tmp_path, "--pid", chosen.pid) as profiling:
                coroutines.interleave(bystander.port)
                run_load(LOAD, chosen.port)
                profiling.finish()
            assert_spared(profiling.report.service(SELFTIMED.name), bystander)


def test_the_bystander_comes_later(rsa, tmp_path):
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    with servers.selftimed("epoll", rsa, env=environment) as chosen:
        with Profiling(tmp_path, "--pid", chosen.pid) as profiling:
            with coroutines.server(rsa, environment) as bystander:
                wait_until_released(profiling, bystander)
                coroutines.interleave(bystander.port)
                profiling.finish()
                assert_spared(profiling.report.service(SELFTIMED.name), bystander)


def test_the_bystander_loads_its_coroutines_later(rsa, tmp_path):
    """Until then it is a process like others, and the library is profiled."""
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    with servers.selftimed("epoll", rsa, env=environment) as chosen:
        with coroutines.server(rsa, environment, late=True) as bystander:
            with Profiling(tmp_path, "--pid", chosen.pid) as profiling:
                seen = run_load(LOAD, chosen.port)
                bystander.process.say("")
                wait_until_released(profiling, bystander)
                coroutines.interleave(bystander.port)
                profiling.finish()
            service = profiling.report.service(SELFTIMED.name)
            assert service.count(outcome="completed") == seen.completed
            assert all(f"process {bystander.pid}" in state for state in states(service))
            assert bystander.process.alive()


def test_the_coroutines_are_in_a_process_that_was_there_and_the_library_comes_to_it(rsa, tmp_path):
    """Neither image is new to the host: that one process has both is."""
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    with servers.selftimed("epoll", rsa, env=environment) as chosen, coroutines.server(rsa):
        with Profiling(tmp_path, "--pid", chosen.pid) as profiling:
            with coroutines.server(rsa, environment) as bystander:
                wait_until_released(profiling, bystander)
                coroutines.interleave(bystander.port)
                assert bystander.process.alive()


def test_coroutines_with_another_library_do_not_matter(rsa, tmp_path):
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    with servers.selftimed("epoll", rsa, env=environment) as chosen:
        with coroutines.server(rsa) as bystander:
            with Profiling(tmp_path, "--pid", chosen.pid) as profiling:
                seen = run_load(LOAD, chosen.port)
                coroutines.interleave(bystander.port)
                profiling.finish()
            service = profiling.report.service(SELFTIMED.name)
            assert states(service) == ["profiled"] * LIBRARIES
            assert service.count(outcome="completed") == seen.completed


def test_a_process_that_switches_stacks_is_spared_when_all_are_profiled(rsa, tmp_path):
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    with coroutines.server(rsa, environment) as server:
        with Profiling(tmp_path) as profiling:
            coroutines.interleave(server.port)
            profiling.finish()
        assert_spared(profiling.report.on_port(server.port), server)


def test_the_list_names_the_bystander(rsa, tmp_path):
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    with servers.selftimed("epoll", rsa, env=environment):
        with coroutines.server(rsa, environment) as bystander:
            listed = run([TLSPROF, "list", "--verbose"]).stdout
    unfolded = " ".join(listed.split())
    assert f"process {bystander.pid} (coroutines), which uses it, may switch stacks" in unfolded, listed
