"""TLS cost overview: the fleet, hosts by services."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from . import figures, thresholds
from .frame import Row, build, services_variable
from .panels import NUMBER, PER_SECOND, SECONDS, SHARE, Column, Query, Text, course, figure, link_to, listing
from .queries import HOSTS, Source, or_zero, total

UID = "tlsprof-overview"
PLACE = ("cluster", "instance", "service_name")
ALL = Source()
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


def _summary() -> Row:
    return Row(
        "At a glance",
        [
            figure(
                "CPU in handshakes",
                Text(
                    "Share of the selected services' CPU time spent on TLS handshakes, as server and"
                    " client.",
                    "Below 20%; a few percent for a server with long connections and resumed sessions.",
                    "Open the Service dashboard of the service with the largest share: its steps and"
                    " negotiated parameters show the cause.",
                    NO_SERVICE,
                ),
                SHARE,
                Query(figures.handshake_share(ALL), "CPU in handshakes"),
                limits=thresholds.HANDSHAKE_SHARE,
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
            ),
            figure(
                "CPU per handshake",
                Text(
                    "Mean CPU time per completed server handshake, full and resumed.",
                    "Same as yesterday, and similar to services with the same certificate and clients.",
                    "Compare services below. Less resumption, a slower group or a larger key raise it.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                Query(figures.handshake_cost(ALL), "CPU per handshake"),
            ),
            figure(
                "Resumed",
                Text(
                    "Share of completed server handshakes that resumed a session.",
                    "Above 50% if clients return.",
                    "Check refused sessions on the Service dashboard: the cache may be disabled, too small"
                    " or not shared.",
                    NO_HANDSHAKE,
                ),
                SHARE,
                Query(figures.resumed_share(ALL), "Resumed"),
                limits=thresholds.RESUMED,
            ),
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
            ),
            figure(
                "Hosts",
                Text(
                    "Agents that Prometheus scrapes.",
                    "As many as there are hosts with an agent.",
                    "Agent health lists agents that cannot be scraped.",
                    "No agent is scraped: see docs/fleet.md for the scrape job.",
                ),
                NUMBER,
                Query(f"count({AGENTS.value('tlsprof_agent_build_info')})", "Hosts"),
                decimals=0,
            ),
        ],
    )


def _courses() -> Row:
    return Row(
        "Where CPU time goes",
        [
            course(
                "CPU by activity",
                Text(
                    "CPU time of the selected services by activity, in cores, from samples scaled to the"
                    " kernel's accounting. User and system together, without softirq.",
                    "application dominates.",
                    "handshake: see steps and negotiated parameters on the Service dashboard. tcp_open and"
                    " tcp_close: keep connections open. encryption: check the cipher.",
                    NO_SAMPLES,
                ),
                NUMBER,
                Query(figures.by_activity(ALL), "{{activity}}"),
                stacked=True,
                axis="cores",
            ),
            course(
                "CPU in handshakes by service",
                Text(
                    "Share of each service's CPU time in handshakes, over all selected hosts; top 15.",
                    "Below 20%.",
                    "Open the service. A rise without more handshakes means higher cost, not higher load.",
                    NO_SERVICE,
                ),
                SHARE,
                Query(f"topk(15, {figures.handshake_share(ALL, 'service_name')})", "{{service_name}}"),
                limits=thresholds.HANDSHAKE_SHARE,
            ),
            course(
                "Handshakes by service",
                Text(
                    "Completed server handshakes per second, over all selected hosts; top 15.",
                    "Follows the number of clients, not of requests.",
                    "A step up at the same load means shorter connections or fewer resumed sessions: see"
                    " Connections and TIME_WAIT.",
                    NO_HANDSHAKE,
                ),
                PER_SECOND,
                Query(f"topk(15, {figures.handshakes(ALL, 'service_name')})", "{{service_name}}"),
            ),
            course(
                "CPU per handshake by service",
                Text(
                    "Mean CPU time per completed server handshake, by service; the 15 most expensive.",
                    "Flat. Services with the same certificate and clients are similar.",
                    "Compare group, signature and resumption of an expensive service with those of an"
                    " inexpensive one.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                Query(f"topk(15, {figures.handshake_cost(ALL, 'service_name')})", "{{service_name}}"),
            ),
        ],
    )


def _tables() -> Row:
    to_service = {
        "Service": [
            link_to("Service dashboard", "tlsprof-service", service_name="Service", instance="Host"),
            link_to(
                "Connections and TIME_WAIT", "tlsprof-connections", service_name="Service", instance="Host"
            ),
        ]
    }
    time_wait = total(ALL.value("tlsprof_time_wait_sockets"), *PLACE)
    findings = total(ALL.value("tlsprof_finding"), "service_name", "role", "finding", "severity")
    names = {"cluster": "Cluster", "instance": "Host", "service_name": "Service"}
    return Row(
        "Hosts and services",
        [
            listing(
                "Services by host",
                Text(
                    "Each service on each host: CPU, share of handshakes, and activity. Click a service to"
                    " open it.",
                    "No red cell.",
                    "Sort by CPU in handshakes, and start with services that have both a large share and"
                    " much CPU.",
                    NO_SERVICE,
                ),
                names,
                Column("CPU (cores)", figures.cpu(ALL, *PLACE)),
                Column(
                    "CPU in handshakes",
                    figures.handshake_share(ALL, *PLACE),
                    SHARE,
                    thresholds.HANDSHAKE_SHARE,
                ),
                Column("Handshakes", figures.handshakes(ALL, *PLACE), PER_SECOND),
                Column("CPU per handshake", figures.handshake_cost(ALL, *PLACE), SECONDS),
                Column("Resumed", figures.resumed_share(ALL, *PLACE), SHARE, thresholds.RESUMED),
                Column("Failed", figures.failed_share(ALL, *PLACE), SHARE, thresholds.FAILED),
                Column("Requests per connection", figures.turns(ALL, *PLACE), NUMBER, thresholds.TURNS),
                Column("TIME_WAIT", time_wait),
                links=to_service,
            ),
            listing(
                "Activities by host and service",
                Text(
                    "Shares of a service's CPU time spent on encryption and on opening and closing TCP"
                    " connections.",
                    "A few percent each; more encryption with large responses.",
                    "Much encryption: AES-GCM instead of CBC or, where AES is in hardware, ChaCha20. Much"
                    " TCP: keep connections longer.",
                    NO_SAMPLES,
                ),
                names,
                Column("Encryption", figures.activity_share(ALL, "encryption", *PLACE), SHARE),
                Column(
                    "TCP open and close", figures.activity_share(ALL, "tcp_open|tcp_close", *PLACE), SHARE
                ),
                links=to_service,
                size=(12, 8),
            ),
            listing(
                "Findings",
                Text(
                    "Findings of the last 5 to 10 minutes by service, with the number of hosts.",
                    "No rows, or only severity info.",
                    "docs/findings has a page for each: evidence, remedy and expected effect. `tlsprof"
                    " report` on the host predicts the saving.",
                    "No finding. A finding needs 100 handshakes or connections in the last minutes.",
                ),
                {"service_name": "Service", "role": "Role", "finding": "Finding", "severity": "Severity"},
                Column("Hosts", findings),
                size=(12, 8),
            ),
        ],
    )


def _agents() -> Row:
    cost = figures.target_cost_share(AGENTS, "cluster", "instance")
    lost = figures.lost(AGENTS, "instance")
    hosts = f"count by (instance) ({AGENTS.value('tlsprof_agent_build_info')})"
    return Row(
        "Data quality",
        [
            course(
                "Profiling overhead",
                Text(
                    "Estimated overhead as a share of the services' CPU time, by host.",
                    "Below 1%.",
                    "Agent health shows what causes it; agent.budget and profile.steps limit it.",
                    NO_SERVICE,
                ),
                SHARE,
                Query(cost, "{{instance}}"),
                limits=thresholds.TARGET_COST,
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
    """The dashboard that people open first."""
    return build(
        UID,
        "TLS cost overview",
        "The cost of TLS across hosts and services, and which service to look at first.",
        [_summary(), _courses(), _tables(), _agents()],
        services_variable(),
    )
