"""Load tests as the agents export them: a list to choose from, and marks on the time axis.

An agent exports whether `tlsprof report -- COMMAND` is running, and when the last one started. The list for the
selected time is derived from both, sampled every `STEP` seconds."""

from typing import Any

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.dashboard import VariableSort

from .frame import result_variable
from .panels import DATA_SOURCE
from .queries import HOSTS, WHOLE, Source, labelled

AGENTS = Source(HOSTS)
STEP = 15
EACH = ("instance", "began")
BEGAN = f"max by (instance) ({AGENTS.value('tlsprof_report_start_time_seconds')})"
RUNNING = f"max by (instance) ({AGENTS.value('tlsprof_report_running')}) == 1"

_RUN = f'count_values by (instance) ("began", {BEGAN} and on (instance) {RUNNING})'
_LOOKS = f"[$__range:{STEP}s]"
_STAMP = (
    "scalar(1e10 * year() + 1e8 * month() + 1e6 * day_of_month() + 1e4 * hour() + 100 * minute() + time() % 60)"
)
"""The time as a number whose digits are those of the date: 20261123180530."""

OFFSETS = {
    "(just before the selected time)": "$__range",
    "(an hour before)": "1h",
    "(a day before)": "1d",
    "(a week before)": "7d",
}
"""Alternatives for the load test before. The brackets sort them after the load tests."""


def first(value: str) -> str:
    """For each load test of the selected time, the first value of an expression while it ran."""
    return f"min_over_time(({_RUN} * {value}){_LOOKS})"


def last(value: str) -> str:
    """The last value."""
    return f"max_over_time(({_RUN} * {value}){_LOOKS})"


def seconds() -> str:
    """Duration of each load test, with one step more: it began and ended between two samples."""
    return f"count_over_time(({_RUN}){_LOOKS}) * {STEP} + {STEP}"


def listed() -> str:
    """When each began, in milliseconds, with its end, likewise, and its duration as labels."""
    began = f"1000 * {first('time()')}"
    with_end = labelled(began, "ended", f"1000 * {last('time()')}", *EACH)
    return labelled(with_end, "seconds", seconds(), *EACH)


def _as_label(name: str, expression: str) -> str:
    return f'count_values by ({", ".join(EACH)}) ("{name}", {expression})'


def _choices() -> str:
    """A series for each load test: `text` is its name, `when` its time as PromQL has it: [60s] @ 1795457130."""
    window = _as_label("window", seconds())
    end = f"{last('time()')} + {STEP}"
    when = labelled(window, "end", end, *EACH)
    when = f'label_replace(label_replace({when}, "open", "[", "", ""), "at", "s] @ ", "", "")'
    when = f'label_join({when}, "when", "", "open", "window", "at", "end")'
    parts, digits = '"date", "$1-$2-$3 $4:$5:$6 UTC"', '"(....)(..)(..)(..)(..)(..)"'
    date = f'label_replace({_as_label("stamp", first(_STAMP))}, {parts}, "stamp", {digits})'
    text = f'label_join({date}, "text", " on ", "date", "instance")'
    return f"sum by (text, when) ({when} * on ({', '.join(EACH)}) group_left (text) {text})"


def _choice(text: str, when: str) -> str:
    return f'label_replace(label_replace(vector(1), "text", "{text}", "", ""), "when", "{when}", "", "")'


def _variable(name: str, label: str, description: str, expression: str) -> dashboard.QueryVariable:
    return (
        result_variable(name, label, description, expression)
        .regex('/text="(?<text>[^"]+)".*when="(?<value>[^"]+)"/')
        .sort(VariableSort.ALPHABETICAL_DESC)
        .multi(False)
        .include_all(False)
    )


def after_variable() -> dashboard.QueryVariable:
    """The last load test, or another one, or the selected time."""
    return _variable(
        "after",
        "After",
        "The load test after the change: the last one of the selected time, unless you choose another.",
        f"{_choices()} or {_choice('(the selected time)', WHOLE)}",
    )


def before_variable() -> dashboard.QueryVariable:
    """The last load test but the one that is compared with it."""
    others = f'{_choices()} unless on (when) {_choice("", "$after")}'
    # At the end: the same at each point of a line.
    offsets = [_choice(text, f"{WHOLE} offset {offset}") for text, offset in OFFSETS.items()]
    return _variable(
        "before",
        "Before",
        "The load test before the change, or an earlier time range as long as the selected one. Or type a range of"
        " PromQL, such as [5m] offset 5m4s.",
        " or ".join([others, *offsets]),
    )


class _Titled(dashboard.AnnotationQuery):
    """With a title, for which the SDK has no word."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def build(self) -> Any:
        made = super().build()
        known = made.to_json
        made.to_json = lambda: {**known(), "titleFormat": self._title}
        return made


def _marks(name: str, title: str, colour: str, expression: str, shown: bool) -> _Titled:
    made = _Titled(title).name(name).datasource(DATA_SOURCE).expr(expression)
    return made.enable(shown).hide(False).icon_color(colour)


def marks(shown: bool) -> dashboard.AnnotationQuery:
    """Times in which `tlsprof report -- COMMAND` ran a load test."""
    # Grafana evaluates annotations once a minute: looking back a minute, it misses none.
    running = f"max_over_time({AGENTS.value('tlsprof_report_running')}[1m])"
    return _marks("Load tests", "Load test on {{instance}}", "purple", f"{running} == 1", shown)


def restarts(shown: bool) -> dashboard.AnnotationQuery:
    """Restarts of agents, which reset their counters."""
    anew = f"resets({AGENTS.value('tlsprof_agent_cpu_seconds_total')}[1m])"
    return _marks("Agent restarts", "Agent restarted on {{instance}}", "orange", f"{anew} > 0", shown)


NOTES = (marks(False), restarts(False))
"""For dashboards that are not about load tests: off by default."""
