"""Load test: one load test beside an earlier one."""

from typing import Any, Callable, Optional

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models.dashboard import Dashboard, DynamicConfigValue

from . import figures, load_tests, thresholds
from .frame import Row, build, busiest_service_variable
from .links import link_to_time
from .panels import NUMBER, PER_SECOND, SECONDS, SHARE, Query, course, figure
from .queries import Source, each_of, total
from .tables import Column, listing
from .text import Text
from .thresholds import Limits

UID = "tlsprof-load-test"
NOW = Source()
AFTER = Source(window="$after")
BEFORE = Source(window="$before")

NO_LOAD = "No request was answered in this time range: requests are counted when their connection ends."
NO_HANDSHAKE = "No handshake was completed in this time range."
NO_TEST = "`tlsprof report -- COMMAND` has run no load test on these hosts in the selected time range."
NO_CPU = "The selected services used no CPU time."

Formula = Callable[..., str]


def _both(title: str, text: Text, unit: str, formula: Formula, better: Optional[Limits]) -> Any:
    """A figure over the whole of both load tests, and the change between them; `better`: which direction
    is an improvement, if any."""
    after, before = formula(AFTER), formula(BEFORE)
    shown = [
        Query(after, "after"),
        Query(before, "before"),
        Query(figures.change(after, before), "change"),
    ]
    made = figure(title, text, unit, *shown, limits=better, size=(6, 4))
    # The colours are those of the change: the figures themselves have none.
    for name in ("after", "before"):
        plain = DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "text"})
        made = made.override_by_name(name, [plain])
    if not better:
        neutral = DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "blue"})
        made = made.override_by_name("change", [neutral])
    percent = [DynamicConfigValue("unit", SHARE), DynamicConfigValue("decimals", 1)]
    # One below the other: side by side, values break into two lines at 1000 px.
    return made.override_by_name("change", percent).orientation(kinds.VizOrientation.HORIZONTAL).text(
        common.VizTextDisplayOptions().value_size(18.0).title_size(14.0)
    )


def _answer() -> Row:
    return Row(
        "Did it help? After: ${after:text}. Before: ${before:text}",
        [
            _both(
                "CPU/request",
                Text(
                    "CPU time of the selected services per request: the main result of a load test.",
                    "Lower than before.",
                    "Select only the services under test, and two load tests that differ in one setting.",
                    NO_LOAD,
                ),
                SECONDS,
                figures.cpu_per_request,
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
                "Handshake share",
                Text(
                    "Share of CPU time in handshakes.",
                    "Lower than before, if the change concerns handshakes.",
                    "If CPU per request fell but the share did not, the change helped elsewhere.",
                    NO_LOAD,
                ),
                SHARE,
                figures.handshake_share,
                thresholds.CHANGE,
            ),
            _both(
                "Requests",
                Text(
                    "Throughput: requests answered per second (turns of connections that ended).",
                    "Higher than before, at the same CPU.",
                    "If the load generator limits the request rate, compare CPU per request instead.",
                    NO_LOAD,
                ),
                PER_SECOND,
                figures.requests,
                thresholds.GAIN,
            ),
        ],
    )


def _same_load() -> Row:
    return Row(
        "Was it the same load?",
        collapsed=True,
        panels=[
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
                    "Mean requests per server connection that ended.",
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
                    "Share of completed handshakes that resumed a session. Those for which it is unknown do not"
                    " count.",
                    "As in production. ab and wrk do not resume sessions.",
                    "If it differs between the load tests, so does CPU per handshake.",
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
                    "The row Failures of the Service dashboard shows the causes.",
                    "No handshake in this time range.",
                ),
                SHARE,
                figures.failed_share,
                thresholds.CHANGE,
            ),
        ],
    )


MEAN_BEFORE = "before (mean)"
DASHED = [
    DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 10]}),
    DynamicConfigValue("color", {"mode": "fixed", "fixedColor": "#9fa7b3"}),
]


def _line(title: str, text: Text, unit: str, now: str, before: str, axis: str = "") -> Any:
    """The selected time, over the mean of the load test before the change."""
    lines = (Query(now, title), Query(before, MEAN_BEFORE))
    made = course(title, text, unit, *lines, axis=axis, size=(12, 7), colours={title: "blue"})
    return made.override_by_name(MEAN_BEFORE, DASHED)


def _courses() -> Row:
    # Requests are counted when connections end: without this, a moment with few of them is a spike.
    per_request = f"{figures.cpu_per_request(NOW)} and {figures.requests(NOW)} > 1"
    return Row(
        "Over time (purple marks: load tests)",
        [
            _line(
                "CPU per request over time",
                Text(
                    "CPU time of the selected services per request.",
                    "Flat within a load test, and in the one after the change below the dashed mean of the one"
                    " before it.",
                    "A step smaller than the variation within a load test may be noise: `tlsprof compare` gives"
                    " confidence intervals.",
                    NO_LOAD,
                ),
                SECONDS,
                per_request,
                figures.cpu_per_request(BEFORE),
            ),
            _line(
                "CPU in handshakes over time",
                Text(
                    "Share of CPU time in handshakes.",
                    "Lower after the change.",
                    "CPU per request shows whether it pays off.",
                    NO_CPU,
                ),
                SHARE,
                figures.handshake_share(NOW),
                figures.handshake_share(BEFORE),
            ),
            _line(
                "Requests over time",
                Text(
                    "Requests answered per second.",
                    "Flat within a load test.",
                    "A ramp or a gap: the load generator or the host was busy with something else.",
                    NO_LOAD,
                ),
                PER_SECOND,
                figures.requests(NOW),
                figures.requests(BEFORE),
            ),
            _line(
                "CPU over time",
                Text(
                    "CPU time of the selected services in cores.",
                    "Below the number of cores: an overloaded host measures its queue.",
                    "At the limit: reduce the load, or compare CPU per request only.",
                    NO_CPU,
                ),
                NUMBER,
                figures.cpu(NOW),
                figures.cpu(BEFORE),
                axis="cores",
            ),
        ],
    )


def _services() -> Any:
    columns = []
    for name, formula, unit, better in (
        ("CPU/request", figures.cpu_per_request, SECONDS, thresholds.CHANGE),
        ("CPU/handshake", figures.handshake_cost, SECONDS, thresholds.CHANGE),
        ("Requests", figures.requests, PER_SECOND, thresholds.GAIN),
    ):
        after, before = formula(AFTER, "service_name"), formula(BEFORE, "service_name")
        columns.append(Column(name, after, unit))
        # All columns have to fit: for the others, the change is enough.
        if formula is figures.cpu_per_request:
            columns.append(Column("before", before, unit))
        change = figures.change(after, before)
        columns.append(Column(f"Δ {name}", change, SHARE, better, decimals=1))
    return listing(
        "Services, after and before",
        Text(
            "Each service over the whole of both load tests. Δ: change from before to after.",
            "CPU per request lower than before.",
            "A load generator on the same host is also a service: its row shows whether it was the"
            " bottleneck.",
            NO_LOAD,
        ),
        {"service_name": "Service"},
        *columns,
        widths={"Service": 150},
        sort="Δ CPU/request",
        size=(24, 6),
    )


def _activities() -> Any:
    def by_activity(source: Source) -> str:
        spent = source.rate(figures.ACTIVITY_CPU, figures.OF_PROCESSES)
        return each_of(total(spent, "activity"), figures.requests(source))

    after, before = by_activity(AFTER), by_activity(BEFORE)
    return listing(
        "CPU per request by activity",
        Text(
            "CPU time per request by activity, without softirq.",
            "Lower in the activity that the change concerns, unchanged in the others.",
            "If it is lower everywhere, the host or the load differed, too.",
            "No request was answered, or the agents do not export tlsprof_cpu_seconds_total.",
        ),
        {"activity": "Activity"},
        Column("after", after, SECONDS),
        Column("before", before, SECONDS),
        Column("change", figures.change(after, before), SHARE, thresholds.CHANGE, decimals=1),
        sort="after",
        size=(12, 9),
    )


def _load_tests() -> Any:
    return listing(
        "Load tests",
        Text(
            "Load tests that `tlsprof report -- COMMAND` ran in the selected time range; times are"
            " accurate to 15 s. Click a host to select the time of its load test.",
            "Both load tests that you compare are listed, with the expected duration.",
            "Choose them as After and Before. If one is missing, extend the time range to include its"
            " start.",
            NO_TEST,
        ),
        {"instance": "Host", "seconds": "Seconds", "ended": "Ended", "began": "Began by its host"},
        Column("Began", load_tests.listed(), "dateTimeAsIso", width=155),
        widths={"Seconds": 115},
        links={"Host": [link_to_time("Select its time", UID, "Began", "Ended")]},
        sort="Began",
        hidden=("Ended", "Began by its host"),
        size=(12, 9),
    )


def _by_service() -> Row:
    return Row("By service and activity", [_services(), _activities(), _load_tests()])


def make() -> Dashboard:
    """Whether a change helped."""
    return build(
        UID,
        "Load test",
        "Compares a load test with an earlier one, both chosen from a list.",
        [_answer(), _same_load(), _courses(), _by_service()],
        busiest_service_variable(),
        load_tests.after_variable(),
        load_tests.before_variable(),
        annotations=[load_tests.marks(True), load_tests.restarts(True)],
        start="now-3h",
    )
