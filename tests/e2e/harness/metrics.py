"""Metrics: scraping, a strict reader of OpenMetrics text, and a Prometheus server."""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Optional

from .processes import Process
from .servers import START_SECONDS, on_free_port
from .waiting import wait_until

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
PLAIN_TEXT = "text/plain; version=0.0.4"

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \S+)?(?: # .*)?")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)')

PROMETHEUS_CONFIG = """
scrape_configs:
  - job_name: tlsprof
    scrape_interval: 1s
    scrape_timeout: 1s
    static_configs: [{{targets: ["{target}"]}}]
{more}"""


@dataclass(frozen=True)
class Sample:
    """One line of an exposition."""

    name: str
    labels: dict[str, str]
    value: float


def fetch(url: str, accept: str) -> tuple[str, str]:
    """Content type and body."""
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def parse(text: str) -> list[Sample]:
    """Reads OpenMetrics text; every line must be a comment of a known kind or a sample."""
    assert text.endswith("# EOF\n"), text[-200:]
    samples = []
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.match(r"# (TYPE|HELP|UNIT) \S+ |# EOF$", line), line
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        name, labels, value = match.groups()
        samples.append(Sample(name, _labels(labels or ""), float(value)))
    return samples


def _labels(text: str) -> dict[str, str]:
    found = _LABEL.findall(text)
    assert _LABEL.sub("", text) == "", text
    return dict(found)


def total(samples: list[Sample], name: str, **labels: str) -> float:
    """Sum of the samples of a metric whose labels equal `labels`."""
    return sum(
        sample.value
        for sample in samples
        if sample.name == name and all(sample.labels.get(key) == value for key, value in labels.items())
    )


def scrape(url: str) -> list[Sample]:
    return parse(fetch(url, OPENMETRICS)[1])


def promtool_check(text: str) -> None:
    """Fails with promtool's words if the text is not what Prometheus reads."""
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus server."""

    url: str

    def query(self, expression: str) -> Optional[float]:
        """Value of an expression that gives one number; nothing if it gives none."""
        url = f"{self.url}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(url, timeout=10) as answer:
            result = json.load(answer)["data"]["result"]
        return float(result[0]["value"][1]) if result else None


@contextmanager
def prometheus(folder: Path, target: str, more: str = "") -> Iterator[Prometheus]:
    """Prometheus with native histograms, scraping `target` (host:port) each second.

    `more` are further lines of the scrape configuration.
    """
    config = folder / "prometheus.yml"
    config.write_text(PROMETHEUS_CONFIG.format(target=target, more=more))

    def start(port: int) -> Process:
        return Process(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
            + [f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=native-histograms"]
        )

    with on_free_port(start) as server:
        url = f"http://127.0.0.1:{server.port}"
        wait_until(lambda: is_ready(url), "Prometheus to have read what it stored", START_SECONDS)
        yield Prometheus(url)


def is_ready(url: str) -> bool:
    """It listens before it is ready, and answers 503 until then, or nothing in time."""
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False
