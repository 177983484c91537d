"""Time off the CPU inside handshakes has its reason."""

from harness import servers
from harness.load import Load
from harness.network import free_port
from harness.profiler import profile_load
from harness.scenarios import find
from harness.web_servers import apache

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
