"""Field report C: Apache as it comes out of the box, and a server on NSS beside it.

Three changes of the report, each by itself: the cipher, how long sessions are kept, and where.
"""

import json
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Callable, Iterator

import pytest

from harness import other_stacks, web_servers
from harness.paths import SERVERS
from harness.processes import run
from harness.profiler import Profiling
from harness.scenarios import (
    LOAD_SECONDS,
    Saving,
    ab,
    assert_predicted,
    predicted_saving,
    profile,
    sampled_often,
    spend,
)
from harness.sequential import Rounds, assert_agrees
from harness.servers import SYSTEM_PYTHON, Server

CBC = "SSLCipherSuite ECDHE-RSA-AES256-SHA384"
GCM = "SSLCipherSuite ECDHE-RSA-AES256-GCM-SHA384"
FILE_BYTES = 1_000_000

NO_TICKETS = "SSLSessionTickets off"
TOO_SHORT, LONG_ENOUGH = 1, 300
"""Seconds that a session is kept."""
AWAY_SECONDS = 1.5
"""Of the clients that come back."""

DBM = "LoadModule socache_dbm_module /usr/lib/apache2/modules/mod_socache_dbm.so"
CONCURRENCY = 16

Start = Callable[..., Server]


@pytest.fixture
def apache(rsa) -> Iterator[Start]:
    """Starts an Apache with directives of the test; `{sessions}` is where it may keep some. All is
    in folders that its user gets at, as those of pytest are not."""
    with ExitStack() as stack:

        def start(*directives: str) -> Server:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="tlsprof-apache-")))
            folder.chmod(0o755)
            (folder / "file").write_bytes(bytes(FILE_BYTES))
            (folder / "page").write_text("ok\n")
            (folder / "sessions").mkdir()
            shutil.chown(folder / "sessions", "www-data")
            lines = ["SSLProtocol -all +TLSv1.2", *directives]
            extra = "\n".join(lines).format(sessions=folder / "sessions" / "cache")
            return stack.enter_context(web_servers.apache(folder, rsa, "worker", extra, "apache2"))

        yield start


def downloads(port: int) -> int:
    """Megabytes for clients that offer AES-GCM too."""
    return ab(300, 4, "-f", "TLS1.2", path="/file")(port)


def test_the_saving_of_another_cipher_is_predicted(apache, tmp_path):
    before, after = apache(CBC), apache(GCM)
    options = sampled_often(tmp_path)
    found = profile(tmp_path, before, downloads, *options).finding("costly-cipher")
    assert found["figures"]["offered_aes_gcm_ratio"] == 1.0
    assert "SSLCipherSuite ECDHE+AESGCM" in found["remedy"]["directive"]
    changed = profile(tmp_path, after, downloads, *options)
    assert not changed.finding("costly-cipher"), changed.report.data["findings"]

    def measure() -> dict[str, Saving]:
        saved = spend(before, downloads).each - spend(after, downloads).each
        predicted = predicted_saving(tmp_path, before, downloads, "costly-cipher", *options)
        return {"AES-GCM": Saving(predicted, saved)}

    assert_predicted(measure)


@pytest.fixture
def returning(rsa) -> Callable[[int], int]:
    """A load of clients that come back after a while and bring their session."""

    def load(port: int, connections: int = 1500) -> int:
        command = [SYSTEM_PYTHON, SERVERS / "session_client.py", port, port, connections]
        done = run([*command, "TLSv1_2", rsa.cert, AWAY_SECONDS], timeout=LOAD_SECONDS)
        assert done.child.returncode == 0, done.describe()
        assert json.loads(done.stdout)["resumed"] in (0, connections), done.stdout
        return connections + 1

    return load


def test_the_saving_of_sessions_kept_longer_is_predicted(apache, returning, tmp_path):
    before, after = (
        apache(NO_TICKETS, f"SSLSessionCacheTimeout {seconds}")
        for seconds in (TOO_SHORT, LONG_ENOUGH)
    )

    def measure() -> dict[str, Saving]:
        saved = spend(before, returning).each - spend(after, returning).each
        profiled = profile(tmp_path, before, returning)
        finding = profiled.finding("resumption-refused")
        assert finding, profiled.report.data["findings"]
        assert finding["figures"]["refused_handshakes"] == profiled.spent.requests - 1
        assert "SSLSessionCacheTimeout" in finding["remedy"]["directive"]
        return {"sessions": Saving(profiled.saving("resumption-refused"), saved)}

    assert_predicted(measure)
    changed = profile(tmp_path, after, returning)
    assert not changed.finding("resumption-refused"), changed.report.data["findings"]
    assert changed.service.count(resumption="session_id") == changed.spent.requests - 1


WORTHWHILE = "[findings]\nmin_saving = 0.2\n"
"""A thread that loses the CPU while it holds a lock in memory keeps 15 others waiting: by default a finding from 5% on. On disk
it is 61% of the time."""


@dataclass(frozen=True)
class Waits:
    """What handshakes waited for inside the server."""

    lock_seconds: float
    found: set[str]


def waiting(folder: Path, server: Server) -> Waits:
    config = folder / "tlsprof.toml"
    config.write_text(WORTHWHILE)
    load = ab(400, CONCURRENCY, "-f", "TLS1.2", path="/page")
    profiled = profile(folder, server, load, "--config", config)
    found = set()
    for name in ("lock-wait", "disk-wait"):
        if finding := profiled.finding(name):
            found.add(name)
            assert finding["prediction"]["kind"] == "latency"
            assert "SSLSessionCache shmcb:" in finding["remedy"]["directive"] or (
                "Mutex pthread ssl-cache" in finding["remedy"]["directive"]
            )
    return Waits(profiled.service.wait_seconds("lock"), found)


def test_a_session_cache_on_disk_makes_handshakes_wait(apache, tmp_path):
    # Memory first: handshakes that ab leaves on the slow one go on after it, and both are one
    # service.
    in_memory = apache(NO_TICKETS, "Mutex pthread ssl-cache")
    # A lock in memory is waited for too, where a thread loses the CPU while it holds it: that is
    # little, and in few profiles enough for a finding.
    rounds = Rounds(lambda: waiting(tmp_path, in_memory))
    found = rounds.each(lambda one: float(len(one.found)))
    assert_agrees(found, expected=0.0, within=0.5, name="findings with the cache in memory")
    on_disk = apache(NO_TICKETS, DBM, "SSLSessionCache dbm:{sessions}")
    slow = waiting(tmp_path, on_disk)
    assert "lock-wait" in slow.found
    assert median(one.lock_seconds for one in rounds.made) < slow.lock_seconds / 5


def test_a_server_on_nss_is_judged_too(rsa, tmp_path):
    """Its libraries are no libssl: what is known comes from its sockets."""
    if not (shutil.which("selfserv") and shutil.which("pk12util")):
        pytest.skip("selfserv or pk12util is not installed")
    requests, concurrency = 200, 4
    with other_stacks.selfserv(tmp_path, rsa) as server:
        with Profiling(tmp_path, "--port", server.port) as profiling:
            done = run(
                ["ab", "-q", "-n", requests, "-c", concurrency, f"https://127.0.0.1:{server.port}/"]
            )
            assert f"Complete requests:      {requests}\n" in done.stdout, done.describe()
            profiling.finish()
    service = profiling.report.on_port(server.port)
    full = service.count(role="server", outcome="completed", resumption="none")
    assert requests <= full <= requests + concurrency
    assert service.cpu_seconds(role="server") > 0
