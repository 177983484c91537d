"""Connections and TIME_WAIT: how connections are used, and which side closes them."""

from typing import Any

from grafana_foundation_sdk.models.dashboard import Dashboard

from . import accept_queue, colours, figures, thresholds
from .figures import CLIENT, SERVER
from .frame import Row, build, services_variable
from .panels import (
    BYTES_PER_SECOND,
    NUMBER,
    PER_SECOND,
    SECONDS,
    SHARE,
    Query,
    course,
    figure,
)
from .queries import Source, or_zero, ratio, reworded, total
from .text import Text

UID = "tlsprof-connections"
ALL = Source()

NO_CONNECTION = (
    "No connection of these services ended in this time range: requests and bytes are counted when a"
    " connection ends."
)
NO_TRAFFIC = "No connection of these services was opened or closed in this time range."
NO_TIME_WAIT = "None of these services has closed a connection since its agent started."
NO_PORTS = "None of these services opens connections: only clients and proxies use ephemeral ports."
PORTS = "tlsprof_ephemeral_ports_used_ratio"
TIME_WAIT = "tlsprof_time_wait_sockets"


def _turns() -> Row:
    return Row(
        "Requests per connection",
        [
            course(
                "Requests per connection by service",
                Text(
                    "Mean requests per server connection that ended; the 10 services with the most handshake"
                    " CPU. HTTP/2 requests that are answered together count once.",
                    "Above 5, limited only by clients.",
                    "Exactly N for most connections: the server closes after N requests; raise its limit"
                    " (nginx keepalive_requests, Apache MaxKeepAliveRequests, Domino maximum requests over"
                    " a single connection). 1: keep-alive is disabled, or clients do not use it.",
                    NO_CONNECTION,
                ),
                NUMBER,
                Query(figures.of_the_busiest(figures.turns(ALL, "service_name"), ALL), "{{service_name}}"),
                limits=thresholds.TURNS,
                logarithmic=True,
            ),
            course(
                "Distribution of requests per connection",
                Text(
                    "Closed server connections by number of requests, as shares of all that closed.",
                    "Hardly any with 1, the rest spread out: clients decide when to close.",
                    "Many with 1 beside many with more: some clients do not use keep-alive, which a mean"
                    " hides. Nearly all in one class: a limit of the server closes connections.",
                    NO_CONNECTION,
                ),
                SHARE,
                *(Query(share, name) for name, share in figures.turns_shares(ALL).items()),
                stacked=True,
                most=1,
                colours=colours.TURNS,
            ),
        ],
    )


def _opened() -> list[Any]:
    def opened(role: str) -> Query:
        name = "tlsprof_connections_opened_total"
        by_service = lambda source: total(source.rate(name, role), "service_name")
        return Query(figures.largest(by_service, ALL, "service_name"), "{{service_name}}")

    return [
        course(
            "Incoming connections",
            Text(
                "Connections per second that clients open to a service; top 10.",
                "Far below the request rate.",
                "Near the request rate: raise the keep-alive limits.",
                NO_TRAFFIC,
            ),
            PER_SECOND,
            opened(SERVER),
            size=(8, 8),
        ),
        course(
            "Outgoing connections",
            Text(
                "Connections per second that a service opens as client; top 10.",
                "Far below the service's own request rate.",
                "Near its request rate: a proxy opens an upstream connection for each request; enable"
                " keep-alive there (nginx: keepalive in upstream).",
                NO_TRAFFIC,
            ),
            PER_SECOND,
            opened(CLIENT),
            size=(8, 8),
        ),
    ]


def _closed() -> list[Any]:
    def by_side(name: str) -> Query:
        ended = total(ALL.rate(name), "role", "closed_by")
        sides = reworded(ended, "closed_by", {"local": "service", "remote": "peer"})
        return Query(sides, "{{role}}: {{closed_by}} first")

    return [
        course(
            "Closed, by closing side",
            Text(
                "Connections closed per second, by the role of the service and the side that closed first,"
                " which usually keeps the TIME_WAIT socket.",
                "As server, mostly the peer: clients close when they are done.",
                "As server, the service: keep-alive limits or timeouts are low. `timeout`: peers"
                " disappeared.",
                NO_TRAFFIC,
            ),
            PER_SECOND,
            by_side("tlsprof_connections_closed_total"),
            colours=colours.SIDES,
            size=(8, 8),
        ),
        course(
            "Ended by reset",
            Text(
                "Connections that ended with an RST per second, by the side that closed first.",
                "Few. Load generators and clients that close with unread data cause some.",
                "As server, many from the service: it closes with unread requests, and clients may lose"
                " responses.",
                NO_TRAFFIC,
            ),
            PER_SECOND,
            by_side("tlsprof_connections_reset_total"),
            colours=colours.SIDES,
            size=(8, 8),
        ),
    ]


def _lifetime_and_payload() -> list[Any]:
    lasted = "tlsprof_connection_duration_seconds"
    moved = total(ALL.rate("tlsprof_connection_bytes_total"), "role", "direction")
    return [
        course(
            "Lifetime of connections",
            Text(
                "Time from the TCP handshake to the end of the socket, for server connections that"
                " ended.",
                "Much longer than a request.",
                "Near the keep-alive timeout: raise it if clients return later than that.",
                NO_CONNECTION,
            ),
            SECONDS,
            Query(ALL.quantile(0.5, lasted, SERVER), "median"),
            Query(ALL.quantile(0.95, lasted, SERVER), "95%"),
            size=(8, 8),
        ),
        course(
            "Payload",
            Text(
                "Bytes per second of connections that ended, as carried by TCP. The bytes of a long"
                " connection appear at its end.",
                "Follows the request rate.",
                "Many connections with few bytes each: most of their cost is opening and closing.",
                NO_CONNECTION,
            ),
            BYTES_PER_SECOND,
            Query(moved, "{{role}} {{direction}}"),
            size=(8, 8),
        ),
    ]


def _life() -> Row:

    return Row(
        "Opening and closing",
        [*_opened(), *_closed(), *_lifetime_and_payload()],
    )


def _time_wait() -> Row:
    each = ("service_name", "role")
    name = "tlsprof_time_wait_created_total"
    created = figures.largest(lambda source: total(source.rate(name), *each), ALL, *each)
    standing = figures.largest(lambda source: total(source.average(TIME_WAIT), *each), ALL, *each)
    host = ("instance", "service_name")
    ports = figures.largest(lambda source: f"max by ({', '.join(host)}) ({source.average(PORTS)})", ALL, *host)
    return Row(
        "TIME_WAIT and ephemeral ports",
        [
            course(
                "TIME_WAIT created",
                Text(
                    "TIME_WAIT sockets created per second, on the side that closes first.",
                    "A small fraction of a server's connections.",
                    "As server: let clients close (longer keep-alive). As client: keep connections to the"
                    " upstream open.",
                    NO_TIME_WAIT,
                ),
                PER_SECOND,
                Query(created, "{{service_name}} {{role}}"),
                size=(8, 8),
            ),
            course(
                "TIME_WAIT sockets by service",
                Text(
                    "Current TIME_WAIT sockets; each lasts 60 s, a constant in Linux.",
                    "A few thousand are harmless on a server. TlsprofTimeWaitPilesUp fires at 20,000.",
                    "Do not shorten or recycle TIME_WAIT (tcp_tw_recycle broke clients behind NAT and was"
                    " removed): close fewer connections.",
                    NO_TIME_WAIT,
                ),
                NUMBER,
                Query(standing, "{{service_name}} {{role}}"),
                limits=thresholds.TIME_WAIT,
                size=(8, 8),
            ),
            course(
                "Ephemeral ports in use",
                Text(
                    "Highest share of ephemeral ports used by connections to one remote endpoint, including"
                    " TIME_WAIT, by service.",
                    "Below 50%.",
                    "Keep connections to the upstream open, add upstream addresses, or widen"
                    " net.ipv4.ip_local_port_range.",
                    NO_PORTS,
                ),
                SHARE,
                Query(ports, "{{service_name}} on {{instance}}"),
                limits=thresholds.EPHEMERAL_PORTS,
                soft_max=0.6,
                size=(8, 8),
            ),
        ],
    )


def _summary() -> Row:
    by_server = total(ALL.rate("tlsprof_connections_closed_total", SERVER, 'closed_by="local"'))
    closed = total(ALL.rate("tlsprof_connections_closed_total", SERVER))
    return Row(
        "At a glance",
        [
            figure(
                "Requests/connection",
                Text(
                    "Mean requests per server connection that ended.",
                    "Above 5.",
                    "The panels below show the distribution and which side closes.",
                    NO_CONNECTION,
                ),
                NUMBER,
                Query(figures.turns(ALL), "Requests per connection"),
                limits=thresholds.TURNS,
                size=(6, 3),
            ),
            figure(
                "Closed by the server",
                Text(
                    "Share of server connections that the server closed first.",
                    "Low: clients close when they are done. No threshold: closing after many requests does"
                    " no harm.",
                    "High with few requests per connection: raise the keep-alive limits.",
                    NO_TRAFFIC,
                ),
                SHARE,
                Query(ratio(f"({or_zero(by_server, closed)})", closed), "Closed by the server"),
                size=(6, 3),
            ),
            figure(
                "Most TIME_WAIT",
                Text(
                    "Current TIME_WAIT sockets of the selected service with the most.",
                    "A few thousand on a busy host.",
                    "See TIME_WAIT sockets by service below.",
                    NO_TIME_WAIT,
                ),
                NUMBER,
                Query(f"max({total(ALL.value(TIME_WAIT), 'service_name')})", "TIME_WAIT"),
                limits=thresholds.TIME_WAIT,
                size=(6, 3),
            ),
            figure(
                "Ephemeral ports",
                Text(
                    "Highest share of ephemeral ports that any selected service uses toward one endpoint.",
                    "Below 50%.",
                    "Keep connections to that upstream open.",
                    NO_PORTS,
                ),
                SHARE,
                Query(f"max({ALL.value(PORTS)})", "Ephemeral ports"),
                limits=thresholds.EPHEMERAL_PORTS,
                size=(6, 3),
            ),
        ],
    )


def make() -> Dashboard:
    """How connections are opened, used and closed."""
    rows = [_summary(), _turns(), _life(), _time_wait(), accept_queue.row()]
    return build(
        UID,
        "Connections and TIME_WAIT",
        "Requests and lifetime of connections, which side closes them, TIME_WAIT and ephemeral ports.",
        rows,
        services_variable(),
    )
