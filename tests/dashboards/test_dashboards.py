"""The dashboards in the tree: as generated, as Grafana reads them, and as our lint wants them."""

import copy
import json
import subprocess
from typing import Any, Callable

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from harness.dashboards import boards, panels, queries
from harness.paths import ROOT
from harness.processes import run
from lint import complaints
from source.__main__ import differences

BOARDS = boards()
VALUES = {
    "cluster": ".*",
    "job": "tlsprof",
    "instance": ".*",
    "service_name": "nginx",
    "__rate_interval": "1m",
    "__range": "1h",
    "after": "[1h]",
    "before": "[1h] offset 1h",
    "unrecorded": ".*",
}


@pytest.fixture(autouse=True, scope="module")
def plugins():
    """The SDK reads options of panels and queries only of kinds that it was told of."""
    register_default_plugins()


def encoded(board: dict[str, Any]) -> dict[str, Any]:
    """What the SDK makes of a dashboard that it has decoded."""
    return json.loads(JSONEncoder().encode(Dashboard.from_json(copy.deepcopy(board))))


UNTYPED = ".titleFormat"
"""Of annotations from Prometheus: Grafana reads it, and the SDK has no word for it."""

NEWER = {
    "11": {
        "options.percentChangeColorMode": "of the change since the begin, which is not shown",
        "options.selectionMode": "of what a mouse chooses in a heat map",
        "allowCustomValue": "11.0 always allows it",
        UNTYPED: "see there",
    },
    "13": {},
}
"""What the types of other versions of Grafana do not have, and why nothing is missed there."""

RE_ENCODE = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
register_default_plugins()
print(JSONEncoder().encode([Dashboard.from_json(board) for board in json.load(sys.stdin)]))
"""


def encoded_by(version: str, every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same by the types of that version of Grafana (deploy/setup)."""
    python = ROOT / "target" / f"grafana-{version}" / "bin" / "python"
    done = subprocess.run([python, "-c", RE_ENCODE], input=json.dumps(every), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """Paths of what is in `before`, but not or otherwise in `after`."""
    if isinstance(before, dict) and isinstance(after, dict):
        gone = [f"{path}.{key}" for key in before.keys() - after.keys()]
        both = sorted(before.keys() & after.keys())
        return gone + [entry for key in both for entry in lost(before[key], after[key], f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after))
        return [entry for index, pair in pairs for entry in lost(*pair, f"{path}[{index}]")]
    return [] if before == after else [path]


def test_the_tree_is_what_the_code_generates():
    assert differences() == [], "run `make dashboards`"


@pytest.mark.parametrize("uid", BOARDS)
def test_nothing_is_lost_in_grafanas_own_types(uid):
    assert [path for path in lost(BOARDS[uid], encoded(BOARDS[uid])) if not path.endswith(UNTYPED)] == []


@pytest.mark.parametrize("uid", BOARDS)
def test_lint_finds_nothing(uid):
    assert complaints(BOARDS[uid]) == []


@pytest.mark.parametrize("version", NEWER)
def test_other_versions_of_grafana_have_the_same_types(version):
    """For those that are not run (tests/grafana): the oldest and the newest that the dashboards are for."""
    before = list(BOARDS.values())
    gone = lost(before, encoded_by(version, before))
    assert [path for path in gone if not path.endswith(tuple(NEWER[version]))] == []
    assert {known for known in NEWER[version] if any(path.endswith(known) for path in gone)} == set(
        NEWER[version]
    )


def test_a_misspelt_option_does_not_survive():
    board = copy.deepcopy(BOARDS["tlsprof-service"])
    next(panels(board))["options"]["graphmode"] = "area"
    assert [path for path in lost(board, encoded(board)) if path.endswith("options.graphmode")]


def _first(board: dict[str, Any]) -> dict[str, Any]:
    return next(panels(board))


def _replace(board: dict[str, Any], old: str, new: str) -> None:
    target = _first(board)["targets"][0]
    assert old in target["expr"]
    target["expr"] = target["expr"].replace(old, new)


BREAKAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "unit": lambda board: _first(board)["fieldConfig"]["defaults"].update(unit="parrots"),
    "no text for no data": lambda board: _first(board).update(description="**Good:** **What to do:**"),
    "a dash is for stats": lambda board: _first(board)["fieldConfig"]["defaults"].update(noValue="x" * 30),
    "**Good:**": lambda board: _first(board).update(description="Share of CPU."),
    "thresholds without a reason": (
        lambda board: _first(board).update(
            description=_first(board)["description"].replace("**Colours:**", "")
        )
    ),
    "thresholds [": lambda board: _first(board)["fieldConfig"]["defaults"]["thresholds"]["steps"].reverse(),
    "datasource": lambda board: _first(board).update(datasource={"type": "prometheus", "uid": "P1"}),
    "without instance": lambda board: _replace(board, 'instance=~"$instance"', 'pod="a"'),
    "without service_name": lambda board: _replace(board, ', service_name=~"$service_name"', ""),
    "a window of 5m": lambda board: _replace(board, "$__rate_interval", "5m"),
    "no legend": lambda board: _first(board)["targets"][0].update(legendFormat=""),
    "lies over": lambda board: board["panels"][2]["gridPos"].update(x=0),
    "panel ids": lambda board: board["panels"][2].update(id=1),
    "unknown variables": lambda board: _replace(board, "$instance", "$host"),
    "loses time": lambda board: board["links"][0].update(keepTime=False),
    "schemaVersion": lambda board: board.update(schemaVersion=16),
    "unknown metric tlsprof_service_cpu_seconds": (
        lambda board: _replace(board, "tlsprof_service_cpu_seconds_total", "tlsprof_service_cpu_seconds")
    ),
    "unknown label pod of": lambda board: _replace(board, "{cluster", '{pod="a", cluster'),
    "unknown label pod in": lambda board: _replace(board, "sum(", "sum by (pod) ("),
    "unknown label host in": (
        lambda board: board["templating"]["list"][1]["query"].update(query="label_values(up{}, host)")
    ),
}


@pytest.mark.parametrize("complaint", BREAKAGES)
def test_lint_sees(complaint):
    board = copy.deepcopy(BOARDS["tlsprof-overview"])
    BREAKAGES[complaint](board)
    assert [text for text in complaints(board) if complaint in text]


def test_every_query_is_promql(tmp_path):
    every = [query for board in BOARDS.values() for query in queries(board)]
    rules = [{"record": "query", "expr": q.filled(VALUES), "labels": {"of": str(q)}} for q in every]
    file = tmp_path / "queries.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}))
    done = run(["promtool", "check", "rules", file])
    assert done.child.returncode == 0, done.describe()
    assert f"{len(every)} rules found" in done.stdout
