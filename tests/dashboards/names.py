"""Names of metrics and labels in PromQL, checked against those of the agent."""

import re
from typing import Iterator

from harness.dashboards import METRICS

TARGET_LABELS = {"cluster", "job", "instance"}
"""Labels that a scrape adds."""
HISTOGRAM_SUFFIX = re.compile(r"_(bucket|sum|count)$")
_NAME = re.compile(r"(?<![\w:])tlsprof_\w+(?![\w:])")
_RECORDED = re.compile(r"\w:\w")
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^{}]*)\}")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)")
_MADE = re.compile(r'[,(] ?"(\w+)", ')
"""Labels that an expression makes: by label_replace, label_join and count_values."""
_STRING = re.compile(r'"[^"]*"')


def labels_of(metric: str) -> set[str]:
    """Labels of a series of ours with that name; KeyError where the agent has none."""
    if metric in METRICS:
        return {*METRICS[metric]["labels"]} | TARGET_LABELS
    base, *suffix = HISTOGRAM_SUFFIX.split(metric)
    if not suffix or METRICS[base]["type"] != "histogram":
        raise KeyError(metric)
    return labels_of(base) | ({"le"} if suffix[0] == "bucket" else set())


def unknown_names(expression: str) -> Iterator[str]:
    """Complaints about metrics and labels that the agent does not have."""
    bare = _STRING.sub('""', expression)
    known: dict[str, set[str]] = {}
    for name in sorted(set(_NAME.findall(bare))):
        try:
            known[name] = labels_of(name)
        except KeyError:
            yield f"unknown metric {name}"
    if _RECORDED.search(bare) or "ALERTS{" in bare:
        # A recorded series, or Prometheus's own one of an alert, keeps any labels.
        every = {label for metric in METRICS.values() for label in metric["labels"]} | TARGET_LABELS
        every |= {"alertname", "alertstate"}
    else:
        every = set().union(TARGET_LABELS, *known.values())
    for name, matchers in _SELECTOR.findall(bare):
        unknown = set(_MATCHER.findall(matchers)) - known.get(name, every)
        yield from (f"unknown label {label} of {name}" for label in sorted(unknown))
    for labels in _GROUPING.findall(bare):
        named = {label.strip() for label in labels.split(",")} - {""}
        unknown = named - every - {*_MADE.findall(expression)}
        yield from (f"unknown label {label} in ({labels})" for label in sorted(unknown))
