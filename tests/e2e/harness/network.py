"""Ports: free ones, and those that a server listens on."""

import os
import socket
from pathlib import Path

LISTEN_STATE = "0A"


_given: set[int] = set()


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago; each call returns another one, so that
    servers may start side by side."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port


def is_listening(pid: int, port: int) -> bool:
    """Whether the process listens on `port`, in its own network namespace.

    Read from /proc and not found out by connecting: a connection would be one
    more handshake, begun and abandoned, in the counts that the tests compare.
    """
    try:
        tables = [Path(f"/proc/{pid}/net/{table}").read_text() for table in ("tcp", "tcp6")]
        files = {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:  # it has ended, or closes files meanwhile
        return False
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return any(
        row[3] == LISTEN_STATE and int(row[1].rsplit(":", 1)[1], 16) == port and f"socket:[{row[9]}]" in files
        for row in rows
    )


def open_sockets(pid: int) -> int:
    """How many the process has now."""
    return sum(_is_socket(file) for file in Path(f"/proc/{pid}/fd").iterdir())


def _is_socket(file: Path) -> bool:
    """It may be closed while it is looked at."""
    try:
        return str(file.readlink()).startswith("socket:")
    except FileNotFoundError:
        return False
