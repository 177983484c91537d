"""`make observe`: what it prints is there, and nothing is left when it is told to go."""

import os
import signal
import tempfile
import urllib.request
from pathlib import Path
from typing import Iterator

import pytest

from harness.network import free_port
from harness.observatory import Observatory
from harness.paths import ROOT
from harness.processes import Process, children, wait_gone
from harness.waiting import wait_until

pytestmark = pytest.mark.alone

OBSERVE = ROOT / "deploy" / "observe" / "observe.sh"
ATTACH_SECONDS = 120.0


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that nginx's workers, who are nobody, may look into: pytest's are closed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_observe_watches_and_leaves_nothing(open_folder):
    agent, prometheus, grafana = free_port(), free_port(), free_port()
    ports = {
        "OBSERVE_AGENT_PORT": str(agent),
        "OBSERVE_PROMETHEUS_PORT": str(prometheus),
        "OBSERVE_GRAFANA_PORT": str(grafana),
    }
    environment = {
        **ports,
        "OBSERVE_LOAD": "1",
        "TMPDIR": str(open_folder),
        "TLSPROF": os.environ.get("TLSPROF", ""),
    }
    with Process([OBSERVE], env={name: value for name, value in environment.items() if value}) as process:
        process.wait_for_line("Grafana", ATTACH_SECONDS)
        with urllib.request.urlopen(f"http://127.0.0.1:{agent}/metrics", timeout=10) as answer:
            assert answer.status == 200
        observatory = Observatory(f"http://127.0.0.1:{prometheus}")

        def scraped() -> bool:
            assert process.alive(), process.describe()
            return observatory.last_scrape() > 0

        wait_until(scraped, "a scrape of the agent", 30.0)
        rules = {rule["name"] for rule in observatory.rules()}
        assert {"TlsprofAgentDown", "TlsprofHandshakeFailures", "service:tlsprof_cpu:rate5m"} <= rules
        started = children(process.pid)
        assert len(started) >= 4
        process.send(signal.SIGINT)
        assert process.wait(30.0) == 0, process.describe()
    for pid in started:
        wait_gone(pid)
    assert list(open_folder.glob("tlsprof-observe.*")) == []


def test_observe_says_what_ended(tmp_path):
    broken = tmp_path / "tlsprof"
    broken.write_text("#!/bin/sh\necho no BPF here >&2\nexit 1\n")
    broken.chmod(0o755)
    with Process([OBSERVE], env={"TLSPROF": str(broken), "TMPDIR": str(tmp_path)}) as process:
        assert process.wait(30.0) == 1
        assert "no BPF here" in process.stderr
    assert list(tmp_path.glob("tlsprof-observe.*")) == []
