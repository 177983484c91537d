"""What all dashboards share: variables, links, time, and rows of panels."""

from dataclasses import dataclass, field
from typing import Any, Optional, Sequence

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardCursorSync,
    DashboardFieldConfigSourceOverrides,
    DashboardLinkType,
    DynamicConfigValue,
    MatcherConfig,
    VariableHide,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from .figures import HANDSHAKE_CPU, HANDSHAKES, RECORDED_CPU, SERVER
from .links import link_to_panel
from .panels import DATA_SOURCE
from .queries import HOSTS, Source, total

AGENTS = "tlsprof_build_info"
SERVICES = "tlsprof_connections_opened_total"
SERVICE_TEXT = (
    "Services that accept connections, by systemd unit, container or executable. To select another service, such"
    " as a client, type its name."
)
ALL = VariableOption(selected=True, text="All", value="$__all")


@dataclass
class Row:
    """Panels under a title, in reading order. Collapsed rows ask nothing until they are opened. `leads`: a click
    on the figure of that title shows the panel of the other one, in whichever row."""

    title: str
    panels: list[Any] = field(default_factory=list)
    collapsed: bool = False
    leads: dict[str, str] = field(default_factory=dict)


def _variable(name: str, label: str, metric: str, matchers: str, description: str) -> dashboard.QueryVariable:
    query = f"label_values({metric}{{{matchers}}}, {name})"
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(DATA_SOURCE)
        .query({"query": query, "refId": f"Variable-{name}", "qryType": 1})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_CASE_INSENSITIVE_ASC)
    )


def _several(variable: dashboard.QueryVariable, all_value: Optional[str] = ".*") -> dashboard.QueryVariable:
    variable = variable.multi(True).include_all(True).current(ALL)
    return variable.all_value(all_value) if all_value else variable


def _host_variables() -> list[Any]:
    cluster, job, _ = HOSTS
    data_source = dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    data_source = data_source.description("The Prometheus that scrapes the agents.")
    return [
        data_source,
        _several(
            _variable("cluster", "Cluster", AGENTS, "", "The label `cluster`; All if no host has it.")
        ),
        # Without a value for All of its own: `up` has a job of everything that Prometheus scrapes. Hidden: as a
        # rule there is one, and a variable cannot be hidden by how many values it has. Links may set it.
        _several(_variable("job", "Job", AGENTS, cluster, "The scrape job of the agents."), all_value=None).hide(
            VariableHide.HIDE_VARIABLE
        ),
        _several(_variable("instance", "Host", AGENTS, f"{cluster}, {job}", "Hosts with an agent.")),
    ]


def services_variable() -> dashboard.QueryVariable:
    """Any number of services; all at first."""
    return _several(_service())


def busiest_service_variable() -> dashboard.QueryVariable:
    """Any number of services; at first the one with the most handshakes as server, not a load generator.

    Without `include_all`, for which Grafana would begin with All. Links from other dashboards may bring
    All along: then `all_value` is taken all the same."""
    hosts = Source(HOSTS).over_all()
    # The histogram begins at zero, before the first load test, but also for servers without TLS.
    made = total(hosts.histogram_count(HANDSHAKE_CPU, SERVER), "service_name")
    idle = total(hosts.rate(HANDSHAKES, SERVER), "service_name")
    ranked = f"sort_desc({made} > 0 or {idle})"
    return (
        result_variable("service_name", "Service", SERVICE_TEXT, ranked)
        .regex('/service_name="([^"]+)"/')
        .sort(VariableSort.DISABLED)
        .multi(True)
        .include_all(False)
        .all_value(".*")
    )


def _service() -> dashboard.QueryVariable:
    return _variable("service_name", "Service", SERVICES, ", ".join((*HOSTS, SERVER)), SERVICE_TEXT)


def unrecorded_variable() -> dashboard.QueryVariable:
    """Hosts whose figures Prometheus does not record: of the others, raw series are not read."""
    agents = f"count by (instance) ({Source(HOSTS).value(AGENTS)})"
    recorded = f"count by (instance) ({Source(HOSTS).value(RECORDED_CPU)})"
    missing = f"{agents} unless on (instance) {recorded}"
    made = result_variable("unrecorded", "Not recorded", "Hosts without recorded series.", missing)
    return (
        _several(made, all_value=None)
        .regex('/instance="([^"]+)"/')
        .hide(VariableHide.HIDE_VARIABLE)
    )


def result_variable(name: str, label: str, description: str, expression: str) -> dashboard.QueryVariable:
    """The result of an expression as text, out of which a regular expression takes the values."""
    query = {"query": f"query_result({expression})", "refId": f"Variable-{name}", "qryType": 3}
    made = dashboard.QueryVariable(name).label(label).description(description).datasource(DATA_SOURCE)
    return made.query(query).refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)


def to_all_dashboards() -> dashboard.DashboardLink:
    """The menu of all tlsprof dashboards; time and variables come along."""
    link = dashboard.DashboardLink("tlsprof").type(DashboardLinkType.DASHBOARDS).tags(["tlsprof"])
    link = link.as_dropdown(True).include_vars(True).keep_time(True).target_blank(False)
    return (
        link.icon("external link").tooltip("Other dashboards for the same time, hosts and services").url("")
    )


def build(
    uid: str,
    title: str,
    description: str,
    rows: list[Row],
    *variables: Any,
    annotations: Sequence[Any] = (),
    start: str = "now-1h",
) -> Dashboard:
    """A dashboard; panels are numbered in reading order."""
    board = (
        dashboard.Dashboard(f"tlsprof / {title}")
        .uid(uid)
        .description(description)
        .tags(["tlsprof", "tls"])
        .timezone("browser")
        .time(start, "now")
        .refresh("30s")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .variables([*_host_variables(), *variables])
        .links([to_all_dashboards()])
        .annotations(list(annotations))
        .version(1)
    )
    number = 0
    for row in rows:
        number += 1
        header = dashboard.Row(row.title).id(number).collapsed(row.collapsed)
        for panel in row.panels:
            number += 1
            panel.id(number)
        if row.collapsed:
            for panel in row.panels:
                header = header.with_panel(panel)
        board = board.with_row(header)
        if not row.collapsed:
            for panel in row.panels:
                board = board.with_panel(panel)
    return _with_leads(board.build(), {begin: end for row in rows for begin, end in row.leads.items()})


def _with_leads(board: Dashboard, leads: dict[str, str]) -> Dashboard:
    every = {panel.title: panel for shown in board.panels for panel in getattr(shown, "panels", [shown])}
    variables = [variable.name for variable in board.templating.list_val]
    for begin, end in leads.items():
        link = link_to_panel(end, board.uid, variables, every[end].id_val)
        links = DashboardFieldConfigSourceOverrides(
            MatcherConfig("byRegexp", "/.*/"), [DynamicConfigValue("links", [link])]
        )
        every[begin].field_config.overrides.append(links)
    return board
