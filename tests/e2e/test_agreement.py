"""CPU time of handshakes by their socket calls, against the same handshakes by the library's probes.

Each handshake is timed by both sources at once, so that noise of the machine is in both times.
The traps of probes are in the socket's time, and only partly in the library's: no more of them
than needed.
"""

import pytest

from harness import servers
from harness.catalogue import SERVERS
from harness.load import Load
from harness.profiler import profile_load
from harness.settling import assert_median

TOLERANCE = 0.05
REPEATS = dict(least=3, most=9)
MOST = 0.97
"""Of the handshakes: a thread that waited long for a lock meanwhile may have had another job,
so that its socket calls do not tell the time."""

TARGETS = {
    "nginx": SERVERS["nginx"],
    "apache-event": SERVERS["apache-event"],
    "apache-worker": SERVERS["apache-worker"],
    "selftimed-threads": lambda _folder, certificate: servers.selftimed("threads", certificate),
    "selftimed-epoll": lambda _folder, certificate: servers.selftimed("epoll", certificate),
}


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
@pytest.mark.parametrize("name", TARGETS)
def test_both_sources_tell_the_same_cpu_time(name, tls, rsa, tmp_path):
    config = tmp_path / "tlsprof.toml"
    config.write_text('[profile]\nsteps = "off"\n')
    load = Load(tls=tls, full=200)

    def measure() -> float:
        with TARGETS[name](tmp_path, rsa) as server:
            report, seen = profile_load(tmp_path, server.port, load, options=["--config", config])
            (both,) = [
                one for one in report.on_port(server.port).data["agreement"] if one["role"] == "server"
            ]
        assert MOST * seen.completed <= both["handshakes"] <= seen.completed
        return both["socket_cpu_seconds"] / both["library_cpu_seconds"]

    assert_median(measure, expected=1.0, within=TOLERANCE, **REPEATS)
