"""One Grafana over a made-up fleet, and a browser, for all tests of a file."""

from pathlib import Path
from typing import Iterator

import pytest
from fleet import SMALL, in_prometheus
from harness.browser import launched
from harness.grafana import Grafana, grafana, grafana_home
from harness.observatory import Observatory


@pytest.fixture(scope="session")
def home() -> Path:
    """Of the Grafana; without one all is skipped before anything is started."""
    found = grafana_home()
    if found is None:
        pytest.skip("no Grafana: GRAFANA_HOME names none, and no package is installed")
    return found


@pytest.fixture(scope="module")
def prometheus(home, tmp_path_factory) -> Iterator[Observatory]:
    with in_prometheus(tmp_path_factory.mktemp("fleet"), SMALL, 15, 60) as found:
        yield found


@pytest.fixture(scope="module")
def dashboards(home, prometheus, tmp_path_factory) -> Iterator[Grafana]:
    with grafana(home, tmp_path_factory.mktemp("grafana"), prometheus.url) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found
