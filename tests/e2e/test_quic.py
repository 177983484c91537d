"""QUIC is not measured, and a report says so where a service seems to speak it: a UDP socket on its TLS port."""

from contextlib import contextmanager
from pathlib import Path
from typing import Callable, ContextManager, Iterator

import pytest

from harness import newer_servers, servers
from harness.certificates import Certificate
from harness.load import Load, run_load
from harness.processes import Process
from harness.profiler import Profiling
from harness.servers import Server, nginx_folders, on_free_port
from harness.suites import Unobtainable

NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{}}
http {{
    access_log off;
    {folders}
    server {{
        listen 127.0.0.1:{port} ssl;
        listen 127.0.0.1:{port} quic;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        location / {{ return 200 "ok\\n"; }}
    }}
}}
"""


@contextmanager
def http3(folder: Path, certificate: Certificate) -> Iterator[Server]:
    """A server of HTTP/3: the nginx of Debian's newest suite."""
    try:
        command = newer_servers.servers("sid").command("usr/sbin/nginx")
    except Unobtainable as error:
        pytest.skip(str(error))
    config = folder / "nginx.conf"

    def start(port: int) -> Process:
        values = dict(folder=folder, folders=nginx_folders(folder), cert=certificate.cert, key=certificate.key)
        config.write_text(NGINX.format(port=port, **values))
        return Process([*command, "-e", "stderr", "-c", config])

    with on_free_port(start) as server:
        yield server


SPEAKING = {
    "http3": http3,
    "udp": lambda folder, certificate: servers.python(folder, "threaded_server.py", certificate, "--udp"),
}

Start = Callable[[Path, Certificate], ContextManager[Server]]


def profiled(start: Start, certificate: Certificate, folder: Path, handshakes: int) -> tuple[str, str]:
    """The report as text, and what it must say of QUIC."""
    with start(folder, certificate) as server:
        with Profiling(folder, "--port", server.port, form="text") as profiling:
            if handshakes:
                run_load(Load(full=handshakes, tls="1.3"), server.port)
            profiling.finish()
        name = Path(f"/proc/{server.pid}/exe").readlink().name
        note = f"{name} also has UDP sockets on port {server.port}: tlsprof does not measure QUIC (HTTP/3)"
        return " ".join(profiling.text.split()), note


@pytest.mark.parametrize("handshakes", [0, 20])
@pytest.mark.parametrize("start", SPEAKING.values(), ids=SPEAKING)
def test_a_udp_socket_on_the_tls_port_is_named(start, handshakes, rsa, tmp_path):
    """Also where nothing else was seen, so that nobody takes it for all there is."""
    text, note = profiled(start, rsa, tmp_path, handshakes)
    assert note in text
    assert ("No TLS handshake was seen" in text) == (handshakes == 0)


def test_a_service_without_one_is_not(rsa, tmp_path):
    text, _ = profiled(lambda folder, cert: servers.python(folder, "threaded_server.py", cert), rsa, tmp_path, 20)
    assert "QUIC" not in text
