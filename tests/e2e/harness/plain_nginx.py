"""nginx without TLS under a name of its own, wherever wanted, and a client for it.

The copies have names of their own so that an nginx of somebody else on the host
is another service.
"""

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Sequence

from .paths import SERVERS
from .processes import Argument, Process, run
from .servers import SYSTEM_PYTHON, Server, nginx_folders, on_free_port

CONFIG = """
daemon off;
master_process off;
pid {folder}/{name}.pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
    access_log off;
    keepalive_requests {limit};
    {folders}
    server {{
        listen {address}:{port}{parameters};
        {extra}
    }}
}}
"""

ANSWER = 'location / { return 200 "ok\\n"; }'


def unique(name: str) -> str:
    """A name that no other run of these tests uses."""
    return f"{name}-{os.getpid()}"


@contextmanager
def nginx(
    folder: Path,
    name: str,
    limit: int = 1_000_000,
    extra: str = ANSWER,
    address: str = "127.0.0.1",
    parameters: str = "",
    inside: Sequence[Argument] = (),
) -> Iterator[Server]:
    """One nginx process; `limit` is its number of requests per connection. `inside` is a
    command that runs it elsewhere, such as in a network namespace."""
    name = unique(name)
    program = folder / name
    shutil.copy(shutil.which("nginx"), program)
    config = folder / f"{name}.conf"
    values = dict(folder=folder, name=name, folders=nginx_folders(folder, name), limit=limit, extra=extra)

    def start(port: int) -> Process:
        config.write_text(CONFIG.format(address=address, parameters=parameters, port=port, **values))
        return Process([*inside, program, "-e", "stderr", "-c", config])

    with on_free_port(start) as server:
        yield server


REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
"""What tests/servers/http_client.py sends."""


def request(port: int, requests: int, certificate: Argument = "", inside: Sequence[Argument] = ()) -> int:
    """Makes requests; returns how many connections they took."""
    done = run([*inside, SYSTEM_PYTHON, SERVERS / "http_client.py", port, requests, certificate])
    assert done.child.returncode == 0, done.describe()
    seen = json.loads(done.stdout)
    assert seen["requests"] == requests
    return seen["connections"]
