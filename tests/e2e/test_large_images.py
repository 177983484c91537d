"""An executable file of hundreds of megabytes, under load: no event is lost while it is examined."""

import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from harness import web_servers
from harness.load import Load, Seen, run_load
from harness.processes import Process
from harness.profiler import LOG, Profiling
from harness.waiting import wait_until

# All that profile the host meanwhile would start later by the time that the image takes.
pytestmark = pytest.mark.host

SYMBOLS = 20_000_000
"""480 MB of them, and of their names: a little less than what is read of one table at most."""

MAPS = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
print("mapped", flush=True)
sys.stdin.read()
"""

LOADS = 100
"""At most: each takes about a second."""


def write_image(path: Path) -> Path:
    """A sparse ELF file with a page of code, and tables of symbols and names that are zeros but for a name
    for which symbols are searched (elf(5))."""
    page, entry = 4096, 24
    size = SYMBOLS * entry
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, page, page, page)
    sections = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, page, size, 2, 0, 8, entry),
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, page + size, size, 0, 0, 1, 0),
    ]
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, page + 2 * size, 0, 64, 56, 1, 64, len(sections), 0,
    )  # fmt: skip
    with path.open("wb") as file:
        file.write(header + load)
        file.seek(page + size)
        file.write(b"\0makecontext\0")
        file.seek(page + 2 * size)
        file.write(b"".join(sections))
    return path


@pytest.mark.long
def test_no_event_is_lost_while_it_is_examined(certificates, tmp_path):
    image = write_image(tmp_path / "large.so")
    load = Load(tls="1.3", full=100, resume=400)
    seen = Seen.nothing()
    with web_servers.nginx(tmp_path, certificates["ecdsa"], connections=4096) as server:
        with Profiling(tmp_path, *LOG) as profiling:
            with Process([sys.executable, "-c", MAPS, image]) as process:
                process.wait_for_line("mapped")
                examined = lambda: f"{image} took=" in profiling.log
                for _ in range(LOADS):
                    seen += run_load(load, server.port)
                    if examined():
                        break
                wait_until(examined, "the image examined", 60)
    assert not profiling.report.losses_of_events()
    nginx = profiling.report.on_port(server.port)
    assert seen.agrees_with(nginx.outcomes("server")), nginx


def test_no_event_is_lost_where_it_is_there_at_the_start(certificates, tmp_path):
    """The programs see all of the load from the moment they are attached, seconds before the window begins."""
    image = write_image(tmp_path / "early.so")
    load = Load(tls="1.3", full=100, resume=400)
    attached = Event()

    def until_attached(port: int) -> None:
        for _ in range(LOADS):
            run_load(load, port)
            if attached.is_set():
                return

    with web_servers.nginx(tmp_path, certificates["ecdsa"], connections=4096) as server:
        with Process([sys.executable, "-c", MAPS, image]) as process, ThreadPoolExecutor() as pool:
            process.wait_for_line("mapped")
            running = pool.submit(until_attached, server.port)
            try:
                with Profiling(tmp_path, *LOG) as profiling:
                    attached.set()
                    assert f"{image} took=" in profiling.log
            finally:
                attached.set()
            running.result()
    assert not profiling.report.losses_of_events()
