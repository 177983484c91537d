"""One service: where its CPU goes, what its handshakes cost, and why."""

from typing import Any

from grafana_foundation_sdk.models.dashboard import Dashboard

from . import colours, figures, handshake_cost, negotiation, problems, sources, thresholds
from .figures import CLIENT
from .frame import Row, build, busiest_service_variable
from .load_tests import NOTES
from .negotiation import NO_HANDSHAKE
from .panels import CORES, NUMBER, PER_SECOND, SECONDS, SHARE, Query, course, figure
from .queries import Source, total
from .sources import NO_SAMPLES
from .text import Text

UID = "tlsprof-service"
ONE = Source()

NO_CPU = "The service used no CPU time, or does not exist on the selected hosts."


def _load() -> list[Any]:
    return [
        figure(
            "CPU",
            Text(
                "CPU time of the service's processes in cores, as accounted by the kernel.",
                "In line with its load.",
                "The stacked chart below shows the activities.",
                NO_CPU,
            ),
            CORES,
            Query(figures.cpu(ONE), "CPU"),
        ),
        figure(
            "Handshake share",
            Text(
                "Share of the service's CPU time spent on TLS handshakes.",
                "Below 20%.",
                "Reduce the number of handshakes (keep connections open) and their cost (resume sessions,"
                " X25519, ECDSA).",
                NO_CPU,
            ),
            SHARE,
            Query(figures.handshake_share(ONE), "Handshake share"),
            limits=thresholds.HANDSHAKE_SHARE,
        ),
        figure(
            "Handshakes",
            Text(
                "Completed handshakes per second, as server.",
                "Follows the number of clients, not of requests.",
                "If near the request rate, raise the keep-alive limits.",
                NO_HANDSHAKE,
            ),
            PER_SECOND,
            Query(figures.handshakes(ONE), "Handshakes"),
        ),
    ]


def _handshakes() -> list[Any]:
    return [
        figure(
            "CPU/handshake",
            Text(
                "Mean CPU time per completed handshake, as server.",
                "Same as yesterday.",
                "Steps and negotiated parameters below show why it is expensive.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            Query(figures.handshake_cost(ONE), "CPU/handshake"),
        ),
        figure(
            "Resumed",
            Text(
                "Share of completed handshakes that resumed a session. Those for which it is unknown do not count.",
                "Above 50% if clients return.",
                "See resumption and refused sessions below.",
                NO_HANDSHAKE,
            ),
            SHARE,
            Query(figures.resumed_share(ONE), "Resumed"),
            limits=thresholds.RESUMED,
        ),
        figure(
            "Failed",
            Text(
                "Share of handshakes that ended with an error or a fatal alert.",
                "Below 1%.",
                "Click to see the alerts; the row Failures below has more.",
                "No handshake in this time range, failed or not.",
            ),
            SHARE,
            Query(figures.failed_share(ONE), "Failed"),
            limits=thresholds.FAILED,
        ),
    ]


def _summary() -> Row:
    return Row("At a glance: $service_name", [*_load(), *_handshakes()], leads={"Failed": "Alerts"})


def _cpu() -> Row:
    return Row(
        "CPU",
        [
            course(
                "CPU by activity",
                Text(
                    "CPU time by activity in cores; the areas add up to the CPU time accounted by the"
                    " kernel. `unattributed`: not covered by samples.",
                    "application dominates.",
                    "Start with the largest area other than application.",
                    NO_SAMPLES,
                ),
                NUMBER,
                *(Query(one, "{{activity}}") for one in figures.by_activity(ONE)),
                whole=Query(figures.cpu(ONE), "all"),
                stacked=True,
                axis="cores",
                colours=colours.ACTIVITIES,
                size=(12, 8),
            ),
            course(
                "User and system",
                Text(
                    "CPU time of the service's processes by mode, as accounted by the kernel.",
                    "Mostly user for TLS. System time grows with connections and bytes sent.",
                    "Much system time with few bytes: short connections, or small writes.",
                    NO_CPU,
                ),
                NUMBER,
                Query(total(ONE.rate(figures.SERVICE_CPU), "mode"), "{{mode}}"),
                stacked=True,
                axis="cores",
                colours=colours.MODES,
                size=(6, 8),
            ),
            course(
                "Softirq",
                Text(
                    "CPU time that the kernel spends in softirq on the service's connections, in cores, by"
                    " activity. Not included in other figures.",
                    "Small compared with the CPU time of the service.",
                    "tcp_open and tcp_close: keep connections open longer. socket_io follows bytes sent and"
                    " received.",
                    NO_SAMPLES,
                ),
                NUMBER,
                Query(total(ONE.rate(figures.ACTIVITY_CPU, 'mode="softirq"'), "activity"), "{{activity}}"),
                stacked=True,
                axis="cores",
                colours=colours.ACTIVITIES,
                size=(6, 8),
            ),
        ],
    )


def _as_client() -> Row:
    nothing = "The service made no TLS handshake as client in this time range."
    return Row(
        "As client, such as a proxy to its upstreams",
        [
            course(
                "Handshakes as client",
                Text(
                    "Completed handshakes per second that the service makes as client.",
                    "Far below the request rate.",
                    "Keep connections to upstreams open (nginx: keepalive in upstream).",
                    nothing,
                ),
                PER_SECOND,
                Query(figures.handshakes(ONE, "service_name", role=CLIENT), "{{service_name}}"),
                size=(8, 7),
            ),
            course(
                "CPU per handshake as client",
                Text(
                    "Mean CPU time per completed handshake as client.",
                    "Same as yesterday.",
                    "Verifying certificates costs most: use shorter chains, resume sessions.",
                    nothing,
                ),
                SECONDS,
                Query(figures.handshake_cost(ONE, "service_name", role=CLIENT), "{{service_name}}"),
                size=(8, 7),
            ),
            course(
                "Resumed as client",
                Text(
                    "Share of completed handshakes as client that resumed a session. Those for which it is unknown"
                    " do not count.",
                    "Above 50%.",
                    "Enable session reuse (nginx: proxy_ssl_session_reuse).",
                    nothing,
                ),
                SHARE,
                Query(figures.resumed_share(ONE, "service_name", role=CLIENT), "{{service_name}}"),
                most=1,
                size=(8, 7),
            ),
        ],
    )


def make() -> Dashboard:
    """Why one service's handshakes cost what they cost."""
    rows = [
        _summary(),
        problems.row(ONE),
        _cpu(),
        handshake_cost.row(),
        negotiation.negotiated(),
        negotiation.resumption(),
        _as_client(),
        negotiation.failures(),
        negotiation.offers(),
        sources.row(),
    ]
    return build(
        UID,
        "Service",
        "CPU by activity, cost of handshakes and negotiated parameters of one or several services.",
        rows,
        busiest_service_variable(),
        annotations=NOTES,
    )
