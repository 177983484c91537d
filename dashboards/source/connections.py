"""Connections and TIME_WAIT: what opening and closing costs, and who causes it."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from . import figures, thresholds
from .figures import CLIENT, SERVER, TURNS
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
    heat_map,
)
from .queries import Source, or_zero, ratio, total
from .text import Text

UID = "tlsprof-connections"
ALL = Source()

NO_CONNECTION = "No connection of these services ended in this time: turns and bytes are counted at the end."
NO_TRAFFIC = "No connection of these services was opened or closed in this time."
NO_TIME_WAIT = "None of these services has closed a connection since its agent started."
NO_PORTS = "None of these services connects to anything: ephemeral ports are those of clients and proxies."
NO_QUEUE = "None of these services listens, or its host does not let queues be read: see `tlsprof doctor`."
NO_ACCEPT = (
    "No connection was accepted, or the kernel does not let accept be seen: `tlsprof doctor` says why"
    " (accept_wait)."
)
ACCEPT_WAIT = "tlsprof_accept_wait_seconds"
LENGTH = "tlsprof_accept_queue_length"
LIMIT = "tlsprof_accept_queue_limit"
OVERFLOWS = "tlsprof_listen_overflows_total"
PORTS = "tlsprof_ephemeral_ports_used_ratio"
TIME_WAIT = "tlsprof_time_wait_sockets"


def _turns() -> Row:
    return Row(
        "Requests per connection",
        [
            course(
                "Requests per connection by service",
                Text(
                    "Mean turns (a request and its answer) on connections of servers that ended; the 10 services"
                    " that spend most on handshakes.",
                    "Above 5, and as many as clients like to send.",
                    "Exactly N for most connections: the server closes after N requests; raise its limit"
                    " (nginx keepalive_requests, Apache MaxKeepAliveRequests, Domino maximum requests over a"
                    " single connection). 1: keep-alive is off, or clients do not use it.",
                    NO_CONNECTION,
                ),
                NUMBER,
                Query(figures.of_the_busiest(figures.turns(ALL, "service_name"), ALL), "{{service_name}}"),
                limits=thresholds.TURNS,
                logarithmic=True,
            ),
            heat_map(
                "Distribution of requests per connection",
                Text(
                    "How many connections ended with how many turns, as server.",
                    "Spread out: clients decide when to leave.",
                    "One sharp line: a limit of the server ends connections. Read its value at the line.",
                    NO_CONNECTION,
                ),
                NUMBER,
                Query(ALL.heat_map(TURNS, SERVER), "{{le}}"),
            ),
        ],
    )


def _life() -> Row:
    def opened(role: str) -> Query:
        name = "tlsprof_connections_opened_total"
        by_service = lambda source: total(source.rate(name, role), "service_name")
        return Query(figures.largest(by_service, ALL, "service_name"), "{{service_name}}")

    closed = total(ALL.rate("tlsprof_connections_closed_total"), "role", "closed_by")
    resets = total(ALL.rate("tlsprof_connections_reset_total"), "role", "closed_by")
    lasted = "tlsprof_connection_duration_seconds"
    moved = total(ALL.rate("tlsprof_connection_bytes_total"), "role", "direction")
    return Row(
        "Opening and closing",
        [
            course(
                "Opened by clients",
                Text(
                    "Connections a second that clients opened to a service; the 10 largest.",
                    "Far below the requests a second.",
                    "Near the requests a second: raise the limits of keep-alive.",
                    NO_TRAFFIC,
                ),
                PER_SECOND,
                opened(SERVER),
                size=(8, 8),
            ),
            course(
                "Opened to others",
                Text(
                    "Connections a second that a service opened as client; the 10 largest.",
                    "Far below the requests that the service itself answers.",
                    "Near these: a proxy opens one to its upstream for each request; turn on keep-alive"
                    " there (nginx: keepalive in upstream).",
                    NO_TRAFFIC,
                ),
                PER_SECOND,
                opened(CLIENT),
                size=(8, 8),
            ),
            course(
                "Closed, by who closed first",
                Text(
                    "Connections closed a second. `local`: the service closed first, and mostly keeps the"
                    " TIME_WAIT socket.",
                    "For servers mostly `remote`: the client leaves when it is done.",
                    "Servers with `local`: limits or time-outs of keep-alive are low. `timeout`: peers"
                    " vanished.",
                    NO_TRAFFIC,
                ),
                PER_SECOND,
                Query(closed, "{{role}}: {{closed_by}} closed first"),
                size=(8, 8),
            ),
            course(
                "Ended by reset",
                Text(
                    "Connections that ended by RST, by who closed first, a second.",
                    "Few. Load generators and clients that close with unread data make some.",
                    "Many from `local`: the server closes with unread requests, and clients may lose"
                    " answers.",
                    NO_TRAFFIC,
                ),
                PER_SECOND,
                Query(resets, "{{role}}: {{closed_by}} closed first"),
                size=(8, 8),
            ),
            course(
                "Life of a connection",
                Text(
                    "Time from the TCP handshake to the end of the socket, of connections of servers that"
                    " ended.",
                    "Much longer than a request.",
                    "Near the keep-alive time-out: raise it if clients come back later than that.",
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
                    "Bytes a second of connections that ended, as TCP carried them. Those of a long"
                    " connection come all at its end.",
                    "Follows the requests.",
                    "Many connections with few bytes each: what is spent on them is mostly opening and"
                    " closing.",
                    NO_CONNECTION,
                ),
                BYTES_PER_SECOND,
                Query(moved, "{{role}} {{direction}}"),
                size=(8, 8),
            ),
        ],
    )


def _time_wait() -> Row:
    each = ("service_name", "role")
    name = "tlsprof_time_wait_created_total"
    created = figures.largest(lambda source: total(source.rate(name), *each), ALL, *each)
    standing = figures.largest(lambda source: total(source.value(TIME_WAIT), *each), ALL, *each)
    ports = f"max by (instance, service_name) ({ALL.value(PORTS)})"
    return Row(
        "TIME_WAIT and ephemeral ports",
        [
            course(
                "TIME_WAIT created",
                Text(
                    "TIME_WAIT sockets that connections left on this side, a second: on the side that closes"
                    " first.",
                    "A small part of the connections of a server.",
                    "As server: let clients close (longer keep-alive). As client: keep connections to the"
                    " upstream.",
                    NO_TIME_WAIT,
                ),
                PER_SECOND,
                Query(created, "{{service_name}} {{role}}"),
                size=(8, 8),
            ),
            course(
                "TIME_WAIT standing by service",
                Text(
                    "TIME_WAIT sockets that stand; each does so for 60 s, a constant of Linux.",
                    "Some thousands do not matter to a server. TlsprofTimeWaitPilesUp fires at 20,000.",
                    "Do not shorten or recycle them (tcp_tw_recycle broke clients behind NAT and is gone):"
                    " make fewer.",
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
                    "Share of the ephemeral ports that connections to one remote endpoint take up, open or in"
                    " TIME_WAIT; the largest by service.",
                    "Below 50%.",
                    "Keep connections to the upstream, add upstream addresses, or widen"
                    " net.ipv4.ip_local_port_range.",
                    NO_PORTS,
                ),
                SHARE,
                Query(ports, "{{service_name}} on {{instance}}"),
                limits=thresholds.EPHEMERAL_PORTS,
                size=(8, 8),
            ),
        ],
    )


def _queue() -> Row:
    overflows = total(ALL.rate(OVERFLOWS), "service_name")
    # The kernel lets one more in than the limit says.
    full = f"max by (instance, service_name) ({ALL.value(LENGTH)} / ({ALL.value(LIMIT)} + 1))"
    return Row(
        "Accept queue",
        [
            course(
                "Accept-queue overflows",
                Text(
                    "Packets of clients a second that the kernel dropped because the service did not accept"
                    " fast enough. A client makes several: it tries again.",
                    "Zero.",
                    "The service is out of CPU or its workers block; a longer backlog (nginx: listen backlog,"
                    " net.core.somaxconn) helps with bursts only.",
                    NO_QUEUE,
                ),
                PER_SECOND,
                Query(overflows, "{{service_name}}"),
                limits=thresholds.OVERFLOWS,
                size=(8, 8),
            ),
            course(
                "Accept queue, how full",
                Text(
                    "Connections that wait in the fullest queue of a service, as a share of how many may.",
                    "Near zero: they are accepted at once.",
                    "Above half, bursts overflow it: more workers, or a longer backlog.",
                    NO_QUEUE,
                ),
                SHARE,
                Query(full, "{{service_name}} on {{instance}}"),
                limits=thresholds.QUEUE,
                size=(8, 8),
            ),
            course(
                "Wait to be accepted",
                Text(
                    "Time of a connection from its opening to accept, 99% quantile by service. Clients feel"
                    " it on top of all else.",
                    "Below a millisecond.",
                    "As for a queue that fills: CPU and workers first, then the backlog.",
                    NO_ACCEPT,
                ),
                SECONDS,
                Query(ALL.quantile(0.99, ACCEPT_WAIT, by=["service_name"]), "{{service_name}}"),
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
                    "Mean over all connections of servers that ended.",
                    "Above 5.",
                    "See who closes, and the distribution below.",
                    NO_CONNECTION,
                ),
                NUMBER,
                Query(figures.turns(ALL), "Requests per connection"),
                limits=thresholds.TURNS,
                size=(6, 4),
            ),
            figure(
                "Closed by the server",
                Text(
                    "Share of the connections of servers that the server closed first.",
                    "Low: clients close when they are done.",
                    "High with few requests per connection: raise the limits of keep-alive.",
                    NO_TRAFFIC,
                ),
                SHARE,
                Query(ratio(f"({or_zero(by_server, closed)})", closed), "Closed by the server"),
                size=(6, 4),
            ),
            figure(
                "Most TIME_WAIT",
                Text(
                    "TIME_WAIT sockets now, of the selected service that has most.",
                    "Some thousands on a busy host.",
                    "See by service below.",
                    NO_TIME_WAIT,
                ),
                NUMBER,
                Query(f"max({total(ALL.value(TIME_WAIT), 'service_name')})", "TIME_WAIT"),
                limits=thresholds.TIME_WAIT,
                size=(6, 4),
            ),
            figure(
                "Ephemeral ports",
                Text(
                    "The largest share of ephemeral ports that any selected service takes toward one"
                    " endpoint.",
                    "Below 50%.",
                    "Keep connections to that upstream.",
                    NO_PORTS,
                ),
                SHARE,
                Query(f"max({ALL.value(PORTS)})", "Ephemeral ports"),
                limits=thresholds.EPHEMERAL_PORTS,
                size=(6, 4),
            ),
        ],
    )


def make() -> Dashboard:
    """What opening and closing connections does."""
    rows = [_summary(), _turns(), _life(), _time_wait(), _queue()]
    return build(
        UID,
        "Connections and TIME_WAIT",
        "How long connections live, who closes them, and what that leaves behind.",
        rows,
        services_variable(),
    )
