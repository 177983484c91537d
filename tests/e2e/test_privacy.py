"""What clients say stays with them: nothing of a login without TLS reaches the agent."""

import re
import socket
import ssl
from pathlib import Path

import pytest

from harness.certificates import Certificate
from harness.profiler import Profiling
from harness.servers import selftimed

pytestmark = pytest.mark.host

LOGINS = {
    "smtp": ("220 mail ESMTP", ["EHLO {}", "AUTH PLAIN {}"]),
    "ftp": ("220 ready", ["USER {}", "PASS {}"]),
    "imap": ("* OK ready", ["a1 CAPABILITY", "a2 LOGIN {} {}"]),
    "pop3": ("+OK ready", ["CAPA", "USER {}", "PASS {}"]),
}


def converse(greeting: str, commands: list[str]) -> None:
    """A session on loopback; this process has both ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as client:
            server, _ = listener.accept()
            with server:
                server.sendall(f"{greeting}\r\n".encode())
                assert client.recv(4096)
                for command in commands:
                    client.sendall(f"{command}\r\n".encode())
                    assert server.recv(4096)
                    server.sendall(b"250 ok\r\n")
                    assert client.recv(4096)


def say_hello(port: int, name: str) -> None:
    """A TLS handshake that names a server, broken off."""
    context = ssl.create_default_context()
    with socket.create_connection(("127.0.0.1", port)) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname=name)


def memory(pid: int) -> bytes:
    """All that a process has mapped to read, the kernel's event ring included."""
    found = []
    with open(f"/proc/{pid}/mem", "rb", 0) as content:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            bounds = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
            if not bounds:
                continue
            begin, end = (int(bound, 16) for bound in bounds.groups())
            try:
                content.seek(begin)
                found.append(content.read(end - begin))
            except (OSError, OverflowError):
                continue  # of the kernel: vvar, vsyscall
    return b"".join(found)


def secret_of(protocol: str) -> str:
    return f"c2VjcmV0LW9m{protocol}"


def known_of(protocol: str) -> str:
    return f"hello-before-{protocol}.example"


@pytest.fixture(scope="module")
def found(rsa: Certificate, tmp_path_factory) -> set[str]:
    """Which of these are in the agent's memory after a login by each protocol."""
    folder = tmp_path_factory.mktemp("privacy")
    with selftimed("epoll", rsa) as server, Profiling(folder) as profiling:
        for protocol, (greeting, commands) in LOGINS.items():
            converse(greeting, [command.replace("{}", secret_of(protocol)) for command in commands])
            say_hello(server.port, known_of(protocol))
        seen = memory(profiling.pid)
        profiling.finish()
    words = {of(protocol) for protocol in LOGINS for of in (secret_of, known_of)}
    return {word for word in words if word.encode() in seen}


@pytest.mark.parametrize("protocol", LOGINS)
def test_a_login_without_tls_never_reaches_the_agent(protocol, found):
    # That the rest would be found is shown by what does reach it.
    assert known_of(protocol) in found
    assert secret_of(protocol) not in found
