"""CPU time of handshakes by their socket calls, against the same handshakes by the library's probes.

Each handshake is timed by both sources at once, so that noise of the machine is in both times.
The traps of probes are in the socket's time, and only partly in the library's: no more of them
than needed.
"""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Callable

import pytest

from harness import servers, web_servers
from harness.load import Load, run_load
from harness.paths import SELFTIMED
from harness.processes import private_copy
from harness.profiler import Profiling
from harness.sequential import Rounds, assert_agrees

TOLERANCE = 0.05
HANDSHAKES = 600
COMPARED = 60
"""At most so many a second on each CPU, of both roles (bpf/include/clock.h)."""
LEAST = 8
"""Of the server, which has both CPUs together with its client."""
STORM = 3000


def selftimed(form: str) -> Callable:
    def start(folder: Path, certificate):
        program = private_copy(str(SELFTIMED), folder, folder.name)
        return servers.selftimed(form, certificate, program=program)

    return start


TARGETS = {
    "nginx": lambda folder, cert: web_servers.nginx(
        folder, cert, program=private_copy("nginx", folder, folder.name)
    ),
    "apache-event": lambda folder, cert: web_servers.apache(folder, cert, "event", name=folder.name),
    "apache-worker": lambda folder, cert: web_servers.apache(folder, cert, "worker", name=folder.name),
    "selftimed-threads": selftimed("threads"),
    "selftimed-epoll": selftimed("epoll"),
}
VERSIONS = ["1.2", "1.3"]

USUAL = [("nginx", "1.3")]
"""For every run of the tests; all others in the long one."""
EVERY = [(name, tls) for name in TARGETS for tls in VERSIONS]

Pairs = list[tuple[str, str]]
Ratios = dict[tuple[str, str], float]


def ratios(folder: Path, certificate, pairs: Pairs) -> Ratios:
    """CPU time by socket calls to that by the library, of a server for each, in one profile."""
    config = folder / "tlsprof.toml"
    config.write_text('[profile]\nsteps = "off"\n')
    with ExitStack() as stack:
        ports = {}
        for name, tls in pairs:
            home = folder / f"{name}-{tls}"
            home.mkdir(mode=0o755)
            ports[name, tls] = stack.enter_context(TARGETS[name](home, certificate)).port
        with Profiling(folder, "--config", config) as profiling:
            for (_name, tls), port in ports.items():
                assert run_load(Load(tls=tls, full=HANDSHAKES), port).completed == HANDSHAKES
            profiling.finish()
    found = {}
    for pair, port in ports.items():
        agreement = profiling.report.on_port(port).data["agreement"]
        [both] = [one for one in agreement if one["role"] == "server"]
        assert LEAST <= both["handshakes"] <= HANDSHAKES, pair
        found[pair] = both["socket_cpu_seconds"] / both["library_cpu_seconds"]
    return found


@pytest.fixture(scope="module")
def measured(rsa, tmp_path_factory) -> Callable[[Pairs], Rounds[Ratios]]:
    """Rounds of these servers: the same ones for all tests."""
    made: dict[int, Rounds[Ratios]] = {}

    def rounds(pairs: Pairs) -> Rounds[Ratios]:
        measure = lambda: ratios(tmp_path_factory.mktemp("agreement"), rsa, pairs)
        return made.setdefault(len(pairs), Rounds(measure))

    return rounds


def pair_id(pair: tuple[str, str]) -> str:
    return "-".join(pair)


@pytest.mark.parametrize("pair", USUAL, ids=pair_id)
def test_both_sources_tell_the_same_cpu_time(pair, measured):
    figures = measured(USUAL).each(lambda one: one[pair])
    assert_agrees(figures, expected=1.0, within=TOLERANCE, name=pair_id(pair))


def test_in_a_storm_few_are_timed_twice_and_none_is_lost(rsa, tmp_path):
    with web_servers.nginx(tmp_path, rsa) as server, Profiling(tmp_path) as profiling:
        seen = run_load(Load(tls="1.3", full=STORM, threads=4), server.port)
        profiling.finish()
    report = profiling.report
    service = report.on_port(server.port)
    assert service.count(role="server", source="library", outcome="completed") == seen.completed == STORM
    assert service.count(role="server") == STORM
    [both] = [one for one in service.data["agreement"] if one["role"] == "server"]
    seconds = report.data["duration_seconds"] + 2
    assert LEAST <= both["handshakes"] <= COMPARED * seconds * os.cpu_count(), both


@pytest.mark.long
@pytest.mark.parametrize("pair", EVERY, ids=pair_id)
def test_both_sources_tell_the_same_cpu_time_for_every_server(pair, measured):
    figures = measured(EVERY).each(lambda one: one[pair])
    assert_agrees(figures, expected=1.0, within=TOLERANCE, name=pair_id(pair))
