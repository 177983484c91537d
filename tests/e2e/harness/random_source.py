"""Random numbers for OpenSSL that come through a FIFO: at once, or late."""

import os
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from struct import unpack
from termios import FIONREAD
from typing import Iterator

from .paths import RANDOM_PIPE

LATE_SECONDS = 0.002
CHUNK = 128
"""Bytes at a time of a source that is late."""
PLENTY = 1 << 16

CONFIG = """
openssl_conf = all
[all]
providers = providers
random = random
[providers]
default = builtin
pipe = pipe
[builtin]
activate = 1
[pipe]
module = {module}
activate = 1
source = {source}
waited = {waited}
[random]
random = PIPE
"""


@dataclass(frozen=True)
class RandomSource:
    """What makes a server take its random numbers from a FIFO, in its environment."""

    env: dict[str, str]
    waited: Path

    def wait_seconds(self) -> float:
        """Time that servers were in reads of it so far."""
        return unpack("=Q", self.waited.read_bytes())[0] / 1e9


@contextmanager
def random_fifo(folder: Path, name: str, late: bool) -> Iterator[RandomSource]:
    """A FIFO of that name, filled until the block ends. A late one gets the next bytes a while after
    it was seen empty, else there is always enough. Servers are to be started and ended inside."""
    fifo, config, waited = folder / name, folder / "openssl.cnf", folder / "waited"
    waited.write_bytes(bytes(8))
    config.write_text(CONFIG.format(module=RANDOM_PIPE, source=fifo, waited=waited))
    os.mkfifo(fifo)
    # Both ends, so that neither this nor the server's open waits for the other.
    end = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    stop = threading.Event()
    feed = threading.Thread(target=_feed, args=(end, stop, late))
    feed.start()
    try:
        yield RandomSource({"OPENSSL_CONF": str(config)}, waited)
    finally:
        stop.set()
        feed.join()
        os.close(end)


def _feed(end: int, stop: threading.Event, late: bool) -> None:
    while not stop.wait(LATE_SECONDS):
        is_empty = unpack("=i", ioctl(end, FIONREAD, bytes(4)))[0] == 0
        if is_empty or not late:
            with suppress(BlockingIOError):  # it is full
                os.write(end, os.urandom(CHUNK if late else PLENTY))
