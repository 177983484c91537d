"""Time off the CPU inside handshakes has its reason."""

import pytest

from harness import servers
from harness.load import Load
from harness.network import free_port
from harness.profiler import profile_load
from harness.random_source import random_fifo
from harness.scenarios import find
from harness.web_servers import apache, nginx

ENOUGH = 120
"""Handshakes, over the default threshold of findings, 100."""

IN_READS = 0.1
"""Tolerance: a read's own CPU time and its way into the kernel and back are no wait."""

LOAD = Load(tls="1.3", full=60, threads=1)


def waits(form: str, certificate, folder):
    with servers.selftimed(form, certificate) as server:
        report, _seen = profile_load(folder, server.port, LOAD)
    service = report.service("selftimed")
    return {reason: service.wait_seconds(reason) for reason in ("network", "between_calls")}


def test_a_blocking_server_waits_for_its_peer_inside_the_call(rsa, tmp_path):
    found = waits("threads", rsa, tmp_path)
    assert found["network"] > 0
    assert found["between_calls"] == 0


def test_a_server_with_an_event_loop_waits_between_calls(rsa, tmp_path):
    found = waits("epoll", rsa, tmp_path)
    assert found["between_calls"] > 0
    assert found["network"] == 0


def test_a_process_that_waits_for_its_turn_to_accept_is_in_no_handshake(rsa, tmp_path):
    """With two ports to listen on, Apache's processes take turns by a lock."""
    turns = f"Mutex pthread mpm-accept\nListen 127.0.0.1:{free_port()} https\nStartServers 8"
    with apache(tmp_path, rsa, "prefork", turns) as server:
        report, seen = profile_load(tmp_path, server.port, Load(tls="1.3", full=200, threads=2))
    service = report.on_port(server.port)
    assert service.count(role="server", outcome="completed") == seen.completed == 200
    # Processes of one thread each share no other lock: seven of eight always wait for their turn.
    assert service.wait_seconds("lock") < 0.05 * service.cpu_seconds(role="server")
    assert not find(report, server.port, "lock-wait"), report.data["findings"]


@pytest.mark.parametrize(
    "name, reason, finding",
    [("random", "random", "random-wait"), ("entropy", "pipe", "pipe-wait")],
)
def test_a_late_random_source_is_told_by_its_file(name, reason, finding, rsa, tmp_path):
    """A FIFO in the place of /dev/random, and one of which nothing is known but that it is a FIFO."""
    with random_fifo(tmp_path, name, late=True) as source:
        with servers.selftimed("threads", rsa, env=source.env) as server:
            before = source.wait_seconds()
            report, seen = profile_load(tmp_path, server.port, Load(tls="1.3", full=ENOUGH, threads=1))
            waited = source.wait_seconds() - before
    service = report.on_port(server.port)
    assert service.count(role="server", outcome="completed") == seen.completed == ENOUGH
    assert service.wait_seconds(reason) == pytest.approx(waited, rel=IN_READS)
    assert waited > service.cpu_seconds(role="server"), "the source was not late"
    others = {"random", "pipe", "other", "disk"} - {reason}
    assert sum(service.wait_seconds(other) for other in others) < IN_READS * waited
    told = [one["id"] for one in report.data["findings"] if one["service_name"] == service.name]
    assert {"random-wait", "pipe-wait"} & set(told) == {finding}


@pytest.mark.parametrize("late", [True, False])
def test_nginx_waits_only_where_random_numbers_are_late(late, rsa, tmp_path):
    """nginx, whose worker is stopped by the read whatever else it has to do."""
    with random_fifo(tmp_path, "urandom", late) as source:
        with nginx(tmp_path, rsa, workers=1, env=source.env) as server:
            before = source.wait_seconds()
            load = Load(tls="1.3", full=ENOUGH, threads=2)
            report, seen = profile_load(tmp_path, server.port, load)
            waited = source.wait_seconds() - before
    service = report.on_port(server.port)
    assert service.count(role="server", outcome="completed") == seen.completed == ENOUGH
    assert bool(find(report, server.port, "random-wait")) == late, report.data["findings"]
    if late:
        assert service.wait_seconds("random") == pytest.approx(waited, rel=IN_READS)
    else:
        assert service.wait_seconds("random") < 0.05 * service.cpu_seconds(role="server")


def test_socket_calls_alone_tell_of_a_late_random_source(rsa, tmp_path):
    """As of a server whose TLS library is not known. In TLS 1.3, what is read for tickets after the
    client's Finished is not in it."""
    config = tmp_path / "tlsprof.toml"
    config.write_text('[profile]\nlibrary = "off"\n')
    with random_fifo(tmp_path, "random", late=True) as source:
        with servers.selftimed("threads", rsa, env=source.env) as server:
            before = source.wait_seconds()
            load = Load(tls="1.2", full=ENOUGH, threads=1)
            report, _seen = profile_load(tmp_path, server.port, load, options=["--config", config])
            waited = source.wait_seconds() - before
    service = report.on_port(server.port)
    assert service.count(role="server", outcome="completed", source="socket") == ENOUGH
    assert service.wait_seconds("random") == pytest.approx(waited, rel=IN_READS)
    assert find(report, server.port, "random-wait"), report.data["findings"]
