"""Load test: the selected time beside an earlier one of the same length."""

from typing import Any, Callable, Optional

from grafana_foundation_sdk.builders import common, dashboard
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import Dashboard, DynamicConfigValue, VariableOption

from . import colours, figures, thresholds
from .frame import Row, build, busiest_service_variable
from .panels import DATA_SOURCE, NUMBER, PER_SECOND, SECONDS, SHARE, Query, course, figure
from .queries import HOSTS, Source, each_of, total
from .tables import Column, listing
from .text import Text
from .thresholds import Limits

UID = "tlsprof-load-test"
BEFORE = "$before"
NOW = Source()
THEN = NOW.before(BEFORE)
WHOLE = Source(window="$__range")
WHOLE_THEN = WHOLE.before(BEFORE)

NO_LOAD = "No request was answered in this time range: requests are counted when their connection ends."
NO_HANDSHAKE = "No handshake was completed in this time range."
OFFSETS = ["1m", "5m", "10m", "15m", "30m", "1h", "2h", "6h", "12h", "1d", "7d"]


def _before_variable() -> dashboard.CustomVariable:
    return (
        dashboard.CustomVariable("before")
        .label("Compare with")
        .description(
            "Offset of the earlier window that the selected one is compared with: one of these, or any"
            " other that you type, such as 5m4s."
        )
        .values(", ".join(OFFSETS))
        .current(VariableOption(selected=True, text="1h", value="1h"))
        .options([VariableOption(selected=name == "1h", text=name, value=name) for name in OFFSETS])
    )


Formula = Callable[..., str]


def _both(title: str, text: Text, unit: str, formula: Formula, better: Optional[Limits]) -> Any:
    """A figure over the whole window, now and before, and the change between them; `better` says which
    direction is, if any."""
    now, before = formula(WHOLE), formula(WHOLE_THEN)
    shown = [
        Query(now, "now"),
        Query(before, "before"),
        Query(figures.change(now, before), "change"),
    ]
    made = figure(title, text, unit, *shown, limits=better, size=(6, 5), over_range=True)
    # The colours are those of the change: the figures themselves have none.
    for name in ("now", "before"):
        plain = DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "text"})
        made = made.override_by_name(name, [plain])
    if not better:
        neutral = DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "blue"})
        made = made.override_by_name("change", [neutral])
    percent = [DynamicConfigValue("unit", SHARE), DynamicConfigValue("decimals", 1)]
    return made.override_by_name("change", percent).orientation(kinds.VizOrientation.VERTICAL).text(
        common.VizTextDisplayOptions().value_size(20.0).title_size(13.0)
    )


def _totals() -> Row:
    return Row(
        "Did it help? The whole window, now and $before before",
        [
            _both(
                "CPU/request",
                Text(
                    "CPU time of the selected services per request: the main result of a load test.",
                    "Lower than before.",
                    "Select only the services under test, and a window that contains only the load.",
                    NO_LOAD,
                ),
                SECONDS,
                figures.cpu_per_request,
                thresholds.CHANGE,
            ),
            _both(
                "Requests",
                Text(
                    "Requests answered per second (turns of connections that ended).",
                    "Higher than before, at the same CPU.",
                    "Compare CPU per request, not requests, if the load generator set the pace.",
                    NO_LOAD,
                ),
                PER_SECOND,
                figures.requests,
                thresholds.GAIN,
            ),
            _both(
                "Handshake share",
                Text(
                    "Share of CPU time in handshakes.",
                    "Lower than before, if handshakes are what you changed.",
                    "Unchanged although CPU per request fell: the change helped elsewhere.",
                    NO_LOAD,
                ),
                SHARE,
                figures.handshake_share,
                thresholds.CHANGE,
            ),
            _both(
                "CPU/handshake",
                Text(
                    "Mean CPU time per completed server handshake.",
                    "Lower than before after a change of group or certificate.",
                    "A change in resumption also shifts it: see the Service dashboard for full handshakes"
                    " only.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                figures.handshake_cost,
                thresholds.CHANGE,
            ),
            _both(
                "Handshakes",
                Text(
                    "Completed server handshakes per second.",
                    "Fewer than requests.",
                    "As many as requests: the load generator or the server does not use keep-alive.",
                    NO_HANDSHAKE,
                ),
                PER_SECOND,
                figures.handshakes,
                None,
            ),
            _both(
                "Requests/connection",
                Text(
                    "Mean turns on connections of servers that ended.",
                    "As in production: a load test with one request per connection tests handshakes.",
                    "Enable keep-alive in the load generator (ab -k; h2load by default).",
                    NO_LOAD,
                ),
                NUMBER,
                figures.turns,
                None,
            ),
            _both(
                "Resumed",
                Text(
                    "Share of completed handshakes that resumed a session.",
                    "As production has it. ab and wrk do not resume.",
                    "Read CPU per handshake with it in mind.",
                    NO_HANDSHAKE,
                ),
                SHARE,
                figures.resumed_share,
                None,
            ),
            _both(
                "Failed",
                Text(
                    "Share of handshakes that ended with an error or a fatal alert.",
                    "Zero: a failing load test measures failures.",
                    "See failures on the Service dashboard.",
                    "No handshake in this time range.",
                ),
                SHARE,
                figures.failed_share,
                thresholds.CHANGE,
            ),
        ],
    )


def _pair(title: str, text: Text, unit: str, formula: Formula, axis: str = "") -> Any:
    queries = [Query(formula(NOW), "now"), Query(formula(THEN), "before")]
    made = course(title, text, unit, *queries, axis=axis, colours=colours.BEFORE_AND_NOW)
    dashes = DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [6, 4]})
    return made.override_by_name("before", [dashes])


def _courses() -> Row:
    return Row(
        "Course, now over $before before",
        [
            _pair(
                "Requests over time",
                Text(
                    "Requests answered per second, both windows superimposed.",
                    "Both flat, after the same start.",
                    "Windows that are not aligned: choose the time so that both begin with the load.",
                    NO_LOAD,
                ),
                PER_SECOND,
                figures.requests,
            ),
            _pair(
                "CPU per request over time",
                Text(
                    "CPU time for each request, in both windows.",
                    "Two flat lines, with a gap larger than their variation.",
                    "Lines that cross: no difference beyond noise. `tlsprof compare` gives the confidence.",
                    NO_LOAD,
                ),
                SECONDS,
                figures.cpu_per_request,
            ),
            _pair(
                "CPU over time",
                Text(
                    "CPU time of the selected services in cores, in both windows.",
                    "Below the number of cores: on an overloaded host you measure the queue.",
                    "At the limit: lower the load, or compare CPU per request only.",
                    "The selected services used no CPU time.",
                ),
                NUMBER,
                figures.cpu,
                axis="cores",
            ),
            _pair(
                "CPU in handshakes over time",
                Text(
                    "Share of CPU time in handshakes, in both windows.",
                    "Lower than before.",
                    "See CPU per request for whether it pays.",
                    "The selected services used no CPU time.",
                ),
                SHARE,
                figures.handshake_share,
            ),
        ],
    )


def _by_service() -> Row:
    columns = []
    for name, formula, unit, better in (
        ("CPU/request", figures.cpu_per_request, SECONDS, thresholds.CHANGE),
        ("CPU/handshake", figures.handshake_cost, SECONDS, thresholds.CHANGE),
        ("Requests", figures.requests, PER_SECOND, thresholds.GAIN),
    ):
        now, before = formula(WHOLE, "service_name"), formula(WHOLE_THEN, "service_name")
        columns.append(Column(name, now, unit))
        columns.append(Column(f"{name} before", before, unit))
        columns.append(Column(f"{name} change", figures.change(now, before), SHARE, better, decimals=1))

    def by_activity(source: Source) -> str:
        spent = source.rate(figures.ACTIVITY_CPU, figures.OF_PROCESSES)
        return each_of(total(spent, "activity"), figures.requests(source))

    now, before = by_activity(WHOLE), by_activity(WHOLE_THEN)
    return Row(
        "By service and activity",
        [
            listing(
                "Services, now and before",
                Text(
                    "The whole window for each service, next to the earlier window.",
                    "CPU per request lower than before.",
                    "A load generator on the same host is also a service: its row shows whether it was the"
                    " bottleneck.",
                    NO_LOAD,
                ),
                {"service_name": "Service"},
                *columns,
                widths={"Service": 180},
                sort="CPU/request change",
                size=(24, 7),
            ),
            listing(
                "CPU per request by activity",
                Text(
                    "CPU time per request by activity, without softirq: shows where a change had an effect.",
                    "Lower in the activity that you intended to change, unchanged in the others.",
                    "Lower everywhere: the host or the load differed, not only the setting.",
                    "This agent does not export tlsprof_cpu_seconds_total, or no request was answered.",
                ),
                {"activity": "Activity"},
                Column("now", now, SECONDS),
                Column("before", before, SECONDS),
                Column("change", figures.change(now, before), SHARE, thresholds.CHANGE, decimals=1),
                sort="now",
                size=(14, 8),
            ),
            _tests(),
        ],
    )


def _tests() -> Any:
    """Load tests of the selected time, and links that compare with them."""
    hosts = Source(HOSTS)
    started = f"max by (instance) ({hosts.value('tlsprof_report_start_time_seconds')})"
    ago = f"time() - {started}"
    return listing(
        "Last load test by host",
        Text(
            "When `tlsprof report -- COMMAND` last began on a host, and how long ago that is.",
            "The one that you compare with is the one that you mean.",
            "Select its time above; type the distance between two tests as `Compare with`.",
            "No load test has run since the agents started.",
        ),
        {"instance": "Host"},
        Column("Began", f"1000 * {started}", "dateTimeAsIso"),
        Column("Ago", ago, "dtdurations"),
        sort="Began",
        size=(10, 8),
    )


def _load_tests() -> dashboard.AnnotationQuery:
    """While `tlsprof report` ran a load-test command."""
    # Grafana evaluates annotations of Prometheus once a minute: a minute back, none is missed.
    running = f"max_over_time({Source(HOSTS).value('tlsprof_report_running')}[1m])"
    return (
        dashboard.AnnotationQuery()
        .name("Load tests")
        .datasource(DATA_SOURCE)
        .enable(True)
        .hide(False)
        .icon_color("purple")
        .expr(f"{running} == 1")
    )


def make() -> Dashboard:
    """Did the change help?"""
    return build(
        UID,
        "Load test",
        "Compare a load test with an earlier one: select its time range, and the offset of the earlier one.",
        [_totals(), _courses(), _by_service()],
        busiest_service_variable(),
        _before_variable(),
        annotations=[_load_tests()],
        start="now-15m",
    )
