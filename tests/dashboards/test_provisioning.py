"""What deploy/ gives Prometheus and Grafana: read by promtool, and naming only what is there."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.dashboards import GRAFANA, RULES, boards
from harness.observatory import TODAY
from harness.paths import ROOT
from harness.processes import Argument, run
from harness.today import NEEDS_TODAY

DEPLOY = ROOT / "deploy"
PROVISIONING = DEPLOY / "grafana" / "provisioning"
COMPOSE = DEPLOY / "observe" / "compose.yml"


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


NATIVE = "scrape_native_histograms"
"""A key of the job that Prometheus knows from 3.8 on."""


@pytest.fixture
def configuration(tmp_path) -> Path:
    """That of the tree, with its rules."""
    shutil.copy(DEPLOY / "prometheus" / "prometheus.yml", tmp_path)
    (tmp_path / "rules").mkdir()
    for path in RULES.glob("*.rules.yml"):
        shutil.copy(path, tmp_path / "rules")
    return tmp_path / "prometheus.yml"


def is_taken(promtool: Argument, configuration: Path) -> None:
    done = run([promtool, "check", "config", configuration])
    assert done.child.returncode == 0, done.describe()
    assert done.stdout.count("rules found") == len(list(RULES.glob("*.rules.yml")))


def test_an_older_prometheus_takes_its_configuration_without_one_key(configuration):
    """Of the file as it is, it refuses that key and nothing else."""
    done = run(["promtool", "check", "config", configuration])
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "not found in type" in line]
    assert [line for line in lines if NATIVE not in line] == []
    assert (done.child.returncode == 0) != bool(lines)
    text = configuration.read_text()
    assert f"    {NATIVE}: true\n" in text
    configuration.write_text(text.replace(f"    {NATIVE}: true\n", ""))
    is_taken("promtool", configuration)


@NEEDS_TODAY
def test_prometheus_of_today_takes_its_configuration(configuration):
    is_taken(TODAY.parent / "promtool", configuration)


def test_compose_has_a_prometheus_that_knows_the_key():
    image = load(COMPOSE)["services"]["prometheus"]["image"]
    major, minor, _ = image.rpartition(":v")[2].split(".")
    assert (int(major), int(minor)) >= (3, 8)


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
