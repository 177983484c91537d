"""Time off the CPU inside handshakes has its reason."""

from harness import servers
from harness.load import Load
from harness.profiler import profile_load

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
