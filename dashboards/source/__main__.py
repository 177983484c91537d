"""Writes grafana/*.json, or with --check says which of them differ from the code."""

import json
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from . import agent_health, connections, load_test, overview, service

GRAFANA = Path(__file__).resolve().parents[1] / "grafana"
MODULES = (overview, service, connections, load_test, agent_health)


def rendered() -> dict[str, str]:
    """File name and JSON text of each dashboard."""
    boards = [module.make() for module in MODULES]
    encode = lambda board: JSONEncoder(sort_keys=True, indent=2, ensure_ascii=False).encode(board) + "\n"
    return {f"{board.uid}.json": encode(board) for board in boards}


def differences() -> list[str]:
    """What is not in the tree as the code has it."""
    texts = rendered()
    found = {path.name: path.read_text() for path in GRAFANA.glob("*.json")}
    return sorted(name for name in texts.keys() | found.keys() if texts.get(name) != found.get(name))


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        names = differences()
        for name in names:
            print(f"grafana/{name} differs from dashboards/source: run `make dashboards`", file=sys.stderr)
        return 1 if names else 0
    if arguments:
        print("usage: python -m source [--check]", file=sys.stderr)
        return 2
    GRAFANA.mkdir(exist_ok=True)
    texts = rendered()
    for path in GRAFANA.glob("*.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        json.loads(text)
        (GRAFANA / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
