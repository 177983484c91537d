"""Why real servers refuse sessions: the finding names the cause, and the directive for it."""

import json
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Optional

import pytest

from harness import servers
from harness.certificates import Certificate
from harness.paths import SERVERS
from harness.processes import Argument, Process, run
from harness.profiler import Profiling
from harness.scenarios import find
from harness.servers import SYSTEM_PYTHON, Server
from harness.web_servers import apache, nginx, reload_nginx

TRIES = 300
"""Connections with a session. Of two processes, each gets at least 100 of them, over the default
threshold of findings: a fair coin fails in that once in 10^8."""

ID = "resumption-refused"

NO_TICKETS = "ssl_session_tickets off;"

CLIENT_SECONDS = 60.0


def client(server: Server, certificate: Certificate, version: str, *away: Argument) -> list[Argument]:
    """The command that brings one session of the server again and again."""
    where = [server.port, server.port, TRIES, version, certificate.cert]
    return [SYSTEM_PYTHON, SERVERS / "session_client.py", *where, *away]


def resumed(done: Process) -> int:
    assert done.child.returncode == 0, done.describe()
    return json.loads(done.stdout.splitlines()[-1])["resumed"]


class Trial:
    """A profile of one server; `finding` is there after its block."""

    def __init__(self, profiling: Profiling, server: Server):
        self.profiling, self._server = profiling, server
        self.finding: Optional[dict] = None

    def finish(self) -> None:
        self.profiling.finish()
        self.finding = find(self.profiling.report, self._server.port, ID)


@contextmanager
def profiled(folder: Path, server: Server) -> Iterator[Trial]:
    with Profiling(folder, "--port", server.port) as profiling:
        trial = Trial(profiling, server)
        yield trial
        trial.finish()


NGINX = {
    "shared": ("shared:refusals:1m", None, ""),
    "builtin": ("builtin:1000", "its processes do not share them", "shared:"),
    "none": ("none", "it keeps none", "shared:"),
}
"""Session cache of two workers, the cause that is expected, and what the directive holds."""


@pytest.mark.parametrize("cache", NGINX)
def test_the_session_cache_of_nginx(cache, rsa, tmp_path):
    """With a socket for each worker the kernel spreads connections over them evenly."""
    sessions, cause, directive = NGINX[cache]
    options = dict(extra=NO_TICKETS, parameters=" reuseport", sessions=sessions)
    with nginx(tmp_path, rsa, **options) as server:
        with profiled(tmp_path, server) as trial:
            taken = resumed(run(client(server, rsa, "TLSv1_2"), timeout=CLIENT_SECONDS))
    finding = trial.finding
    if not cause:
        assert taken == TRIES and not finding, finding
        return
    assert finding and finding["title"].endswith(f": {cause}"), finding
    assert directive in finding["remedy"]["directive"]
    figures = finding["figures"]
    assert figures["refused_handshakes"] == TRIES - taken
    if cache == "builtin":
        assert figures["accepted_by_their_giver"] == taken > 0
        assert figures["refused_of_other_processes"] == TRIES - taken
    else:
        assert taken == 0
        assert figures["refused_by_their_giver"] + figures["refused_of_other_processes"] == TRIES


def test_a_time_out_of_apache(rsa, tmp_path):
    """One client comes back at once, and one after the time-out."""
    extra = "SSLSessionCacheTimeout 4\nSSLSessionTickets off"
    with apache(tmp_path, rsa, "event", extra, name="apache2") as server:
        with profiled(tmp_path, server) as trial:
            at_once = resumed(run(client(server, rsa, "TLSv1_2"), timeout=CLIENT_SECONDS))
            later = resumed(run(client(server, rsa, "TLSv1_2", 6), timeout=CLIENT_SECONDS))
    assert at_once > 0 and later == 0
    finding = trial.finding
    assert finding and finding["title"].endswith(": they are too old for it"), finding
    assert finding["remedy"]["directive"] == "SSLSessionCacheTimeout 3600"
    assert finding["figures"]["refused_handshakes"] == 2 * TRIES - at_once
    assert "old were accepted, and refused from" in " ".join(finding["evidence"])


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("keys", ["own", "shared"])
def test_ticket_keys_of_a_node_cluster(keys, version, rsa, tmp_path):
    with servers.node_cluster(tmp_path, rsa, 2, keys, "node") as server:
        with profiled(tmp_path, server) as trial:
            taken = resumed(run(client(server, rsa, version), timeout=CLIENT_SECONDS))
    finding = trial.finding
    if keys == "shared":
        assert taken == TRIES and not finding, finding
        return
    assert finding and finding["title"].endswith(": its processes do not share them"), finding
    assert finding["figures"]["refused_handshakes"] == TRIES - taken
    assert "setTicketKeys" in finding["remedy"]["directive"]


def test_ticket_keys_that_a_reload_of_nginx_replaces(rsa, tmp_path):
    with nginx(tmp_path, rsa, sessions="none") as server:
        with profiled(tmp_path, server) as trial:
            with Process(client(server, rsa, "TLSv1_2", "word")) as bringing:
                bringing.wait_for_line("has a session")
                reload_nginx(server)
                bringing.say("go on")
                bringing.wait(CLIENT_SECONDS)
            assert resumed(bringing) == 0
    finding = trial.finding
    assert finding and finding["title"].endswith(": they are of processes that have ended"), finding
    assert finding["figures"]["refused_of_ended_processes"] == TRIES
    assert "ssl_session_ticket_key" in finding["remedy"]["directive"]
