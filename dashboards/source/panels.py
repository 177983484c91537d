"""Panels with one figure, lines or a heat map: each with a description, a unit, and thresholds that say why."""

from dataclasses import dataclass
from typing import Any, Callable, Optional

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import heatmap as heatmap_kinds
from grafana_foundation_sdk.models.dashboard import DataSourceRef, DynamicConfigValue, FieldColorModeId
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from .colours import Colours
from .links import Link
from .text import Text
from .thresholds import Limits

DATA_SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")

SHARE = "percentunit"
SECONDS = "s"
PER_SECOND = "si:/s"
CORES = "suffix: cores"
NUMBER = "short"
BYTES_PER_SECOND = "Bps"
BYTES = "bytes"

SOFT_MAX = {SHARE: 0.1, PER_SECOND: 1.0, NUMBER: 0.01, BYTES_PER_SECOND: 1000.0}
"""How far an axis reaches at least, by unit: without it, Grafana draws zeros on an axis up to 100."""

LEGEND_WIDTH = 250.0
LEGEND_BESIDE = 10
"""Columns that a panel needs for a legend beside its lines."""

HEADLINE_SIZE = 28.0

WHOLE_LINE = [
    DynamicConfigValue("custom.stacking", {"mode": "none", "group": "whole"}),
    DynamicConfigValue("custom.fillOpacity", 0),
    DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "text"}),
]

Builder = Any
"""A panel builder of the SDK; their classes have no base of their own."""


@dataclass(frozen=True)
class Query:
    """One query and the legend of its series."""

    expression: str
    legend: str

    @property
    def many(self) -> bool:
        """Whether it has a series for each value of a label."""
        return "{{" in self.legend


def target(query: Query, number: int, shape: Callable[[Any], Any]) -> prometheus.Dataquery:
    """Query A, B and so on; `shape` makes it instant, a table or a heat map."""
    made = prometheus.Dataquery().expr(query.expression).legend_format(query.legend)
    return shape(made.ref_id(chr(ord("A") + number)).datasource(DATA_SOURCE))


def panel(
    builder: Builder, title: str, text: Text, unit: str, size: tuple[int, int], limits: Optional[Limits]
) -> Builder:
    """What all panels share."""
    width, height = size
    made = builder.title(title).description(text.markdown(limits)).unit(unit).no_value(text.no_data)
    made = made.datasource(DATA_SOURCE).span(width).height(height)
    return made.thresholds(limits.config()) if limits else made


def coloured(made: Builder, colours: Colours) -> Builder:
    """Fixes the colours of series by their names."""
    for name, colour in colours.items():
        fixed = DynamicConfigValue("color", {"mode": "fixed", "fixedColor": colour})
        made = made.override_by_name(name, [fixed])
    return made


def figure(
    title: str,
    text: Text,
    unit: str,
    *queries: Query,
    limits: Optional[Limits] = None,
    size: tuple[int, int] = (8, 3),
    decimals: Optional[int] = None,
    named: bool = False,
    of_one: bool = False,
    link: Optional[Link] = None,
) -> Builder:
    """The latest value in large, which leads to `link`; with `named` the legend instead of the value, with
    `of_one` beside it. No data is a dash: a sentence would be a line of a few pixels. Without its course behind:
    lines below show it, and one point costs Prometheus a hundredth of a line."""
    made = panel(stat.Panel(), title, text, unit, size, limits).no_value("–")
    for number, query in enumerate(queries):
        made = made.with_target(target(query, number, lambda it: it.instant()))
    if link:
        made = made.override_by_regexp("/.*/", [DynamicConfigValue("links", [link])])
    if decimals is not None:
        made = made.decimals(decimals)
    several = len(queries) > 1
    shown = kinds.BigValueTextMode.NAME if named else kinds.BigValueTextMode.VALUE
    made = (
        made.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False))
        .graph_mode(kinds.BigValueGraphMode.NONE)
        .color_mode(kinds.BigValueColorMode.VALUE)
        .justify_mode(kinds.BigValueJustifyMode.AUTO)
        .orientation(kinds.VizOrientation.AUTO)
        .text_mode(kinds.BigValueTextMode.VALUE_AND_NAME if several or of_one else shown)
        .wide_layout(True)
    )
    if not several:
        sizes = common.VizTextDisplayOptions().value_size(HEADLINE_SIZE)
        made = made.text(sizes.title_size(HEADLINE_SIZE) if named else sizes)
    if limits:
        return made.color_scheme(dashboard.FieldColor().mode(FieldColorModeId.THRESHOLDS))
    return made.color_scheme(dashboard.FieldColor().mode(FieldColorModeId.FIXED).fixed_color("blue"))


def _legend(queries: tuple[Query, ...], width: int) -> common.VizLegendOptions:
    """At the right, largest first, where there are many series and room for it; else a line below, and
    none for a single series."""
    legend = common.VizLegendOptions().calcs([])
    many = any(query.many for query in queries)
    if many and width >= LEGEND_BESIDE:
        legend = legend.display_mode(kinds.LegendDisplayMode.TABLE).calcs(["lastNotNull", "max"])
        legend = legend.placement(kinds.LegendPlacement.RIGHT).width(LEGEND_WIDTH)
        return legend.sort_by("Max").sort_desc(True).show_legend(True)
    legend = legend.display_mode(kinds.LegendDisplayMode.LIST).placement(kinds.LegendPlacement.BOTTOM)
    return legend.show_legend(many or len(queries) > 1)


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
    soft_max: Optional[float] = None,
    colours: Optional[Colours] = None,
    logarithmic: bool = False,
    whole: Optional[Query] = None,
    legend_below: bool = False,
) -> Builder:
    """Lines over time, or areas stacked to their total; `whole` is a line above the areas."""
    made = panel(timeseries.Panel(), title, text, unit, size, limits)
    if whole:
        queries += (whole,)
        made = made.override_by_name(whole.legend, WHOLE_LINE)
    for number, query in enumerate(queries):
        made = made.with_target(target(query, number, lambda it: it.range()))
    made = (
        made.legend(_legend(queries, 0 if legend_below else size[0]))
        .tooltip(
            common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING)
        )
        .line_width(1)
        .fill_opacity(40 if stacked else 0)
        .show_points(kinds.VisibilityMode.NEVER)
        .min(0)
    )
    if stacked:
        made = made.stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL).group("A"))
    if limits:
        line = common.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.DASHED)
        made = made.thresholds_style(line)
    if unit in SOFT_MAX:
        made = made.axis_soft_max(soft_max or SOFT_MAX[unit])
    if axis:
        made = made.axis_label(axis)
    if logarithmic:
        scale = common.ScaleDistributionConfig().type(kinds.ScaleDistribution.LOG).log(2)
        made = made.scale_distribution(scale)
    made = made.max(most) if most is not None else made
    return coloured(made, colours or {})


def heat_map(title: str, text: Text, unit: str, query: Query, size: tuple[int, int] = (12, 8)) -> Builder:
    """Buckets over time, the darker the more fell into them; unit is that of the buckets. One colour:
    Grafana turns schemes of several round in its light theme."""
    made = panel(heatmap.Panel(), title, text, unit, size, None)
    made = made.with_target(target(query, 0, lambda it: it.range().format(PromQueryFormat.HEATMAP)))
    return (
        made.calculate(False)
        .color(
            heatmap.HeatmapColorOptions()
            .mode(heatmap_kinds.HeatmapColorMode.OPACITY)
            .scheme("Oranges")
            .fill("orange")
            .scale(heatmap_kinds.HeatmapColorScale.EXPONENTIAL)
            .exponent(0.4)
            .steps(64)
            .reverse(False)
        )
        .y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(kinds.AxisPlacement.LEFT))
        .cell_values(heatmap.CellValues().unit(PER_SECOND))
        .filter_values(heatmap.FilterValueRange().le(0.01))
        .rows_frame(heatmap.RowsHeatmapOptions().layout(kinds.HeatmapCellLayout.AUTO))
        .cell_gap(0)
        .show_value(kinds.VisibilityMode.NEVER)
        .mode(kinds.TooltipDisplayMode.SINGLE)
        .show_y_histogram()
        .show_legend()
    )
