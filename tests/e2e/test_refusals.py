"""Why real servers refuse sessions: the finding names the cause, and the directive for it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping, Optional

import pytest

from harness import servers
from harness.certificates import Certificate
from harness.paths import SERVERS
from harness.processes import Argument, Process, run
from harness.profiler import Profiling
from harness.scenarios import find
from harness.servers import SYSTEM_PYTHON, Server
from harness.together import own_folder, side_by_side, together
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


NGINX = {
    "shared": ("shared:refusals:1m", None, ""),
    "builtin": ("builtin:1000", "its processes do not share them", "shared:"),
    "none": ("none", "it keeps none", "shared:"),
}
"""Session cache of two workers, the cause that is expected, and what the directive holds."""

KEYS = ("own", "shared")
VERSIONS = ("TLSv1_2", "TLSv1_3")


@dataclass(frozen=True)
class Trial:
    """What clients of a server had resumed, one after the other, and the finding."""

    resumed: tuple[int, ...]
    finding: Optional[dict]


Clients = Callable[[Server], tuple[int, ...]]


def profiled(base: Path, starts: Mapping, clients: Mapping[str, Clients]) -> dict[str, Trial]:
    """One profile of all these servers. Two clients at the same time, as some of them wait: a session has to come
    back within the second that is the shortest time-out."""
    with together(starts) as servers, Profiling(base) as profiling:
        taken = side_by_side(lambda name: clients[name](servers[name]), servers, 2)
        profiling.finish()
    report = profiling.report
    return {name: Trial(taken[name], find(report, one.port, ID)) for name, one in servers.items()}


def bring(certificate: Certificate, version: str, *away: int) -> Clients:
    """A client for each of the times that it stays away."""

    def each(server: Server) -> tuple[int, ...]:
        commands = [client(server, certificate, version, *([time] if time else [])) for time in away or (0,)]
        return tuple(resumed(run(command, timeout=CLIENT_SECONDS)) for command in commands)

    return each


def reload_meanwhile(certificate: Certificate) -> Clients:
    def around(server: Server) -> tuple[int, ...]:
        with Process(client(server, certificate, "TLSv1_2", "word")) as bringing:
            bringing.wait_for_line("has a session")
            reload_nginx(server)
            bringing.say("go on")
            bringing.wait(CLIENT_SECONDS)
        return (resumed(bringing),)

    return around


@pytest.fixture(scope="module")
def trials(rsa, tmp_path_factory) -> dict[str, Trial]:
    """Two profiles: advice for Node.js is for a program of that very name, of which there can be
    one in each."""
    base = tmp_path_factory.mktemp("refusals")
    base.chmod(0o755)
    # With a socket for each worker the kernel spreads connections over them evenly.
    options = dict(extra=NO_TICKETS, parameters=" reuseport")
    starts, clients = {}, {}
    extra = "SSLSessionCacheTimeout 4\nSSLSessionTickets off"
    starts["apache"] = apache(own_folder(base, "apache"), rsa, "event", extra, name="apache2")
    clients["apache"] = bring(rsa, "TLSv1_2", 0, 6)
    for cache, (sessions, _, _) in NGINX.items():
        starts[cache] = nginx(own_folder(base, cache), rsa, sessions=sessions, **options)
        clients[cache] = bring(rsa, "TLSv1_2")
    starts["reload"] = nginx(own_folder(base, "reload"), rsa, sessions="none")
    clients["reload"] = reload_meanwhile(rsa)
    found = {}
    for version in VERSIONS:
        for keys in KEYS:
            name = {"own": "node", "shared": f"node-{version}"}[keys]
            folder = own_folder(base, keys, version)
            starts[f"{keys}-{version}"] = servers.node_cluster(folder, rsa, 2, keys, name)
            clients[f"{keys}-{version}"] = bring(rsa, version)
        found |= profiled(base, starts, clients)
        starts.clear()
    return found


@pytest.mark.parametrize("cache", NGINX)
def test_the_session_cache_of_nginx(cache, trials):
    _, cause, directive = NGINX[cache]
    (taken,), finding = trials[cache].resumed, trials[cache].finding
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


def test_a_time_out_of_apache(trials):
    """One client comes back at once, and one after the time-out."""
    (at_once, later), finding = trials["apache"].resumed, trials["apache"].finding
    # With fewer accepted sessions the finding states no age (`AGES` in agent/advise).
    assert at_once >= 10 and later == 0
    assert finding and finding["title"].endswith(": they have expired"), finding
    assert finding["remedy"]["directive"] == "SSLSessionCacheTimeout 3600"
    assert finding["figures"]["refused_handshakes"] == 2 * TRIES - at_once
    assert "were accepted; from" in " ".join(finding["evidence"])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("keys", KEYS)
def test_ticket_keys_of_a_node_cluster(keys, version, trials):
    trial = trials[f"{keys}-{version}"]
    (taken,), finding = trial.resumed, trial.finding
    if keys == "shared":
        assert taken == TRIES and not finding, finding
        return
    assert finding and finding["title"].endswith(": its processes do not share them"), finding
    assert finding["figures"]["refused_handshakes"] == TRIES - taken
    assert "setTicketKeys" in finding["remedy"]["directive"]


def test_ticket_keys_that_a_reload_of_nginx_replaces(trials):
    assert trials["reload"].resumed == (0,)
    finding = trials["reload"].finding
    assert finding and finding["title"].endswith(": they come from processes that have ended"), finding
    assert finding["figures"]["refused_of_ended_processes"] == TRIES
    assert "ssl_session_ticket_key" in finding["remedy"]["directive"]
