"""The Prometheus rules: sound, tested both ways, with a runbook each."""

from typing import Any, Iterator

import pytest
import yaml
from harness.dashboards import RULES
from harness.paths import ROOT
from harness.processes import run
from names import unknown_names

PAGES = ROOT / "docs" / "alerts"
PAGE_URL = "https://github.com/tlsprof/tlsprof/blob/main/docs/alerts/{}.md"
SECTIONS = ("## Meaning", "## Diagnosis", "## Mitigation", "## False positives")
RULE_FILES = sorted(RULES.glob("*.rules.yml"))
TEST_FILES = sorted(RULES.glob("*.test.yml"))


def rules() -> list[dict[str, Any]]:
    groups = [group for path in RULE_FILES for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def promtool(*command: Any) -> None:
    done = run(["promtool", *command])
    assert done.child.returncode == 0, done.describe()


def alert_tests() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Alert and what is expected to fire, of every check in the promtool tests."""
    for path in TEST_FILES:
        for test in yaml.safe_load(path.read_text())["tests"]:
            for check in test.get("alert_rule_test", []):
                yield check["alertname"], check["exp_alerts"]


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.name)
def test_rules_are_sound(path):
    promtool("check", "rules", path)


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: path.name)
def test_rules_do_as_told(path):
    promtool("test", "rules", path)


def test_every_alert_is_shown_firing_and_not_firing():
    wanted = {(rule["alert"], rule["labels"]["severity"]) for rule in alerts()}
    checks = list(alert_tests())
    fired = {(name, alert["exp_labels"]["severity"]) for name, found in checks for alert in found}
    quiet = {name for name, found in checks if not found}
    assert fired == wanted
    assert quiet == {name for name, _ in wanted}


def test_every_record_is_tested():
    tested = " ".join(path.read_text() for path in TEST_FILES)
    records = [rule["record"] for rule in rules() if "record" in rule]
    assert [name for name in records if f"expr: {name}" not in tested] == []


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: f"{rule['alert']}-{rule['labels']['severity']}")
def test_an_alert_helps_who_is_woken(rule):
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert rule["for"]
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert "{{ $labels.instance }}" in rule["annotations"]["summary"]
    assert rule["annotations"]["runbook_url"] == PAGE_URL.format(rule["alert"])
    text = (PAGES / f"{rule['alert']}.md").read_text()
    assert text.startswith(f"# {rule['alert']}\n")
    assert [section for section in SECTIONS if section not in text] == []


def test_no_runbook_without_an_alert():
    names = {path.stem for path in PAGES.glob("*.md")} - {"README"}
    assert names == {rule["alert"] for rule in alerts()}
    index = (PAGES / "README.md").read_text()
    assert [name for name in names if f"]({name}.md)" not in index] == []


def test_rules_ask_for_metrics_and_labels_of_the_agent():
    assert [complaint for rule in rules() for complaint in unknown_names(rule["expr"])] == []
