"""Ports: free ones, and those that somebody listens on."""

import socket
from pathlib import Path

LISTEN_STATE = "0A"


def free_port() -> int:
    """A TCP port on loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_listening(port: int) -> bool:
    """Whether a socket listens on `port`.

    Read from /proc and not found out by connecting: a connection would be one
    more handshake, begun and abandoned, in the counts that the tests compare.
    """
    return any(port in _listening(Path("/proc/net") / table) for table in ("tcp", "tcp6"))


def _listening(table: Path) -> set[int]:
    rows = (line.split() for line in table.read_text().splitlines()[1:])
    return {int(row[1].rsplit(":", 1)[1], 16) for row in rows if row[3] == LISTEN_STATE}
