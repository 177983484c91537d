"""What scrapers may do to the agent: nothing that it does not outlive."""

import socket
import urllib.parse
from contextlib import ExitStack
from pathlib import Path

from harness import metrics
from harness.network import open_sockets
from harness.profiler import Agent, start_agent
from harness.waiting import wait_until

SCRAPERS = 1000
CONNECTIONS = 64
"""Of docs/metrics.md."""

SCRAPE = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
MEGABYTE = 1_000_000


def resident_bytes(agent: Agent) -> int:
    pages = int(Path(f"/proc/{agent.process.pid}/statm").read_text().split()[1])
    return pages * 4096


def hang(agent: Agent, stack: ExitStack, sent: bytes) -> None:
    """A connection that sends this, where it gets in at all, and never reads."""
    address = urllib.parse.urlsplit(agent.url)
    client = stack.enter_context(socket.socket())
    # Little room, so that the answer does not end in the kernel's buffers.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(0.002)
    try:
        client.connect((address.hostname, address.port))
        client.sendall(sent)
    except OSError:
        pass  # the queue is full: it knocks on


def is_scraped(agent: Agent) -> bool:
    try:
        return bool(metrics.scrape(agent.url))
    except OSError:
        return False


def test_a_thousand_hanging_scrapers_are_bounded_and_outlived():
    with start_agent(["--service", "nothing-to-profile"]) as agent:
        metrics.scrape(agent.url)
        before, idle = resident_bytes(agent), open_sockets(agent.process.pid)
        with ExitStack() as stack:
            for number in range(SCRAPERS):
                # Some scrape and do not read, some do not even finish their request.
                hang(agent, stack, SCRAPE if number % 2 else SCRAPE[:-2])
            assert open_sockets(agent.process.pid) <= idle + CONNECTIONS
            assert resident_bytes(agent) < before + 50 * MEGABYTE
        wait_until(lambda: is_scraped(agent), "a scrape after all that")
        wait_until(lambda: open_sockets(agent.process.pid) <= idle + 1, "the end of their connections")
