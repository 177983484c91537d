"""Processes of the tests: started in groups of their own, always ended."""

import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Iterable, Optional, Sequence, Union

from .paths import WORKER
from .waiting import wait_until

STOP_SECONDS = 10.0
LONG_SECONDS = 300.0
"""Bound for what ends by itself, on a busy host with a slow disk."""

Argument = Union[str, Path, int]


class Process:
    """A child with its output kept, in its own process group.

    Use it as a context manager: the end of the block stops it and whatever it
    started in its group, also when a test fails.
    """

    def __init__(
        self,
        command: Sequence[Argument],
        env: Optional[dict[str, str]] = None,
        cwd: Optional[Path] = None,
        stop_signal: int = signal.SIGTERM,
        cpu: Optional[int] = None,
        user: Optional[str] = None,
    ):
        self.command = [str(argument) for argument in command]
        if cpu is not None:
            self.command = ["taskset", "-c", str(cpu), *self.command]
        self._stop_signal = stop_signal
        self.child = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            user=user,
            start_new_session=True,
        )
        self._lines = queue.SimpleQueue()
        self._output = {"stdout": [], "stderr": []}
        self._ended_streams = 0
        self._readers = [
            threading.Thread(target=self._read, args=(name,), daemon=True) for name in self._output
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def stdout(self) -> str:
        return "".join(self._output["stdout"])

    @property
    def stderr(self) -> str:
        return "".join(self._output["stderr"])

    def alive(self) -> bool:
        return self.child.poll() is None

    def wait_for_line(self, text: str, timeout: float = 60.0) -> str:
        """The first line of either stream that contains `text`."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"no {text!r} from {self.describe()}") from None
            self._ended_streams += line is None
            if line is None and (self._ended_streams == len(self._output) or not self.alive()):
                raise RuntimeError(f"ended without {text!r}: {self.describe()}")
            if line is not None and text in line:
                return line.rstrip("\n")

    def wait(self, timeout: float) -> int:
        """Exit status, once its output has been read to the end."""
        status = self.child.wait(timeout)
        for reader in self._readers:
            reader.join(timeout=STOP_SECONDS)
        return status

    def send(self, number: int) -> None:
        self.child.send_signal(number)

    def say(self, line: str) -> None:
        """Writes a line to its standard input."""
        self.child.stdin.write(f"{line}\n".encode())
        self.child.stdin.flush()

    def stop(self, timeout: float = STOP_SECONDS) -> int:
        """Asks it to end, waits, and ends its whole group if it does not."""
        if self.alive():
            self.send(self._stop_signal)
            try:
                self.child.wait(timeout)
            except subprocess.TimeoutExpired:
                pass
        self._kill_group()
        return self.wait(LONG_SECONDS)

    def describe(self) -> str:
        return f"{' '.join(self.command)}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_exception) -> None:
        self.stop()

    def _kill_group(self) -> None:
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _read(self, name: str) -> None:
        stream = getattr(self.child, name)
        for line in iter(stream.readline, b""):
            text = line.decode(errors="replace")
            self._output[name].append(text)
            self._lines.put(text)
        self._lines.put(None)


def run(command: Iterable[Argument], timeout: float = LONG_SECONDS, **options) -> Process:
    """Runs a command to its end."""
    with Process(list(command), **options) as process:
        process.child.stdin.close()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"still running after {timeout:g} s: {process.describe()}") from None
    return process


def private_copy(program: str, folder: Path, name: Optional[str] = None) -> Path:
    """A program under a name of its own in `folder`, and so a service of its own: the host and
    other tests may run the same program, and a service is named by its executable. By default the
    name is `name_of_copy`; `name` is for tests of what is said to users of a server that is known
    by its name."""
    found = shutil.which(program)
    assert found, f"{program} is not installed"
    original, copy = Path(found).resolve(), folder / (name or name_of_copy(found, folder))
    if copy.exists():
        return copy
    try:
        copy.hardlink_to(original)
    except OSError:  # another file system
        shutil.copy(original, copy)
    return copy


def name_of_copy(program: Union[str, Path], folder: Path) -> str:
    """The names of the program and of the folder, and of the worker: others have such folders, too."""
    return "-".join(filter(None, (Path(program).name, folder.name, WORKER)))


def children(pid: int) -> list[int]:
    """Direct children of a process."""
    tasks = Path(f"/proc/{pid}/task")
    found = []
    for task in tasks.iterdir():
        # A thread may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def wait_gone(pid: int, timeout: float = LONG_SECONDS) -> None:
    """Waits until a process that is not our child has ended."""
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), f"end of process {pid}", timeout)
