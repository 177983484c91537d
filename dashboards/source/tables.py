"""Tables: a row for each set of labels, a column for each query."""

from dataclasses import dataclass
from typing import Optional, Sequence

from grafana_foundation_sdk.builders import common, table
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from .links import Link
from .panels import NUMBER, Builder, Query, panel, target
from .text import Text
from .thresholds import Limits

@dataclass(frozen=True)
class Column:
    """A figure. `words` are shown instead of its values, each with its colour; a hidden one is there
    for its labels or to sort by; `gauge` draws a share as a bar beside its value."""

    name: str
    expression: str
    unit: str = NUMBER
    limits: Optional[Limits] = None
    words: Optional[dict[int, tuple[str, str]]] = None
    decimals: Optional[int] = None
    hidden: bool = False
    gauge: bool = False
    width: int = 0

    @property
    def pixels(self) -> int:
        """Wide enough that neither its head nor a word in it is cut; labels share the rest."""
        if self.width:
            return self.width
        words = [text for text, _ in (self.words or {}).values()]
        return max(76, *(8 * len(text) + 24 for text in (self.name, *words)))


EMPTY_CELLS = [
    DynamicConfigValue("noValue", "–"),
    DynamicConfigValue(
        "mappings",
        [{"type": "special", "options": {"match": "null+nan", "result": {"text": "–", "color": "text"}}}],
    ),
]
"""Grafana puts a panel's text for no data into every empty cell, too."""


def listing(
    title: str,
    text: Text,
    labels: dict[str, str],
    *columns: Column,
    links: Optional[dict[str, list[Link]]] = None,
    widths: Optional[dict[str, int]] = None,
    sort: str = "",
    descending: bool = True,
    first: Sequence[str] = (),
    hidden: Sequence[str] = (),
    size: tuple[int, int] = (24, 9),
) -> Builder:
    """`labels` says under which name a label is shown, `links` where a click on it leads, `sort` by which
    column rows are sorted at first, `first` which columns come before the labels, `hidden` which labels are there
    for links or to keep rows apart. With several columns, a table without rows has heads instead of a text."""
    made = panel(table.Panel(), title, text, NUMBER, size, None)
    made = made.override_by_regexp("/.*/", EMPTY_CELLS)
    renamed, excluded = dict(labels), {"Time": True}
    for number, column in enumerate(columns):
        shape = lambda it: it.instant().format(PromQueryFormat.TABLE)
        made = made.with_target(target(Query(column.expression, column.name), number, shape))
        # With one query alone the field has no letter.
        field = f"Value #{chr(ord('A') + number)}" if len(columns) > 1 else "Value"
        renamed[field] = column.name
        made = made.override_by_name(column.name, _style(column, column.name == sort))
    for name in labels.values():
        found = [DynamicConfigValue("custom.filterable", True)]
        if name in hidden:
            found.append(DynamicConfigValue("custom.hidden", True))
        if links and name in links:
            found.append(DynamicConfigValue("links", links[name]))
        if widths and name in widths:
            found.append(DynamicConfigValue("custom.width", widths[name]))
        made = made.override_by_name(name, found)
    placed = sorted(renamed, key=lambda field: renamed[field] not in first)
    order = {field: place for place, field in enumerate(placed)}
    organize = {"excludeByName": excluded, "indexByName": order, "renameByName": renamed}
    if sort:
        made = made.sort_by([common.TableSortByFieldState().display_name(sort).desc(descending)])
    return (
        made.with_transformation(DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(DataTransformerConfig(id_val="organize", options=organize))
        .show_header(True)
        .cell_height(kinds.TableCellHeight.SM)
    )


SORT_ARROW = 20
"""Pixels."""


def _style(column: Column, sorted_by: bool) -> list[DynamicConfigValue]:
    style = [DynamicConfigValue("unit", column.unit)]
    if column.hidden:
        style.append(DynamicConfigValue("custom.hidden", True))
    style.append(DynamicConfigValue("custom.width", column.pixels + SORT_ARROW * sorted_by))
    if column.decimals is not None:
        style.append(DynamicConfigValue("decimals", column.decimals))
    if column.words:
        options = {str(value): {"text": text, "color": colour} for value, (text, colour) in column.words.items()}
        style.append(DynamicConfigValue("mappings", [{"type": "value", "options": options}]))
        style.append(DynamicConfigValue("custom.cellOptions", {"type": "color-text"}))
        style.append(DynamicConfigValue("custom.align", "left"))
    if column.limits:
        steps = [step.to_json() for step in column.limits.steps()]
        style.append(DynamicConfigValue("thresholds", {"mode": "absolute", "steps": steps}))
        style.append(DynamicConfigValue("color", {"mode": "thresholds"}))
        style.append(DynamicConfigValue("custom.cellOptions", {"type": "color-text"}))
    if column.gauge:
        style += [DynamicConfigValue("min", 0), DynamicConfigValue("max", 1)]
        cell = {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}
        style.append(DynamicConfigValue("custom.cellOptions", cell))
    return style
