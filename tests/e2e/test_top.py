"""`tlsprof top` in a real terminal, over a real server under load."""

import os
import re
import shutil
import signal
from pathlib import Path
from typing import Iterator

import pytest
from harness import web_servers
from harness.load import Load, Seen, run_load
from harness.paths import TLSPROF
from harness.processes import run, wait_gone
from harness.servers import Server
from harness.tmux import PROMPT, Terminal, terminal
from harness.waiting import wait_until

SERVICE = "watched-nginx"
ATTACHED = "every 1 s"
ATTACH_SECONDS = 90.0
SIZES = [(80, 24), (120, 40)]


@pytest.fixture(scope="module")
def server(rsa, tmp_path_factory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("nginx")
    folder.chmod(0o755)
    program = folder / SERVICE
    shutil.copy(shutil.which("nginx"), program)
    with web_servers.nginx(folder, rsa, program=program) as running:
        yield running
        # Whatever was done to it, it serves on.
        assert run_load(Load(full=5), running.port).completed == 5


@pytest.fixture
def shell(tmp_path) -> Iterator[Terminal]:
    with terminal(tmp_path) as one:
        yield one


def start(shell: Terminal, *options: str, environment: str = "") -> None:
    shell.type(f"{environment} {TLSPROF} top --interval 1s {' '.join(options)}; echo status=$?")
    shell.wait_for_text(ATTACHED, "q quit", timeout=ATTACH_SECONDS)


def top_pid(shell: Terminal) -> int:
    """The process that the shell waits for."""
    parent = shell.format("pane_pid")
    (child,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(child)


def names(screen: str) -> list[str]:
    """The first column of the list."""
    rows = screen.splitlines()
    header = next(at for at, row in enumerate(rows) if row.startswith(" service"))
    return [row.split()[0] for row in rows[header + 1 : -1] if row.strip()]


def load(server: Server, **kinds: int) -> Seen:
    return run_load(Load(**kinds), server.port)


def assert_sane(shell: Terminal, status: int) -> None:
    """The shell has its terminal back as it was."""
    ended, prompt = f"status={status}", PROMPT.strip()
    shell.wait_for(lambda screen: ended in screen and screen.rstrip().endswith(prompt), "the prompt")
    assert shell.format("alternate_on") == "0"
    assert shell.format("cursor_flag") == "1"
    shell.type("stty -a | tr ' ;' '\\n\\n' | grep -xE -- '-?(echo|icanon|isig|opost)' | paste -sd,")
    shell.wait_for(lambda screen: re.search(r"^isig,icanon,echo,opost$|^opost,isig,icanon,echo$", screen, re.M), "stty")


def test_counts_are_those_of_the_load(server, shell):
    start(shell, "--service", SERVICE)
    seen = load(server, full=60, resume=40, garbage=5)
    assert (seen.completed, seen.resumed) == (100, 40)
    shell.wait_for_text(f" {SERVICE} ")
    shell.press_until("Enter", "1 Now", f" {SERVICE}  ")
    shell.press_until("2", "105 handshakes", "100 completed, 5 failed, 0 abandoned", "40.0%")
    shell.press_until("3", "TCP connections", "server")
    shell.wait_for(lambda screen: re.search(r"server +105 ", screen), "105 connections opened")
    shell.press_until("Escape", "hs/s")
    shell.keys("q")
    assert_sane(shell, 0)


def test_figures_stand_still_while_it_is_paused(server, shell):
    start(shell, "--service", SERVICE)
    load(server, full=20)
    shell.wait_for_text(f" {SERVICE} ")
    shell.press_until("Enter", "1 Now")
    shell.press_until("2", "20 handshakes")
    paused = shell.press_until("p", "PAUSED")
    load(server, full=30)
    looked = lambda: _looks(top_pid(shell))
    before = looked()
    # It looks for figures 20 times a second: over two intervals.
    wait_until(lambda: looked() > before + 50, "the screen to have had news")
    assert shell.screen() == paused
    shell.press_until("1", "As a server", "PAUSED")
    shell.press_until("2", "20 handshakes", "PAUSED")
    shell.keys("p")
    screen = shell.wait_for_text("50 handshakes")
    assert "PAUSED" not in screen
    shell.keys("q")
    assert_sane(shell, 0)


def _looks(pid: int) -> int:
    """How often the thread of the screen went to sleep."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M).group(1))


def test_the_list_is_sorted_filtered_and_opened_by_keys(server, shell):
    start(shell)
    load(server, full=20)
    shell.wait_for_text(SERVICE, "cores▼")
    shell.keys("Left")
    rises = lambda screen: SERVICE in screen and names(screen) == sorted(names(screen))
    shell.wait_for(lambda screen: "service▲" in screen and rises(screen), "services by name")
    shell.keys("r")
    falls = lambda screen: names(screen) == sorted(names(screen), reverse=True)
    shell.wait_for(lambda screen: "service▼" in screen and falls(screen), "services by name from the end")
    shell.press_until("/", "services matching /")
    shell.press_until("ed-ng", "services matching /ed-ng")
    shell.keys("Enter")
    filtered = shell.wait_for(lambda screen: names(screen) == [SERVICE], "the only service")
    assert "/ed-ng" in filtered
    shell.press_until("Enter", f" {SERVICE}  ", "1 Now")
    shell.press_until("?", "Help", "TIME_WAIT sockets")
    shell.keys("Escape")
    shell.wait_for(lambda screen: "Help" not in screen, "help to close")
    shell.press_until("Escape", "/ed-ng")
    shell.keys("Escape")
    shell.wait_for(lambda screen: "/ed-ng" not in screen, "the filter to go")
    shell.keys("C-c")
    assert_sane(shell, 0)


def test_it_fits_terminals_and_follows_their_size(server, shell):
    start(shell, "--service", SERVICE)
    load(server, full=20, resume=20)
    shell.wait_for_text(f" {SERVICE} ")
    for columns, rows in [*SIZES, SIZES[0]]:
        shell.resize(columns, rows)
        header = "handshakes/s" if columns >= 100 else "hs/s"
        shell.wait_for_text(header, "q quit")
        for tab in ("1 Now", "2 Handshakes", "3 Connections", "4 Findings"):
            shell.keys("Enter")
            screen = shell.press_until(tab[0], tab, "Esc back")
            lines = screen.splitlines()
            # Nothing wraps: the head is at the top, and the keys are on the last row.
            assert lines[0].startswith(" tlsprof top") and lines[0].rstrip().endswith(ATTACHED)
            assert len(lines) == rows and " Esc back" in lines[-1]
            shell.press_until("Escape", header)
    shell.keys("q")
    assert_sane(shell, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_as_q_does(server, shell, number):
    start(shell, "--service", SERVICE)
    os.kill(top_pid(shell), number)
    assert_sane(shell, 0)


def test_a_terminal_that_goes_away_ends_it(server, tmp_path):
    """As when a connection over ssh breaks."""
    with terminal(tmp_path) as shell:
        start(shell, "--service", SERVICE)
        pid = top_pid(shell)
        os.kill(int(shell.format("pid")), signal.SIGKILL)
        wait_gone(pid, ATTACH_SECONDS)


def test_colours_are_left_out_where_they_are_not_wanted(server, shell):
    coloured = re.compile(r"\x1b\[(?:[\d;]*;)?(?:3[0-7]|9[0-7]|38;5;\d+)m")
    start(shell, "--service", SERVICE)
    load(server, full=5)
    shell.wait_for_text(f" {SERVICE} ")
    wait_until(lambda: coloured.search(shell.screen(colours=True)), "colours")
    shell.keys("q")
    assert_sane(shell, 0)
    shell.type("clear")
    start(shell, "--service", SERVICE, environment="NO_COLOR=1")
    load(server, full=5)
    shell.wait_for_text(f" {SERVICE} ")
    assert not coloured.search(shell.screen(colours=True))
    shell.keys("q")


def test_without_a_terminal_it_names_the_report(shell):
    done = run([TLSPROF, "top"])
    assert done.child.returncode == 1 and "tlsprof report" in done.stderr, done.describe()
    shell.type(f"TERM=dumb {TLSPROF} top; echo status=$?")
    assert "tlsprof report" in " ".join(shell.wait_for_text("status=1").split())
