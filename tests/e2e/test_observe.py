"""`make observe`: what it prints is there, and nothing is left when it is told to go."""

import json
import os
import signal
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Optional, Sequence

import pytest

from harness.grafana import PACKAGED, grafana_home
from harness.network import free_port
from harness.observatory import TODAY, Observatory
from harness.paths import ROOT
from harness.processes import Argument, Process, children, wait_gone
from harness.today import of_today
from harness.waiting import wait_until

OBSERVE = ROOT / "deploy" / "observe" / "observe.sh"
ATTACH_SECONDS = 120.0


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that nginx's workers, who are nobody, may look into: pytest's are closed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


DEBIANS, OF_TODAY = "Debian's Prometheus", "Prometheus of today"
PROMETHEUS = [DEBIANS, of_today(OF_TODAY)]
NATIVE = "histogram_count(tlsprof_connection_duration_seconds)"
"""Of native histograms alone."""


@dataclass(frozen=True)
class Observed:
    """`make observe` at work: where things are, and what it has started."""

    process: Process
    agent: str
    prometheus: Observatory
    line: str
    """What it prints of Grafana."""

    started: list[int]


@contextmanager
def observing(folder: Path, command: Sequence[Argument] = (OBSERVE,), **more: str) -> Iterator[Observed]:
    agent, prometheus, grafana = free_port(), free_port(), free_port()
    environment = {
        "OBSERVE_AGENT_PORT": str(agent),
        "OBSERVE_PROMETHEUS_PORT": str(prometheus),
        "OBSERVE_GRAFANA_PORT": str(grafana),
        "OBSERVE_LOAD": "1",
        "TMPDIR": str(folder),
        "TLSPROF": os.environ.get("TLSPROF", ""),
        **more,
    }
    with Process(command, env={name: value for name, value in environment.items() if value}) as process:
        line = process.wait_for_line("Grafana", ATTACH_SECONDS)
        found = Observatory(f"http://127.0.0.1:{prometheus}")
        yield Observed(process, f"http://127.0.0.1:{agent}", found, line, children(process.pid))


def ends(observed: Observed, signal_number: int, status: int, folder: Path) -> None:
    """Told to go, it leaves nothing."""
    observed.process.send(signal_number)
    assert observed.process.wait(30.0) == status, observed.process.describe()
    for pid in observed.started:
        wait_gone(pid)
    assert list(folder.glob("tlsprof-observe.*")) == []


@pytest.mark.parametrize("kind", PROMETHEUS)
def test_observe_watches_and_leaves_nothing(open_folder, kind):
    path = f"{TODAY.parent}:{os.environ['PATH']}" if kind == OF_TODAY else os.environ["PATH"]
    with observing(open_folder, PATH=path) as observed:
        with urllib.request.urlopen(f"{observed.agent}/metrics", timeout=10) as answer:
            assert answer.status == 200

        def has_native_histograms() -> bool:
            assert observed.process.alive(), observed.process.describe()
            return bool(observed.prometheus.query(NATIVE, time.time()))

        wait_until(has_native_histograms, "a native histogram")
        rules = {rule["name"] for rule in observed.prometheus.rules()}
        assert {"TlsprofAgentDown", "TlsprofHandshakeFailures", "service:tlsprof_cpu:rate5m"} <= rules
        assert len(observed.started) >= 4
        ends(observed, signal.SIGINT, 0, open_folder)


UNPACKED, PACKAGED_KIND = "unpacked", "of a package"
WRAPPER = """#!/bin/sh
/usr/share/grafana/bin/grafana "$@"
"""
"""As /usr/sbin/grafana of the .deb and .rpm: the Grafana that it starts stays when the wrapper is ended."""
AS_PACKAGED = """
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work"
mount -t overlay none -o "lowerdir=/usr/share,upperdir=$1/upper,workdir=$1/work" /usr/share
mkdir -p /usr/share/grafana
mount --bind "$2" /usr/share/grafana
exec "$3"
"""
"""In a mount namespace of its own, Grafana is where its packages put it."""


def with_grafana(kind: str, folder: Path) -> dict[str, Any]:
    """Arguments of `observing`."""
    home = grafana_home()
    if kind == UNPACKED:
        return {"GRAFANA_HOME": str(home)}
    programs, mounts = folder / "sbin", folder / "mounts"
    programs.mkdir()
    mounts.mkdir()
    wrapper = programs / "grafana"
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)
    command = ["unshare", "--mount", "sh", "-ec", AS_PACKAGED, "sh", mounts, home, OBSERVE]
    return {"command": command, "PATH": f"{programs}:{os.environ['PATH']}"}


def dashboard(home: str, uid: str) -> Optional[dict]:
    try:
        with urllib.request.urlopen(f"{home}/api/dashboards/uid/{uid}", timeout=20) as answer:
            return json.load(answer)["dashboard"]
    except OSError:
        return None


@pytest.mark.parametrize("kind", [UNPACKED, pytest.param(PACKAGED_KIND, marks=pytest.mark.long)])
@pytest.mark.skipif(grafana_home() is None, reason="no Grafana: GRAFANA_HOME names none, and no package is there")
def test_observe_shows_the_last_minutes_in_grafana(open_folder, kind, monkeypatch):
    """Ended by a signal that no terminal sends to its whole group: Grafana goes, too."""
    arguments = with_grafana(kind, open_folder)
    monkeypatch.delenv("GRAFANA_HOME", raising=False)
    with observing(open_folder, **arguments) as observed:
        address = observed.line.split()[1]
        home, _, query = address.partition("/d/tlsprof-overview?")
        assert query == "from=now-15m"
        board = wait_until(lambda: dashboard(home, "tlsprof-overview"), "Grafana to have read the dashboards", 120.0)
        assert board["title"] == "tlsprof / Overview"
        programs = {Path(f"/proc/{pid}/exe").resolve().name for pid in observed.started}
        assert {"grafana", "prometheus"} <= programs
        ends(observed, signal.SIGTERM, 143, open_folder)


@pytest.mark.skipif(PACKAGED.exists(), reason="Grafana is installed")
def test_observe_says_that_grafana_is_missing(open_folder):
    with observing(open_folder, GRAFANA_HOME=str(open_folder)) as observed:
        assert "not installed" in observed.line and "GRAFANA_HOME" in observed.line
        ends(observed, signal.SIGINT, 0, open_folder)


def test_observe_says_what_ended(tmp_path):
    broken = tmp_path / "tlsprof"
    broken.write_text("#!/bin/sh\necho no BPF here >&2\nexit 1\n")
    broken.chmod(0o755)
    with Process([OBSERVE], env={"TLSPROF": str(broken), "TMPDIR": str(tmp_path)}) as process:
        assert process.wait(30.0) == 1
        assert "no BPF here" in process.stderr
    assert list(tmp_path.glob("tlsprof-observe.*")) == []
