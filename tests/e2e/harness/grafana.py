"""A real Grafana with the dashboards of the tree, over a Prometheus.

Grafana is not installed by deploy/setup: GRAFANA_HOME names the folder of an unpacked one, else that of
the packages is taken."""

import json
import os
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Optional

from .dashboards import GRAFANA
from .paths import ROOT
from .processes import Process
from .servers import on_free_port
from .waiting import wait_until

PACKAGED = Path("/usr/share/grafana")
PROVISIONING = ROOT / "deploy" / "grafana" / "provisioning"

SETTINGS = {
    "GF_SERVER_HTTP_ADDR": "127.0.0.1",
    "GF_AUTH_ANONYMOUS_ENABLED": "true",
    "GF_ANALYTICS_REPORTING_ENABLED": "false",
    "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
    "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
    "GF_PLUGINS_PUBLIC_KEY_RETRIEVAL_DISABLED": "true",
    "GF_PLUGINS_PREINSTALL_DISABLED": "true",
    "GF_NEWS_NEWS_FEED_ENABLED": "false",
}
"""Nothing is asked of the network."""


def grafana_home() -> Optional[Path]:
    """The folder of a Grafana, None if there is none."""
    home = Path(os.environ.get("GRAFANA_HOME", PACKAGED))
    return home if (home / "bin" / "grafana").exists() else None


@dataclass(frozen=True)
class Grafana:
    url: str

    def board(self, uid: str, **parameters: str) -> str:
        """Address of a dashboard; `parameters` are those of its query string."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"{self.url}/d/{uid}?{query}"

    def boards(self) -> set[str]:
        """Of the dashboards that it has loaded."""
        with urllib.request.urlopen(f"{self.url}/api/search?type=dash-db", timeout=20) as answer:
            return {found["uid"] for found in json.load(answer)}


@contextmanager
def grafana(home: Path, folder: Path, prometheus: str, scrape_interval: str = "15s") -> Iterator[Grafana]:
    """Grafana over the Prometheus at that address."""
    own = {
        "GF_PATHS_DATA": folder / "data",
        "GF_PATHS_LOGS": folder / "log",
        "GF_PATHS_PLUGINS": folder / "plugins",
        "GF_PATHS_PROVISIONING": PROVISIONING,
        "TLSPROF_PROMETHEUS_URL": prometheus,
        "TLSPROF_SCRAPE_INTERVAL": scrape_interval,
        "TLSPROF_DASHBOARDS": GRAFANA,
    }

    def start(port: int) -> Process:
        env = {**SETTINGS, **{name: str(value) for name, value in own.items()}, "GF_SERVER_HTTP_PORT": str(port)}
        return Process([home / "bin" / "grafana", "server", "--homepath", home], env=env)

    with on_free_port(start) as server:
        found = Grafana(f"http://127.0.0.1:{server.port}")

        def ready() -> bool:
            try:
                return len(found.boards()) == len(list(GRAFANA.glob("*.json")))
            except OSError:
                return False

        wait_until(ready, "Grafana with all dashboards", 120.0)
        yield found
