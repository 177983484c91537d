"""A real Prometheus over the agent, as dashboards and alerts see it."""

import json
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Sequence

from .dashboards import RULES
from .metrics import is_ready
from .paths import ROOT
from .processes import Argument, Process, run
from .servers import START_SECONDS, on_free_port
from .waiting import wait_until

TODAY = ROOT / "target" / "tools" / "prometheus" / "prometheus"
"""A Prometheus of today, as deploy/packages/tools.sh builds it; Debian's is years older."""

CONFIG = """
global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}
rule_files: ["{rules}/*.rules.yml"]
scrape_configs:
  - job_name: tlsprof{keys}
    static_configs: [{{ targets: ["{target}"], labels: {{ cluster: here }} }}]
"""

RULES_ALONE = """
global: {{ evaluation_interval: 5s }}
rule_files: ["{rules}/*.rules.yml"]
"""


@dataclass(frozen=True)
class Series:
    """One element of a result, with its value: a number, or a native histogram."""

    labels: dict[str, str]
    value: Any


@dataclass(frozen=True)
class Observatory:
    """A Prometheus that scrapes one agent and has the rules of the tree."""

    url: str

    def query(self, expression: str, at: float) -> list[Series]:
        """The result at a time, in seconds since 1970; fails with Prometheus's words."""
        parameters = urllib.parse.urlencode({"query": expression, "time": f"{at:.3f}"})
        data = self._get(f"/api/v1/query?{parameters}")
        assert data["resultType"] == "vector", expression
        return [
            Series(row["metric"], float(row["value"][1]) if "value" in row else row["histogram"][1])
            for row in data["result"]
        ]

    def number(self, expression: str, at: float) -> float:
        """The one value of an expression."""
        found = self.query(expression, at)
        assert len(found) == 1, f"{expression}: {found}"
        return found[0].value

    def last_scrape(self) -> float:
        """When the agent was last scraped without an error; 0 if never."""
        # Of anything but a selector, timestamp() would be the time of the question.
        parameters = urllib.parse.urlencode({"query": "timestamp(up) * up"})
        result = self._get(f"/api/v1/query?{parameters}")["result"]
        return float(result[0]["value"][1]) if result else 0.0

    def rules(self) -> list[dict[str, Any]]:
        """All rules, as Prometheus has them, with their health."""
        groups = self._get("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def label_values(self, selector: str, label: str) -> list[str]:
        """What Grafana's label_values() asks."""
        parameters = urllib.parse.urlencode({"match[]": selector})
        return self._get(f"/api/v1/label/{label}/values?{parameters}")

    def _get(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(self.url + path, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{urllib.parse.unquote_plus(path)}: {error.read().decode()}") from None


@contextmanager
def observatory(
    folder: Path, target: str, native: bool, more: Sequence[str] = (), today: bool = False
) -> Iterator[Observatory]:
    """Prometheus scraping `target` (host:port), with native histograms or with classic ones; `more`
    are options of its own. Where native histograms are asked for changed with 3.8: `today` says which
    Prometheus."""
    folder.mkdir()
    # The flag of old does nothing there.
    options = [*more, *(["--enable-feature=native-histograms"] if native or today else [])]
    keys = "\n    scrape_native_histograms: true" if native and today else ""
    config = CONFIG.format(target=target, rules=RULES, keys=keys)
    with _prometheus(folder, config, options, TODAY if today else "prometheus") as found:
        yield found


@contextmanager
def archive(folder: Path, text: Path) -> Iterator[Observatory]:
    """Prometheus with what is in a file of OpenMetrics text, and the rules of the tree; it scrapes nothing."""
    folder.mkdir()
    done = run(["promtool", "tsdb", "create-blocks-from", "openmetrics", text, folder / "tsdb"], timeout=300)
    assert done.child.returncode == 0, done.describe()
    with _prometheus(folder, RULES_ALONE.format(rules=RULES), []) as found:
        yield found


@contextmanager
def _prometheus(
    folder: Path, configuration: str, options: Sequence[str], program: Argument = "prometheus"
) -> Iterator[Observatory]:
    config = folder / "prometheus.yml"
    config.write_text(configuration)

    def start(port: int) -> Process:
        return Process(
            [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
            + [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn", *options]
        )

    with on_free_port(start) as server:
        url = f"http://127.0.0.1:{server.port}"
        wait_until(lambda: is_ready(url), "Prometheus", START_SECONDS)
        yield Observatory(url)
