"""Panels: every one with a description, a unit, a text for no data, and thresholds that say why."""

from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import heatmap as heatmap_kinds
from grafana_foundation_sdk.models.dashboard import (
    DashboardLinkType,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    FieldColorModeId,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from .thresholds import Limits

DATA_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")

SHARE = "percentunit"
SECONDS = "s"
PER_SECOND = "cps"
NUMBER = "short"
BYTES_PER_SECOND = "Bps"
BYTES = "bytes"

Builder = Any
"""A panel builder of the SDK; their classes have no base of their own."""


@dataclass(frozen=True)
class Text:
    """What a panel says of itself: what it shows, what is good, what to do if it is not so, and
    what no data means."""

    shows: str
    good: str
    remedy: str
    no_data: str

    def markdown(self, limits: Optional[Limits]) -> str:
        parts = [self.shows, f"**Good:** {self.good}", f"**What to do:** {self.remedy}"]
        if limits:
            parts.append(f"**Colours:** {limits.reason}")
        return "\n\n".join(parts)


@dataclass(frozen=True)
class Query:
    """One query and the legend of its series."""

    expression: str
    legend: str


def _target(query: Query, number: int, shape: Callable[[Any], Any]) -> prometheus.Dataquery:
    """Query A, B and so on; `shape` makes it instant, a table or a heat map."""
    target = prometheus.Dataquery().expr(query.expression).legend_format(query.legend)
    return shape(target.ref_id(chr(ord("A") + number)).datasource(DATA_SOURCE))


def _panel(
    builder: Builder, title: str, text: Text, unit: str, size: tuple[int, int], limits: Optional[Limits]
) -> Builder:
    width, height = size
    panel = builder.title(title).description(text.markdown(limits)).unit(unit).no_value(text.no_data)
    panel = panel.datasource(DATA_SOURCE).span(width).height(height)
    return panel.thresholds(limits.config()) if limits else panel


def _by_threshold() -> dashboard.FieldColor:
    return dashboard.FieldColor().mode(FieldColorModeId.THRESHOLDS)


def figure(
    title: str,
    text: Text,
    unit: str,
    *queries: Query,
    limits: Optional[Limits] = None,
    size: tuple[int, int] = (4, 4),
    over_range: bool = False,
    decimals: Optional[int] = None,
) -> Builder:
    """The latest value in large, with its course behind; with `over_range` one value of the whole
    selected time."""
    panel = _panel(stat.Panel(), title, text, unit, size, limits)
    for number, query in enumerate(queries):
        target = _target(query, number, lambda it: it.instant() if over_range else it.range())
        panel = panel.with_target(target)
    if decimals is not None:
        panel = panel.decimals(decimals)
    several = len(queries) > 1
    panel = (
        panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
        .graph_mode(kinds.BigValueGraphMode.NONE if over_range else kinds.BigValueGraphMode.AREA)
        .color_mode(kinds.BigValueColorMode.VALUE)
        .justify_mode(kinds.BigValueJustifyMode.AUTO)
        .orientation(kinds.VizOrientation.AUTO)
        .text_mode(kinds.BigValueTextMode.VALUE_AND_NAME if several else kinds.BigValueTextMode.VALUE)
        .wide_layout(True)
    )
    if limits:
        return panel.color_scheme(_by_threshold())
    return panel.color_scheme(dashboard.FieldColor().mode(FieldColorModeId.FIXED).fixed_color("blue"))


def course(
    title: str,
    text: Text,
    unit: str,
    *queries: Query,
    limits: Optional[Limits] = None,
    stacked: bool = False,
    size: tuple[int, int] = (12, 8),
    axis: str = "",
    most: Optional[float] = None,
) -> Builder:
    """Lines over time, or areas stacked to their total."""
    panel = _panel(timeseries.Panel(), title, text, unit, size, limits)
    for number, query in enumerate(queries):
        panel = panel.with_target(_target(query, number, lambda it: it.range()))
    calcs = ["mean", "max", "lastNotNull"]
    legend = common.VizLegendOptions().display_mode(kinds.LegendDisplayMode.TABLE).calcs(calcs)
    panel = (
        panel.legend(legend.placement(kinds.LegendPlacement.BOTTOM).show_legend(True))
        .tooltip(
            common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING)
        )
        .line_width(1)
        .fill_opacity(40 if stacked else 8)
        .show_points(kinds.VisibilityMode.AUTO)
        .min(0)
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL).group("A"))
    if limits:
        line = common.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.DASHED)
        panel = panel.thresholds_style(line)
    if axis:
        panel = panel.axis_label(axis)
    return panel.max(most) if most is not None else panel


def heat_map(title: str, text: Text, unit: str, query: Query, size: tuple[int, int] = (12, 8)) -> Builder:
    """Buckets over time, coloured by how many fell into them; unit is that of the buckets."""
    panel = _panel(heatmap.Panel(), title, text, unit, size, None)
    target = _target(query, 0, lambda it: it.range().format(PromQueryFormat.HEATMAP))
    return (
        panel.with_target(target)
        .calculate(False)
        .color(
            heatmap.HeatmapColorOptions()
            .mode(heatmap_kinds.HeatmapColorMode.SCHEME)
            .scheme("Turbo")
            .fill("dark-orange")
            .scale(heatmap_kinds.HeatmapColorScale.EXPONENTIAL)
            .exponent(0.5)
            .steps(64)
            .reverse(False)
        )
        .y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(kinds.AxisPlacement.LEFT))
        .cell_values(heatmap.CellValues().unit(PER_SECOND))
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .rows_frame(heatmap.RowsHeatmapOptions().layout(kinds.HeatmapCellLayout.AUTO))
        .cell_gap(1)
        .show_value(kinds.VisibilityMode.NEVER)
        .mode(kinds.TooltipDisplayMode.SINGLE)
        .show_y_histogram()
        .show_legend()
    )


@dataclass(frozen=True)
class Column:
    """One column of a table: a figure, or with `legend` only a label under another name."""

    name: str
    expression: str
    unit: str = NUMBER
    limits: Optional[Limits] = None


def listing(
    title: str,
    text: Text,
    labels: dict[str, str],
    *columns: Column,
    links: Optional[dict[str, list[dict[str, Any]]]] = None,
    hidden: Sequence[str] = (),
    size: tuple[int, int] = (24, 9),
) -> Builder:
    """A table with a row for each set of labels, and a column for each query. `labels` says under
    which name a label is shown, `links` where a click on it leads, `hidden` which are not shown."""
    panel = _panel(table.Panel(), title, text, NUMBER, size, None).filterable(True)
    renamed, excluded = dict(labels), {"Time": True}
    for number, column in enumerate(columns):
        query = Query(column.expression, column.name)
        shape = lambda it: it.instant().format(PromQueryFormat.TABLE)
        panel = panel.with_target(_target(query, number, shape))
        # With one query alone the field has no letter.
        field = f"Value #{chr(ord('A') + number)}" if len(columns) > 1 else "Value"
        renamed[field] = column.name
        if column.name in hidden:
            excluded[field] = True
        panel = panel.override_by_name(column.name, _column_style(column))
    for name, found in (links or {}).items():
        panel = panel.override_by_name(name, [DynamicConfigValue("links", found)])
    order = {name: place for place, name in enumerate(renamed)}
    organize = {"excludeByName": excluded, "indexByName": order, "renameByName": renamed}
    return (
        panel.with_transformation(DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(DataTransformerConfig(id_val="organize", options=organize))
        .show_header(True)
        .cell_height(kinds.TableCellHeight.SM)
    )


def _column_style(column: Column) -> list[DynamicConfigValue]:
    style = [DynamicConfigValue("unit", column.unit)]
    if not column.limits:
        return style
    steps = [step.to_json() for step in column.limits.steps()]
    style.append(DynamicConfigValue("thresholds", {"mode": "absolute", "steps": steps}))
    style.append(DynamicConfigValue("color", {"mode": "thresholds"}))
    style.append(DynamicConfigValue("custom.cellOptions", {"type": "color-text"}))
    return style


def link_to(title: str, uid: str, **variables: str) -> dict[str, Any]:
    """A link from a cell that keeps time and variables, and sets some from the row."""
    kept = [name for name in ("datasource", "cluster", "job", "instance") if name not in variables]
    query = ["${__url_time_range}", *(f"${{{name}:queryparam}}" for name in kept)]
    query += [f"var-{name}=${{__data.fields.{field}}}" for name, field in variables.items()]
    return {"title": title, "url": f"/d/{uid}?{'&'.join(query)}", "targetBlank": False}


def to_all_dashboards() -> dashboard.DashboardLink:
    """The menu of all tlsprof dashboards; time and variables come along."""
    link = dashboard.DashboardLink("tlsprof").type(DashboardLinkType.DASHBOARDS).tags(["tlsprof"])
    link = link.as_dropdown(True).include_vars(True).keep_time(True).target_blank(False)
    return (
        link.icon("external link").tooltip("Other dashboards for the same time, hosts and services").url("")
    )
