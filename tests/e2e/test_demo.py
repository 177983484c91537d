"""`make demo`: what it prints is what its load did, and the same by report, metrics and recording rule."""

import re
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from harness.outlets import seconds
from harness.paths import ROOT, TLSPROF
from harness.processes import Process, run
from harness.web_servers import nginx

pytestmark = pytest.mark.host

DEMO = ROOT / "deploy" / "demo" / "demo.sh"
SECONDS = 4
TICKS = 0.06
"""CPU seconds: the kernel shows user and system time of each of nginx's three processes in whole ticks of 10 ms."""
DEMO_SECONDS = 90.0
"""Bound for all of it on a busy machine."""


@pytest.fixture(scope="module")
def printed(rsa, tmp_path_factory) -> Iterator[str]:
    """By the demo on a host that has an nginx of its own, in a folder that nginx's workers may look into."""
    own = tmp_path_factory.mktemp("own")
    own.chmod(0o755)
    with tempfile.TemporaryDirectory() as folder, nginx(own, rsa) as another:
        Path(folder).chmod(0o755)
        more = ["ab", "-q", "-n", "100000", "-c", "1", f"https://127.0.0.1:{another.port}/"]
        environment = {"DEMO_SECONDS": str(SECONDS), "TLSPROF": str(TLSPROF), "TMPDIR": folder}
        with Process(more):
            done = run([DEMO], timeout=DEMO_SECONDS, env=environment)
        assert done.child.returncode == 0, done.describe()
        assert list(Path(folder).iterdir()) == []
        yield done.stdout


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, text
    return float(found.group(1).replace(",", ""))


def test_load_report_and_agent_count_the_same_handshakes(printed):
    by_load = number(r"The load itself counted (\d+) handshakes", printed)
    assert by_load > 0
    assert number(r"handshakes, the agent (\d+)\.", printed) == by_load
    assert number(r"([\d,]+) handshakes \([\d,.]+/s\): \1 completed, 0 failed, 0 abandoned", printed) == by_load
    assert number(r"([\d,]+) TLS handshakes\. ", " ".join(printed.split())) == by_load
    in_metrics = re.findall(r"^tlsprof_handshakes_total\{.*\} (\d+)", printed, re.M)
    assert sum(map(int, in_metrics)) == by_load


def test_its_rate_is_its_count_by_its_duration(printed):
    count, rate = re.search(r"([\d,]+) handshakes \(([\d,.]+)/s\)", printed).groups()
    duration = number(r"CPUs · ([\d.]+) s from ", printed)
    # The shell counts whole seconds of the clock.
    assert SECONDS - 1 < duration
    assert float(rate.replace(",", "")) == pytest.approx(float(count.replace(",", "")) / duration, rel=0.01)


def test_the_share_of_handshakes_is_the_same_everywhere(printed):
    words = " ".join(printed.split())
    headline = number(r"nginx spends ([\d.]+)% of its CPU on TLS handshakes", words)
    row = re.search(r"\n +nginx +([\d.]+ m?s) +[\d,]+ +[\d.]+ m?s +([\d.]+)%", printed)
    assert row, printed
    by_rule = number(r"According to the agent's metrics, they used ([\d.]+)% of the CPU", printed)
    assert 30 < headline == float(row.group(2))
    assert by_rule == pytest.approx(headline, rel=TICKS / seconds(row.group(1)))
