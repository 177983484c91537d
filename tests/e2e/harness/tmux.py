"""A terminal that a program runs in: tmux, with a server of its own."""

import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator

from .processes import Argument
from .waiting import NotReached, wait_until

PROMPT = "ready> "
LOOKS = 50


@dataclass(frozen=True)
class Terminal:
    """A shell in a terminal; its prompt is `PROMPT`."""

    socket: Path

    def tmux(self, *arguments: Argument) -> str:
        """Runs a command of tmux; what it prints."""
        command = ["tmux", "-S", self.socket, *arguments]
        done = subprocess.run(
            [str(word) for word in command], check=True, capture_output=True, text=True, timeout=30
        )
        return done.stdout

    def screen(self, colours: bool = False) -> str:
        """What is on the screen, with escape codes if `colours`. A program may be in the middle of writing it: it is what
        two looks in a row show."""
        look = lambda: self.tmux("capture-pane", "-p", *(["-e"] if colours else []))
        seen = look()
        for _ in range(LOOKS):
            before, seen = seen, look()
            if seen == before:
                break
        return seen

    def lines(self) -> list[str]:
        return self.screen().splitlines()

    def keys(self, *names: str) -> None:
        """Presses keys by tmux's names, such as `Enter`, or types a word."""
        self.tmux("send-keys", *names)

    def type(self, command: str) -> None:
        """Types a line for the shell."""
        self.tmux("send-keys", "-l", command)
        self.keys("Enter")

    def wait_for(self, condition: Callable[[str], object], what: str, timeout: float = 60.0) -> str:
        """The first screen of which `condition` holds."""

        def found() -> str:
            screen = self.screen()
            return screen if condition(screen) else ""

        try:
            return wait_until(found, what, timeout)
        except NotReached as error:
            raise NotReached(f"{error}\n{self.screen()}") from None

    def wait_for_text(self, *texts: str, timeout: float = 60.0) -> str:
        return self.wait_for(lambda screen: all(text in screen for text in texts), f"{texts}", timeout)

    def press_until(self, key: str, *texts: str) -> str:
        """Presses a key and waits for what it shows."""
        self.keys(key)
        return self.wait_for_text(*texts)

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-x", columns, "-y", rows)

    def format(self, variable: str) -> str:
        """A variable of tmux's, such as `cursor_flag`."""
        return self.tmux("display-message", "-p", f"#{{{variable}}}").strip()


@contextmanager
def terminal(folder: Path, columns: int = 80, rows: int = 24) -> Iterator[Terminal]:
    """A terminal of that size; its programs get SIGHUP at the end."""
    one = Terminal(folder / "tmux")
    shell = f"PS1='{PROMPT}' exec sh"
    one.tmux("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, shell)
    try:
        # Else the only window follows clients, of which there are none.
        one.tmux("set-option", "-g", "window-size", "manual")
        one.wait_for_text(PROMPT.strip())
        yield one
    finally:
        # A test may have ended it.
        subprocess.run(["tmux", "-S", one.socket, "kill-server"], capture_output=True, timeout=30)
