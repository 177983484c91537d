"""One Grafana over a made-up fleet, and a browser, for all tests of a file."""

import time
from pathlib import Path
from typing import Iterator

import pytest
from fleet import SMALL, Host, write
from harness.browser import launched
from harness.grafana import Grafana, grafana, grafana_home
from harness.observatory import Observatory, archive

HOUR = 3600


def recorded(folder: Path, hosts: tuple[Host, ...], interval: int) -> Path:
    """OpenMetrics text of the last hour and, for rules that go on being evaluated, of the next one."""
    now = int(time.time())
    text = folder / "fleet.om"
    with open(text, "w") as output:
        write(hosts, now - HOUR, now + HOUR, interval, output)
    return text


@pytest.fixture(scope="module")
def prometheus(home, tmp_path_factory) -> Iterator[Observatory]:
    folder = tmp_path_factory.mktemp("fleet")
    with archive(folder / "prometheus", recorded(folder, SMALL, 15)) as found:
        yield found


@pytest.fixture(scope="session")
def home() -> Path:
    """Of the Grafana; without one all is skipped before anything is started."""
    found = grafana_home()
    if found is None:
        pytest.skip("no Grafana: GRAFANA_HOME names none, and no package is installed")
    return found


@pytest.fixture(scope="module")
def dashboards(home, prometheus, tmp_path_factory) -> Iterator[Grafana]:
    with grafana(home, tmp_path_factory.mktemp("grafana"), prometheus.url) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found
