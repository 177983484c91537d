"""The dashboards and rules in the tree: panels, queries with their variables filled in, metrics."""

import json
import re
from dataclasses import dataclass
from typing import Any, Iterator

from .paths import ROOT

GRAFANA = ROOT / "dashboards" / "grafana"
RULES = ROOT / "dashboards" / "rules"
METRICS: dict[str, dict[str, Any]] = json.loads((ROOT / "dashboards" / "metrics.json").read_text())
"""Type and labels of every metric of the agent, by name."""

_VARIABLE = re.compile(r"\$([a-z_]\w*)")


@dataclass(frozen=True)
class Query:
    """One query of a panel, or of an annotation."""

    board: str
    panel: str
    ref: str
    expression: str
    instant: bool

    def __str__(self) -> str:
        return f"{self.board} / {self.panel} / {self.ref}"

    def filled(self, values: dict[str, str]) -> str:
        """The expression with Grafana's variables replaced; every one of them must be known."""
        return filled(self.expression, values)


def filled(expression: str, values: dict[str, str]) -> str:
    """The expression with Grafana's variables replaced; $1 and so on are of label_replace."""
    return _VARIABLE.sub(lambda match: values[match.group(1)], expression)


def boards() -> dict[str, dict[str, Any]]:
    """All dashboards by uid."""
    found = [json.loads(path.read_text()) for path in sorted(GRAFANA.glob("*.json"))]
    assert found, f"no dashboards in {GRAFANA}"
    return {board["uid"]: board for board in found}


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Panels in reading order, those of collapsed rows too, the rows themselves not."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels") or []
        else:
            yield panel


def queries(board: dict[str, Any]) -> list[Query]:
    """All queries of a dashboard's panels."""
    return [
        Query(board["uid"], panel["title"], target["refId"], target["expr"], bool(target.get("instant")))
        for panel in panels(board)
        for target in panel["targets"]
    ]
