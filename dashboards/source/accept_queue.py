"""The row of the Connections dashboard on accept queues."""

from . import figures, thresholds
from .frame import Row
from .panels import PER_SECOND, SECONDS, SHARE, Query, course
from .queries import Source, total
from .text import Text

ALL = Source()

NO_QUEUE = (
    "None of these services listens, or its host does not allow reading queues: run `tlsprof"
    " doctor`."
)
NO_ACCEPT = (
    "No connection was accepted, or the kernel does not allow observing accept: run `tlsprof doctor`"
    " (accept_wait)."
)
ACCEPT_WAIT = "tlsprof_accept_wait_seconds"
LENGTH = "tlsprof_accept_queue_length"
LIMIT = "tlsprof_accept_queue_limit"
OVERFLOWS = "tlsprof_listen_overflows_total"


def row() -> Row:
    host = ("instance", "service_name")
    overflows = figures.largest(lambda it: total(it.rate(OVERFLOWS), "service_name"), ALL, "service_name")
    # The kernel queues one connection more than the limit.
    fullest = lambda it: f"max by ({', '.join(host)}) ({it.average(LENGTH)} / ({it.average(LIMIT)} + 1))"
    full = figures.largest(fullest, ALL, *host)
    waits = figures.largest(
        lambda it: it.quantile(0.99, ACCEPT_WAIT, by=["service_name"]), ALL, "service_name"
    )
    return Row(
        "Accept queue: overflows, utilization and wait",
        collapsed=True,
        panels=[
            course(
                "Accept-queue overflows",
                Text(
                    "Client packets dropped by the kernel per second, because the service did not accept"
                    " fast enough. A client that retries causes several.",
                    "Zero.",
                    "The service lacks CPU, or its workers block. A longer backlog (nginx: listen backlog,"
                    " net.core.somaxconn) helps only with bursts.",
                    NO_QUEUE,
                ),
                PER_SECOND,
                Query(overflows, "{{service_name}}"),
                limits=thresholds.OVERFLOWS,
                size=(8, 8),
            ),
            course(
                "Accept queue utilization",
                Text(
                    "Length of a service's fullest accept queue, as a share of its limit.",
                    "Near zero: the service accepts connections at once.",
                    "Above 50%, bursts overflow the queue: add workers, or raise the backlog.",
                    NO_QUEUE,
                ),
                SHARE,
                Query(full, "{{service_name}} on {{instance}}"),
                limits=thresholds.QUEUE,
                soft_max=0.6,
                size=(8, 8),
            ),
            course(
                "Accept wait",
                Text(
                    "Time from opening to accept, p99 by service. It adds to the latency of clients.",
                    "Below a millisecond.",
                    "Add CPU or workers first, then raise the backlog.",
                    NO_ACCEPT,
                ),
                SECONDS,
                Query(waits, "{{service_name}}"),
                size=(8, 8),
            ),
        ],
    )
