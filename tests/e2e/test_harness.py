"""The test programs against each other: what a test compares must itself be right.

That the clients of each TLS stack do all that they are asked to is asserted where tlsprof counts them
(test_servers.py, test_any_server.py)."""

from pathlib import Path

import pytest

from harness import hostile, libraries, metrics, servers, web_servers
from harness.load import Load, run_load
from harness.paths import SELFTIMED
from harness.processes import Process, children
from harness.targets import TARGETS
from harness.waiting import wait_until

pytestmark = pytest.mark.harness

MIX = dict(full=40, resume=40, abort_hello=6, abort_flight=6, garbage=4, no_version=4, reject=4)


@pytest.mark.parametrize("tls", ["1.2", "1.3"])
@pytest.mark.parametrize("form", ["threads", "epoll", "fork"])
def test_client_and_self_timed_server_count_alike(form, tls, rsa):
    load = Load(tls=tls, reset=5, no_group=4, **MIX)
    with servers.selftimed(form, rsa, "--groups", "P-256:X25519") as server:
        seen = run_load(load, server.port)
        measured = server.finish()
    assert (measured.full, measured.resumed) == (load.full, load.resume)
    assert (seen.full, seen.resumed) == (load.full, load.resume)
    assert measured.failed == load.failing
    assert measured.abandoned == load.aborted
    assert seen.versions == {f"TLSv{tls}": load.full + load.resume}
    assert 0 < measured.completed_cpu_seconds < measured.cpu_seconds < measured.wall_seconds


@pytest.mark.parametrize("protocol", ["smtp", "imap", "pop3"])
def test_mail_servers_switch_to_tls(protocol, rsa, tmp_path):
    with web_servers.nginx_mail(tmp_path, rsa, protocol) as server:
        seen = [run_load(Load(tls=tls, prelude=protocol, **MIX), server.port) for tls in ("1.2", "1.3")]
    assert [load.resumed for load in seen] == [MIX["resume"]] * 2


def first_answer(port: int, message: bytes) -> bytes:
    with hostile.connect(port) as peer:
        peer.sendall(message)
        return peer.recv(1)


@pytest.mark.parametrize("name", ["nginx", "go"])
def test_hostile_bytes_are_what_they_say(name, rsa, tmp_path):
    """Servers answer a good hello, even one of 64 KiB, with a handshake record; some of those
    with a wrong length with an alert."""
    handshake, alert = b"\x16", b"\x15"
    with TARGETS[name].start(tmp_path, rsa) as server:
        assert first_answer(server.port, hostile.record(hostile.hello())) == handshake
        assert first_answer(server.port, hostile.huge_hello()) == handshake
        assert len(hostile.huge_hello()) >= hostile.HUGE_HELLO
        answers = {first_answer(server.port, lie) for lie in hostile.lying_lengths()[-300:]}
    assert alert in answers


def test_a_server_on_copied_libraries_uses_the_copies(rsa, tmp_path):
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    with servers.selftimed("epoll", rsa, env=environment) as server:
        mapped = Path(f"/proc/{server.pid}/maps").read_text()
    assert str(tmp_path / "lib" / "libssl.so.3") in mapped


def test_hostile_images_can_be_mapped(tmp_path):
    images = libraries.hostile_images(libraries.loaded_by(SELFTIMED, "libssl.so.3"), tmp_path)
    with Process([servers.SYSTEM_PYTHON, servers.SERVERS / "map_files.py", *images]) as holder:
        holder.wait_for_line("ready")
        mapped = Path(f"/proc/{holder.pid}/maps").read_text()
    assert all(str(image) in mapped for image in images)


def test_a_client_that_stalls_is_abandoned_when_it_goes(rsa):
    with servers.selftimed("epoll", rsa) as server:
        with servers.stalled_clients(server.port, 3):
            pass
        run_load(Load(full=1), server.port)
        measured = server.finish()
    assert measured.outcomes == dict(completed=1, failed=0, abandoned=3)


def test_late_python_loads_openssl_only_when_told(rsa, tmp_path):
    with servers.python(tmp_path, "threaded_server.py", rsa, "--late") as server:
        assert "libssl" not in Path(f"/proc/{server.pid}/maps").read_text()
        server.process.say("")
        server.process.wait_for_line("ready")
        assert "libssl" in Path(f"/proc/{server.pid}/maps").read_text()


def test_prometheus_starts_and_answers(tmp_path):
    with metrics.prometheus(tmp_path, "127.0.0.1:9") as prometheus:
        wait_until(lambda: prometheus.query("vector(42)") == 42, "an answer of Prometheus")


def test_nginx_workers_are_replaced_by_a_reload(rsa, tmp_path):
    with web_servers.nginx(tmp_path, rsa) as server:
        before = children(server.pid)
        web_servers.reload_nginx(server)
        assert len(children(server.pid)) == 2
        assert set(before).isdisjoint(children(server.pid))
