"""The servers that people run, by name: each entry starts one on a certificate."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Callable

from . import servers, web_servers
from .certificates import Certificate
from .servers import Server

Start = Callable[[Path, Certificate], AbstractContextManager[Server]]

SERVERS: dict[str, Start] = {
    "nginx": web_servers.nginx,
    "apache-worker": lambda folder, cert: web_servers.apache(folder, cert, "worker"),
    "apache-event": lambda folder, cert: web_servers.apache(folder, cert, "event"),
    "haproxy": web_servers.haproxy,
    "stunnel": web_servers.stunnel,
    "node": servers.node,
    "asyncio": lambda folder, cert: servers.python(folder, "asyncio_server.py", cert),
    "threaded-python": lambda folder, cert: servers.python(folder, "threaded_server.py", cert),
    "s_server": servers.s_server,
}
