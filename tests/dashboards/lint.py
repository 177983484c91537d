"""What every dashboard must have, as pure functions over its JSON: each returns complaints."""

import re
from typing import Any, Iterator

from grafana_foundation_sdk.models import units
from harness.dashboards import panels
from names import unknown_names

COLUMNS = 24
SHORTEST_TEXT = 20
SCHEMA_VERSION = 41
"""Grafana 11.6 and 12.0; older ones of 11 ignore the difference, newer ones migrate."""

VARIABLES = ["datasource", "cluster", "job", "instance"]
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
MATCHERS = ('cluster=~"$cluster"', 'job=~"$job"', 'instance=~"$instance"')
HOST_METRICS = re.compile(r"tlsprof_agent_|tlsprof_build_info$|tlsprof_report_|up$|scrape_|ALERTS$")
UNITS = {value for value in vars(units).values() if isinstance(value, str)}
UNITS |= {"si:/s", "suffix: cores"}
"""Custom ones: with the prefixes of the SI, or with a word behind (Grafana, "Custom units")."""
DOCUMENTS = "https://github.com/tlsprof/tlsprof/blob/main/docs/"
_LABEL_VALUES = re.compile(r"label_values\((.*), (\w+)\)")
_QUERY_RESULT = re.compile(r"query_result\((.*)\)")
_STRING = re.compile(r'"[^"]*"')
_SELECTOR = re.compile(r"([a-zA-Z_][a-z0-9A-Z_]*)\{([^{}]*)\}")


def complaints(board: dict[str, Any]) -> list[str]:
    """Everything that is wrong with a dashboard."""
    found = [*_frame(board), *_grid(board)]
    services = any(variable["name"] == "service_name" for variable in board["templating"]["list"])
    for panel in panels(board):
        found += [f"{panel['title']}: {complaint}" for complaint in _panel(panel, services)]
    return found


def _frame(board: dict[str, Any]) -> Iterator[str]:
    if board["schemaVersion"] != SCHEMA_VERSION:
        yield f"schemaVersion {board['schemaVersion']}"
    if not board.get("description"):
        yield "no description"
    yield from _names(board)
    names = [variable["name"] for variable in board["templating"]["list"]]
    if names[: len(VARIABLES)] != VARIABLES:
        yield f"variables {names} do not begin with {VARIABLES}"
    for variable in board["templating"]["list"]:
        if not variable.get("label") or not variable.get("description"):
            yield f"variable {variable['name']} without label or description"
        if variable["type"] == "query" and variable["datasource"] != DATA_SOURCE:
            yield f"variable {variable['name']} asks {variable['datasource']}"
    for link in board["links"]:
        if not (link["includeVars"] and link["keepTime"]):
            yield f"link {link['title']} loses time or variables"
    if not any("tlsprof" in link["tags"] for link in board["links"]) or "tlsprof" not in board["tags"]:
        yield "not among the dashboards that link to each other"
    used = set(re.findall(r"\$(\w+)", str(board["panels"])))
    unknown = used - set(names) - {"__rate_interval", "__range"}
    if unknown:
        yield f"unknown variables {sorted(unknown)}"
    unused = set(names) - used - {"datasource"}
    if unused:
        yield f"unused variables {sorted(unused)}"


def _names(board: dict[str, Any]) -> Iterator[str]:
    """Of variables and annotations."""
    for annotation in board["annotations"]["list"]:
        yield from unknown_names(annotation["expr"])
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            asked = variable["query"]["query"]
            if values := _LABEL_VALUES.fullmatch(asked):
                yield from unknown_names(f"sum by ({values[2]}) ({values[1]})")
            else:
                yield from unknown_names(_QUERY_RESULT.fullmatch(asked)[1])


def _grid(board: dict[str, Any]) -> Iterator[str]:
    every = [*board["panels"], *(inner for row in board["panels"] for inner in row.get("panels") or [])]
    numbers = [panel.get("id") for panel in every]
    if None in numbers or len(set(numbers)) != len(numbers):
        yield f"panel ids {numbers}"
    titles = [panel["title"] for panel in panels(board)]
    if len(set(titles)) != len(titles):
        yield f"two panels of one title: {sorted(titles)}"
    taken: dict[tuple[int, int], str] = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        if place["x"] + place["w"] > COLUMNS:
            yield f"{panel['title']} is wider than the grid"
        for cell in _cells(place):
            if cell in taken:
                yield f"{panel['title']} lies over {taken[cell]}"
                break
            taken[cell] = panel["title"]


def _cells(place: dict[str, int]) -> list[tuple[int, int]]:
    across, down = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
    return [(x, y) for x in across for y in down]


def _panel(panel: dict[str, Any], services: bool) -> Iterator[str]:
    """`services`: whether the dashboard lets them be chosen."""
    defaults = panel["fieldConfig"]["defaults"]
    text = panel.get("description", "")
    for part in ("**Good:**", "**What to do:**"):
        if part not in text:
            yield f"the description has no {part}"
    if len(text.split("**Good:**")[0].strip()) < SHORTEST_TEXT:
        yield "the description does not say what the panel shows"
    if defaults.get("unit") not in UNITS:
        yield f"unit {defaults.get('unit')!r}"
    if len(text.partition("**No data:**")[2].strip()) < SHORTEST_TEXT:
        yield "no text for no data"
    # A stat shows the sentence as a line of a few pixels.
    if (panel["type"] == "stat") != (len(defaults.get("noValue", "")) < SHORTEST_TEXT):
        yield "a dash is for stats, the sentence for the others"
    if panel["datasource"] != DATA_SOURCE:
        yield f"datasource {panel['datasource']}"
    if "thresholds" in defaults:
        yield from _thresholds(defaults["thresholds"], text)
    for override in panel["fieldConfig"]["overrides"]:
        yield from _override(override)
    for target in panel["targets"]:
        yield from (f"{target['refId']}: {complaint}" for complaint in _target(target, services))
    letters = [target["refId"] for target in panel["targets"]]
    if not letters or len(set(letters)) != len(letters):
        yield f"queries {letters}"


def _thresholds(thresholds: dict[str, Any], text: str) -> Iterator[str]:
    values = [step["value"] for step in thresholds["steps"]]
    if values[0] is not None or values[1:] != sorted(values[1:]):
        yield f"thresholds {values}"
    if "**Colours:**" not in text:
        yield "thresholds without a reason in the description"


def _override(override: dict[str, Any]) -> Iterator[str]:
    for entry in override["properties"]:
        if entry["id"] == "unit" and entry["value"] not in UNITS:
            yield f"unit {entry['value']!r} of {override['matcher']['options']}"
        for link in entry["value"] if entry["id"] == "links" else []:
            if link["url"].startswith(DOCUMENTS):
                continue
            time = "${__url_time_range}" in link["url"] or "from=${__data.fields." in link["url"]
            if not time or "${datasource:queryparam}" not in link["url"]:
                yield f"link {link['title']} loses time or variables"


def _target(target: dict[str, Any], services: bool) -> Iterator[str]:
    expression = target["expr"]
    if target["datasource"] != DATA_SOURCE:
        yield f"datasource {target['datasource']}"
    if not target.get("legendFormat"):
        yield "no legend"
    if bool(target.get("instant")) == bool(target.get("range")):
        yield "neither instant nor range, or both"
    yield from unknown_names(expression)
    selectors = _SELECTOR.findall(expression)
    if not selectors:
        yield "selects nothing"
    for name, matchers in selectors:
        absent = [matcher for matcher in MATCHERS if matcher not in matchers]
        chosen = re.search(r'service_name=~?"\$service_name"', matchers)
        if services and not HOST_METRICS.match(name) and not chosen:
            # Of a host as a whole: its services are not chosen by name.
            if not (name == "tlsprof_service_cpu_seconds_total" and "tlsprof_agent_" in expression):
                absent.append("service_name")
        if absent:
            yield f"{name} without {', '.join(absent)}"
    bare = re.findall(r"(?<![\w:])(?:tlsprof_\w+|up)\b(?![\w:{])", _STRING.sub('""', expression))
    if bare:
        yield f"{bare} without matchers"
    for window in re.findall(r"\[([^\]]*)\]", expression):
        if window not in ("$__rate_interval", "$__range", "$__range:15s"):
            yield f"a window of {window}, whatever the zoom"
    # At the end of the range it is computed once, not for each point.
    if "$__range" in expression.replace("[$__range] @ end()", "") and not target.get("instant"):
        yield "the whole range at each point"
