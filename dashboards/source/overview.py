"""TLS cost overview: the fleet, hosts by services."""

from typing import Any

from grafana_foundation_sdk.models.dashboard import Dashboard

from . import colours, figures, problems, thresholds
from .frame import Row, build, services_variable, unrecorded_variable
from .links import link_of_series, link_to
from .load_tests import NOTES
from .panels import NUMBER, PER_SECOND, SECONDS, SHARE, Query, course, figure
from .queries import HOSTS, Source, or_zero, total
from .tables import Column, listing
from .text import Text

UID = "tlsprof-overview"
PLACE = ("cluster", "instance", "service_name")
ALL = Source(recorded=True)
"""The first look is at many services: over recorded figures."""
RAW = Source()
"""Activities are not recorded: their total must come from the same window."""
AGENTS = Source(HOSTS)

NO_HANDSHAKE = (
    "No completed server handshake in this time range. Does the service use TLS, and did it have clients?"
)
NO_SAMPLES = (
    "No selected service used CPU time, or CPU samples are unavailable: run `tlsprof doctor` on the host"
    " (cpu_samples)."
)
NO_SERVICE = (
    "No service matches this selection. Is the agent up (see Agent health), and is a server running?"
)


def _handshakes_and_hosts() -> list[Any]:
    return [
        figure(
            "Handshake share",
            Text(
                "Share of the selected services' CPU time spent on TLS handshakes, as server and"
                " client.",
                "Below 20%; a few percent for a server with long connections and resumed sessions.",
                "Open the Service dashboard of the service with the largest share: its steps and"
                " negotiated parameters show the cause.",
                NO_SERVICE,
            ),
            SHARE,
            Query(figures.handshake_share(ALL), "Handshake share"),
            limits=thresholds.HANDSHAKE_SHARE,
            size=(6, 3),
        ),
        figure(
            "Handshakes",
            Text(
                "Completed server handshakes per second.",
                "Far fewer than requests: each connection serves several.",
                "If it is near the request rate, look at requests per connection in Connections and"
                " TIME_WAIT.",
                NO_HANDSHAKE,
            ),
            PER_SECOND,
            Query(figures.handshakes(ALL), "Handshakes"),
            size=(6, 3),
        ),
        figure(
            "CPU/handshake",
            Text(
                "Mean CPU time per completed server handshake, full and resumed.",
                "Same as yesterday, and similar to services with the same certificate and clients.",
                "Compare services below. Less resumption, a slower group or a larger key raise it.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            Query(figures.handshake_cost(ALL), "CPU per handshake"),
            size=(6, 3),
        ),
        figure(
            "Hosts up",
            Text(
                "Agents reached by the last scrape, out of all that Prometheus scrapes.",
                "All are up.",
                "Click to open Agent health, which lists agents that are down.",
                "Prometheus scrapes no agent: docs/fleet.md has the scrape job.",
            ),
            NUMBER,
            Query(figures.agents_down(AGENTS), "{{up}} of {{all}}"),
            decimals=0,
            named=True,
            limits=thresholds.NONE_DOWN,
            size=(6, 3),
            link=link_of_series("Agent health", "tlsprof-agent-health"),
        ),
    ]


def _resumed() -> list[Any]:
    return [
        figure(
            "Resumed",
            Text(
                "Share of completed server handshakes that resumed a session. Those for which it is unknown do"
                " not count.",
                "Above 50% if clients return.",
                "Check refused sessions on the Service dashboard: the cache may be disabled, too small"
                " or not shared.",
                NO_HANDSHAKE,
            ),
            SHARE,
            Query(figures.resumed_share(ALL), "Resumed"),
            limits=thresholds.RESUMED,
            size=(6, 3),
        ),
        figure(
            "Least resumed",
            Text(
                "Service with the smallest share of resumed handshakes, among the 10 with the most"
                " handshake CPU.",
                "Above 50%, unless its clients rarely return (monitoring, scanners).",
                "Click to open the service: refused sessions show whether its session cache works.",
                NO_HANDSHAKE,
            ),
            SHARE,
            Query(figures.worst(figures.resumed_share, ALL, "bottomk"), "{{service_name}}"),
            limits=thresholds.RESUMED,
            size=(6, 3),
            of_one=True,
            link=link_of_series("Service dashboard", "tlsprof-service", "service_name"),
        ),
    ]


def _failed() -> list[Any]:
    return [
        figure(
            "Failed",
            Text(
                "Share of server handshakes that ended with an error or a fatal alert. Handshakes"
                " abandoned by the peer are not included.",
                "Below 1%.",
                "Failures by alert on the Service dashboard show which side refused what.",
                "No server handshake in this time range, failed or not.",
            ),
            SHARE,
            Query(figures.failed_share(ALL), "Failed"),
            limits=thresholds.FAILED,
            size=(6, 3),
        ),
        figure(
            "Most failures",
            Text(
                "Service with the largest share of failed handshakes, among the 10 with the most"
                " handshake CPU.",
                "Below 1%.",
                "Click to open the service: failures by alert show which side refused what.",
                NO_HANDSHAKE,
            ),
            SHARE,
            Query(figures.worst(figures.failed_share, ALL), "{{service_name}}"),
            limits=thresholds.FAILED,
            size=(6, 3),
            of_one=True,
            link=link_of_series("Service dashboard", "tlsprof-service", "service_name"),
        ),
    ]


def _summary() -> Row:
    return Row(
        "At a glance",
        [*_handshakes_and_hosts(), *_resumed(), *_failed()],
    )


def _cpu_over_time() -> list[Any]:
    return [
        course(
            "CPU by activity",
            Text(
                "CPU time of the selected services by activity, from samples scaled to the kernel's"
                " accounting. User and system together, without softirq.",
                "application dominates.",
                "handshake: see steps and negotiated parameters on the Service dashboard. tcp_open and"
                " tcp_close: keep connections open. encryption: check the cipher.",
                NO_SAMPLES,
            ),
            NUMBER,
            *(Query(one, "{{activity}}") for one in figures.by_activity(RAW)),
            whole=Query(figures.cpu(RAW), "all"),
            stacked=True,
            axis="cores",
            colours=colours.ACTIVITIES,
        ),
        course(
            "CPU by service",
            Text(
                "CPU time of each service in cores, summed over the selected hosts; top 10, with or"
                " without TLS.",
                "The services that these hosts are meant to run use the most.",
                "If a service without TLS uses the most, start there: handshakes are not the cause.",
                NO_SERVICE,
            ),
            NUMBER,
            Query(
                figures.largest(lambda it: figures.cpu(it, "service_name"), ALL, "service_name"),
                "{{service_name}}",
            ),
            stacked=True,
            axis="cores",
        ),
    ]


def _busiest_over_time() -> list[Any]:
    def of_the_busiest(formula: Any) -> Query:
        return Query(figures.of_the_busiest(formula(ALL, "service_name"), ALL), "{{service_name}}")

    return [
        course(
            "CPU in handshakes by service",
            Text(
                "Share of each service's CPU time in handshakes, over all selected hosts; the 10 services"
                " with the most handshake CPU.",
                "Below 20%.",
                "Open the service. If the share rises at the same handshake rate, each handshake costs more.",
                NO_SERVICE,
            ),
            SHARE,
            of_the_busiest(figures.handshake_share),
            limits=thresholds.HANDSHAKE_SHARE,
            size=(8, 8),
        ),
        course(
            "Handshakes by service",
            Text(
                "Completed server handshakes per second, over all selected hosts; the 10 services with"
                " the most handshake CPU.",
                "Follows the number of clients, not of requests.",
                "A step up at the same request rate means shorter connections: see Connections and"
                " TIME_WAIT.",
                NO_HANDSHAKE,
            ),
            PER_SECOND,
            of_the_busiest(figures.handshakes),
            size=(8, 8),
        ),
        course(
            "CPU per handshake by service",
            Text(
                "Mean CPU time per completed server handshake; the 10 services with the most handshake"
                " CPU.",
                "Flat. Services with the same certificate and clients are similar.",
                "Compare group, signature and resumption of an expensive service with those of a less"
                " expensive one.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            of_the_busiest(figures.handshake_cost),
            size=(8, 8),
        ),
    ]


def _courses() -> Row:
    return Row(
        "Where CPU time goes",
        [*_cpu_over_time(), *_busiest_over_time()],
    )


def _table() -> Row:
    to_service = {
        "Service": [link_to("Service dashboard", "tlsprof-service", service_name="Service", instance="Host")]
    }

    def with_tls(expression: str) -> str:
        return figures.with_tls(expression, ALL, *PLACE)

    time_wait = with_tls(total(ALL.value("tlsprof_time_wait_sockets"), *PLACE))
    encryption = with_tls(figures.activity_share(ALL, "encryption", *PLACE))
    connections = with_tls(figures.activity_share(ALL, "tcp_open|tcp_close", *PLACE))
    handshakes = with_tls(figures.handshake_share(ALL, *PLACE))
    return Row(
        "Services by host",
        [
            listing(
                "Services with TLS",
                Text(
                    "A row for each service and host: CPU time, its shares in handshakes, encryption and"
                    " opening and closing of connections (TCP), and figures of its handshakes. Click a service"
                    " to open it.",
                    "No red cells.",
                    "Start where both CPU time and handshake share are large. High encryption share: use"
                    " AES-GCM instead of CBC. High TCP share: keep connections open longer.",
                    NO_SERVICE,
                ),
                {"cluster": "Cluster", "instance": "Host", "service_name": "Service"},
                # At 1,000 px the table ends with Req/conn, and not in the middle of it: hence the widths below.
                Column("Cores", with_tls(figures.cpu(ALL, *PLACE))),
                Column("Handshake", handshakes, SHARE, thresholds.HANDSHAKE_SHARE, gauge=True, width=104),
                Column("Handshakes", with_tls(figures.handshakes(ALL, *PLACE)), PER_SECOND),
                Column("CPU/handshake", figures.handshake_cost(ALL, *PLACE), SECONDS),
                Column("Resumed", figures.resumed_share(ALL, *PLACE), SHARE, thresholds.RESUMED),
                Column("Failed", figures.failed_share(ALL, *PLACE), SHARE, thresholds.FAILED),
                Column("Req/conn", with_tls(figures.turns_by_host(ALL, *PLACE)), NUMBER, thresholds.TURNS),
                Column("Encryption", encryption, SHARE),
                Column("TCP", connections, SHARE),
                Column("TIME_WAIT", time_wait),
                links=to_service,
                widths={"Host": 120},
                sort="Cores",
            ),
        ],
    )


def _agents() -> Row:
    cost = figures.target_cost_share(AGENTS, "cluster", "instance")
    lost = figures.lost(AGENTS, "instance")
    hosts = f"count by (instance) ({AGENTS.value('tlsprof_build_info')})"
    return Row(
        "Data quality",
        [
            course(
                "Profiling overhead",
                Text(
                    "Estimated overhead as a share of the services' CPU time, by host.",
                    "Below 1%.",
                    "Agent health shows the cause; agent.budget and profile.steps limit it.",
                    NO_SERVICE,
                ),
                SHARE,
                Query(cost, "{{instance}}"),
                limits=thresholds.TARGET_COST,
                soft_max=0.025,
                size=(12, 6),
            ),
            course(
                "Lost records",
                Text(
                    "Records and calls lost by the agents, per second.",
                    "Zero.",
                    "Agent health shows the reasons; docs/alerts/TlsprofLosesData.md has the remedies.",
                    "No agent is scraped.",
                ),
                PER_SECOND,
                Query(or_zero(lost, hosts), "{{instance}}"),
                limits=thresholds.LOSSES,
                size=(12, 6),
            ),
        ],
    )


def make() -> Dashboard:
    """The dashboard to open first."""
    return build(
        UID,
        "Overview",
        "The cost of TLS across hosts and services, and which service to look at first.",
        [_summary(), problems.row(ALL), _courses(), _table(), _agents()],
        services_variable(),
        unrecorded_variable(),
        annotations=NOTES,
    )
