"""Thousands of connections and hundreds of processes: what each costs the agent is bounded, and nothing
is lost. docs/cost.md extrapolates."""

import re
import socket
import ssl
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import bpf, lowest_rung, metrics, servers, web_servers
from harness.certificates import Certificate
from harness.processes import private_copy
from harness.profiler import LOST_BY_OTHERS, Agent, start_agent
from harness.servers import Server
from harness.waiting import wait_until

pytestmark = [pytest.mark.apart, pytest.mark.long]

NAME = "scaled-nginx"
OURS = dict(service_name=NAME, role="server")
FEW, MANY = 3000, 8000
"""Below the limit of open files of a shell, in the client as in the one worker."""
CONNECTION_BYTES = 1024
"""Resident memory of the agent for each end of a connection that is open: 506 were seen."""
ROOM = 8192
"""Of the kernel's table of connections that open between windows."""
CHILDREN = 500
BESIDE_BYTES = 64 << 20
"""Of the agent beside so many, in the profile of the tests: 45 MiB were seen."""
PROCESS_BYTES = 32 * 1024
"""For each process of a service, with its images and CPU time: 1 to 8 KiB were seen."""


def resident(pid: int) -> int:
    (kilobytes,) = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) * 1024


def counted(agent: Agent, name: str, **labels: str) -> float:
    return metrics.total(metrics.scrape(agent.url), name, **labels)


def open_connections(server: Server, number: int, stack: ExitStack) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for _ in range(number):
        plain = socket.create_connection(("127.0.0.1", server.port))
        stack.enter_context(context.wrap_socket(plain))


def nginx(folder: Path, certificate: Certificate, workers: int):
    folder.mkdir()
    folder.chmod(0o755)
    program = private_copy("nginx", folder, NAME)
    return web_servers.nginx(folder, certificate, workers=workers, connections=2 * MANY, program=program)


def test_open_connections_cost_little_memory_and_none_is_lost(rsa, tmp_path):
    tmp_path.chmod(0o755)
    with nginx(tmp_path / "one", rsa, 1) as server, start_agent() as agent:
        with ExitStack() as held:
            open_connections(server, FEW, held)
            opened = lambda: counted(agent, "tlsprof_connections_opened_total", **OURS)
            wait_until(lambda: opened() == FEW, "the first connections")
            before = resident(agent.process.pid)
            open_connections(server, MANY - FEW, held)
            wait_until(lambda: opened() == MANY, "all connections")
            grown = resident(agent.process.pid) - before
        closed = lambda: counted(agent, "tlsprof_connections_closed_total", **OURS)
        wait_until(lambda: closed() == MANY, "the end of all connections")
        assert counted(agent, "tlsprof_handshakes_total", outcome="completed", **OURS) == MANY
        lost = [one for one in metrics.scrape(agent.url) if one.name == "tlsprof_agent_events_lost_total" and one.value]
        assert {one.labels["reason"] for one in lost} <= LOST_BY_OTHERS, lost
    # Both ends are on this host.
    each = grown / (2 * (MANY - FEW))
    print(f"{each:.0f} bytes for each end of a connection")
    assert each <= CONNECTION_BYTES


def test_connections_that_open_between_windows_and_find_no_room_are_counted(rsa, tmp_path):
    """Both ends are on this host, in the one table."""
    tmp_path.chmod(0o755)
    config = tmp_path / "tlsprof.toml"
    config.write_text(lowest_rung.CONFIG)
    with nginx(tmp_path / "one", rsa, 1) as server, start_agent(["--config", config]) as agent:
        with servers.selftimed("epoll", rsa) as other:
            lowest_rung.lead_down(agent, other.port)
        lowest_rung.wait_between_windows(agent)
        with ExitStack() as held:
            for _ in range(MANY):
                held.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            assert bpf.entries(agent.process.pid, "addresses") == ROOM
        ended = lambda: [counted(agent, f"tlsprof_connections_{what}_total", **OURS) for what in ("opened", "closed")]
        wait_until(lambda: ended() == [MANY, MANY], "the opening and the end of all connections")
        assert not counted(agent, "tlsprof_agent_events_lost_total", reason="connection_no_memory")


def test_processes_cost_little_memory(rsa, tmp_path):
    tmp_path.chmod(0o755)

    def beside(children: int) -> int:
        with nginx(tmp_path / str(children), rsa, children) as server, start_agent() as agent:
            with ExitStack() as held:
                open_connections(server, 1, held)
            done = lambda: counted(agent, "tlsprof_handshakes_total", outcome="completed", **OURS)
            wait_until(lambda: done() == 1, "a handshake")
            return resident(agent.process.pid)

    few, many = beside(2), beside(CHILDREN)
    each = (many - few) / CHILDREN
    print(f"{each / 1024:.1f} KiB for each process, {many / 2**20:.1f} MiB in all")
    assert each <= PROCESS_BYTES and many <= BESIDE_BYTES
