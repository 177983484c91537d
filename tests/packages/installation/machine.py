"""A Debian machine with systemd as its first process, in a container of this host.

The kernel is the host's, and so are the capabilities that the service there has: what the unit
closes is closed as on a real machine.
"""

import os
import platform
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator

import pytest

from harness.paths import PROGRAMS
from harness.suites import Unobtainable
from harness.waiting import wait_until

CACHE = PROGRAMS / "machine"
INCLUDED = ("systemd", "systemd-sysv", "dbus", "curl", "openssl", "bash-completion", "man-db")

BOOTSTRAP_SECONDS = 900.0
BOOT_SECONDS = 120.0
COMMAND_SECONDS = 120.0

HIERARCHIES = (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*"))
"""Where systemd-nspawn makes the groups `payload` and `supervisor`, and leaves them."""


def base() -> Path:
    """A root file system of the host's own release, packed; made at the first use."""
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")
    kept = CACHE / f"{suite}.tar"
    if not kept.is_file():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            made = Path(folder) / kept.name
            _bootstrap(suite, made)
            made.rename(kept)  # all or nothing: a run that is cut short leaves no half
    return kept


def _bootstrap(suite: str, made: Path) -> None:
    command = ["mmdebstrap", "--variant=minbase", f"--include={','.join(INCLUDED)}"]
    # Man pages are under test; documents of other packages are not.
    command += ["--dpkgopt=path-exclude=/usr/share/locale/*", suite, str(made)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=BOOTSTRAP_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unobtainable(f"Debian {suite}: over {BOOTSTRAP_SECONDS:g} s") from None
    if done.returncode != 0:
        raise Unobtainable(f"Debian {suite}: {done.stderr[-500:]}")


@contextmanager
def unpacked_root(folder: Path) -> Iterator[Path]:
    """A fresh root file system in a folder, until the end of the block; skips where none can be."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a machine in a container")
    try:
        packed = base()
    except Unobtainable as why:
        pytest.skip(f"no root file system can be had: {why}")
    root = folder / "root"
    root.mkdir()
    subprocess.run(["tar", "--extract", "--file", packed, "--directory", root], check=True)
    try:
        yield root
    finally:
        shutil.rmtree(root)  # pytest keeps the folders of three runs


class Machine:
    """One that runs; see `booted`."""

    def __init__(self, root: Path, leader: int):
        self.root = root
        self._leader = leader

    def attempt(self, *command: object) -> subprocess.CompletedProcess:
        """Runs a command there, whatever comes of it."""
        inside = ["nsenter", f"--target={self._leader}", "--all", *map(str, command)]
        return subprocess.run(
            inside,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"},
        )

    def run(self, *command: object) -> str:
        """What a command prints there; it must succeed."""
        done = self.attempt(*command)
        shown = f"{command} ended with status {done.returncode}:\n{done.stdout}\n{done.stderr}"
        assert done.returncode == 0, shown
        return done.stdout

    def property(self, unit: str, name: str) -> str:
        """A property of a unit, as systemd tells it."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()

    def path(self, inside: str) -> Path:
        """A file there, seen from here."""
        return self.root / inside.lstrip("/")

    def give(self, file: Path) -> str:
        """Copies a file there; returns where it is."""
        shutil.copy(file, self.path(f"/root/{file.name}"))
        return f"/root/{file.name}"


@contextmanager
def booted(root: Path, console: Path) -> Iterator[Machine]:
    """The machine of an unpacked root file system, until the end of the block."""
    groups = [path / name for path in HIERARCHIES for name in ("payload", "supervisor")]
    foreign = [path for path in groups if path.exists()]
    command = ["systemd-nspawn", f"--directory={root}", "--boot", "--quiet", "--console=pipe"]
    command += ["--register=no", "--keep-unit", "--private-network", "--capability=all"]
    command += ["--system-call-filter=bpf perf_event_open", "--resolv-conf=off"]
    with open(console, "w") as output:
        nspawn = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            machine = Machine(root, _leader(nspawn, console))
            wait_until(lambda: _is_up(machine), "the machine is up", BOOT_SECONDS)
            yield machine
            machine.attempt("systemctl", "--no-block", "poweroff")
            nspawn.wait(BOOT_SECONDS)
        finally:
            _end(nspawn)
            for path in groups:
                if path.exists() and path not in foreign:
                    _remove_groups(path)


def _end(nspawn: subprocess.Popen) -> None:
    """Ends what is left: a machine outlives its nspawn, but not its own first process."""
    for pid in [one for child in _children(nspawn.pid) for one in (*_children(child), child)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    nspawn.kill()
    nspawn.wait()


def _leader(nspawn: subprocess.Popen, console: Path) -> int:
    """The machine's first process, a child of nspawn; at first there is another in between."""

    def found() -> list[int]:
        assert nspawn.poll() is None, f"systemd-nspawn ended:\n{console.read_text()}"
        children = _children(nspawn.pid)
        below = [one for child in children for one in _children(child)]
        return [pid for pid in (*children, *below) if _name(pid) == "systemd"]

    return wait_until(found, "systemd starts", BOOT_SECONDS)[0]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _is_up(machine: Machine) -> bool:
    """Degraded where another unit failed, which a busy host brings about; it is not under test."""
    state = machine.attempt("systemctl", "is-system-running").stdout.strip()
    return state in ("running", "degraded")


def _remove_groups(path: Path) -> None:
    for folder, _, _ in os.walk(path, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            return  # something still ends there; an empty group harms nobody
