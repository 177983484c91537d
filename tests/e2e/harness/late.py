"""A server that accepts late, clients that wait for it, and what the kernel says of both."""

import re
import shutil
import socket
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Sequence

from .paths import SERVERS
from .plain_nginx import unique
from .processes import Argument, Process, run
from .servers import START_SECONDS, SYSTEM_PYTHON
from .waiting import wait_until


@dataclass(frozen=True)
class LateServer:
    """A server of `tests/servers/late_server.py`, and the command that runs others beside it."""

    name: str
    host: str
    port: int
    process: Process
    inside: Sequence[Argument]

    def accept(self, count: int) -> None:
        """Lets it accept so many connections; returns when it has."""
        self.process.say(str(count))
        self.process.wait_for_line(f"accepted {count}")

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), 10.0)

    @contextmanager
    def crowd(self, count: int) -> Iterator[None]:
        """So many clients that connect, or try to."""
        command = [SYSTEM_PYTHON, SERVERS / "waiting_clients.py", self.host, self.port, count]
        with Process([*self.inside, *command]) as clients:
            clients.wait_for_line("connecting")
            yield

    def _seen_by_ss(self) -> str:
        done = run([*self.inside, "ss", "-HOlntm", f"sport = :{self.port}"])
        assert done.child.returncode == 0, done.describe()
        return done.stdout

    def waiting(self) -> int:
        """Length of its accept queue."""
        return int(self._seen_by_ss().split()[1])

    def drops(self) -> int:
        """Packets that its listening socket dropped."""
        match = re.search(r"skmem:\(.*,d(\d+)\)", self._seen_by_ss())
        assert match
        return int(match[1])

    def wait_for_queue(self, length: int) -> None:
        wait_until(lambda: self.waiting() == length, f"{length} connections in the queue")


@contextmanager
def late_server(
    folder: Path, name: str, backlog: int, host: str = "127.0.0.1", inside: Sequence[Argument] = ()
) -> Iterator[LateServer]:
    """A Python with a name, and so a service, of its own."""
    name = unique(name)
    program = folder / name
    shutil.copy(Path(SYSTEM_PYTHON).resolve(), program)
    with Process([*inside, program, SERVERS / "late_server.py", host, backlog]) as process:
        port = int(process.wait_for_line("port ", START_SECONDS).split()[1])
        yield LateServer(name, host, port, process, inside)


def listen_overflows(pid: int) -> int:
    """The kernel's count for the network namespace of a process."""
    names, values = [
        line.split()
        for line in Path(f"/proc/{pid}/net/netstat").read_text().splitlines()
        if line.startswith("TcpExt:")
    ]
    return int(values[names.index("ListenOverflows")])
