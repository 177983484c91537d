"""What deploy/ gives Prometheus and Grafana: read by promtool, and naming only what is there."""

import shutil
from pathlib import Path
from typing import Any

import yaml
from harness.dashboards import GRAFANA, RULES, boards
from harness.paths import ROOT
from harness.processes import run

DEPLOY = ROOT / "deploy"
PROVISIONING = DEPLOY / "grafana" / "provisioning"
COMPOSE = DEPLOY / "observe" / "compose.yml"


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_prometheus_takes_its_configuration(tmp_path):
    shutil.copy(DEPLOY / "prometheus" / "prometheus.yml", tmp_path)
    (tmp_path / "rules").mkdir()
    for path in RULES.glob("*.rules.yml"):
        shutil.copy(path, tmp_path / "rules")
    done = run(["promtool", "check", "config", tmp_path / "prometheus.yml"])
    assert done.child.returncode == 0, done.describe()
    assert done.stdout.count("rules found") == len(list(RULES.glob("*.rules.yml")))


def test_the_job_is_the_one_that_alerts_are_for():
    jobs = load(DEPLOY / "prometheus" / "prometheus.yml")["scrape_configs"]
    assert [job["job_name"] for job in jobs] == ["tlsprof"]


def test_the_data_source_and_the_provider_are_what_grafana_reads():
    (source,) = load(PROVISIONING / "datasources" / "tlsprof.yml")["datasources"]
    assert (source["type"], source["access"], source["uid"]) == ("prometheus", "proxy", "tlsprof-prometheus")
    (provider,) = load(PROVISIONING / "dashboards" / "tlsprof.yml")["providers"]
    assert provider["type"] == "file" and provider["options"]["path"]


def test_compose_and_observe_set_every_variable_of_the_provisioning():
    texts = "".join(path.read_text() for path in PROVISIONING.rglob("*.yml"))
    wanted = {"TLSPROF_PROMETHEUS_URL", "TLSPROF_SCRAPE_INTERVAL", "TLSPROF_DASHBOARDS"}
    assert {word for word in wanted if f"${{{word}}}" in texts} == wanted
    assert texts.count("${TLSPROF_") == len(wanted)
    assert wanted <= load(COMPOSE)["services"]["grafana"]["environment"].keys()
    script = (DEPLOY / "observe" / "observe.sh").read_text()
    assert [word for word in wanted if f"{word}=" not in script] == []


def test_compose_mounts_what_is_there():
    services = load(COMPOSE)["services"]
    paths = [volume.split(":")[0] for service in services.values() for volume in service["volumes"]]
    local = [path for path in paths if path.startswith(".")]
    assert len(local) == 4
    assert [path for path in local if not (COMPOSE.parent / path).exists()] == []


def test_the_home_dashboard_is_there():
    home = load(COMPOSE)["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (GRAFANA / Path(home).name).is_file()


def test_links_lead_to_dashboards():
    text = "".join(path.read_text() for path in GRAFANA.glob("*.json"))
    linked = {part.split("?")[0] for part in text.split('"/d/')[1:]}
    assert linked and linked <= boards().keys()
