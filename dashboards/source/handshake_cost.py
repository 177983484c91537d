"""The row of the Service dashboard on the cost of its handshakes."""

from typing import Any

from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from . import colours, figures, thresholds
from .figures import HANDSHAKE_CPU, HANDSHAKES, SERVER
from .frame import Row
from .negotiation import NO_HANDSHAKE
from .panels import NUMBER, PER_SECOND, SECONDS, SHARE, Query, course, figure, heat_map
from .queries import HOSTS, Source, each_of, total
from .sources import NO_SAMPLES
from .text import Text

ONE = Source()
DURATION = "tlsprof_handshake_duration_seconds"


def _by_resumption() -> list[Any]:
    quantiles = [
        Query(ONE.quantile(q, HANDSHAKE_CPU, SERVER, by=["resumption"]), f"{name} {{{{resumption}}}}")
        for q, name in ((0.5, "median"), (0.99, "99%"))
    ]
    return [
        course(
            "CPU per handshake, quantiles",
            Text(
                "CPU time per completed handshake, full or resumed (psk, ticket, session_id). From"
                " native histograms if scraped, otherwise from the coarser classic buckets.",
                "Resumed below full; far below it with TLS 1.2, whose resumption exchanges no keys. 99%"
                " within twice the median.",
                "Group and signature determine the cost of full handshakes. Possible causes of a wide"
                " spread: other work in the same library call, or certificates with different keys.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            *quantiles,
        )
        .override_by_name("median none", [DynamicConfigValue("displayName", "median full")])
        .override_by_name("99% none", [DynamicConfigValue("displayName", "99% full")]),
        heat_map(
            "CPU per handshake, distribution",
            Text(
                "Number of handshakes by CPU time, as server.",
                "Two narrow bands: resumed below, full above.",
                "If a band moves up, look for a deployment, a new certificate or a changed cipher list"
                " at that time.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            Query(ONE.heat_map(HANDSHAKE_CPU, SERVER), "{{le}}"),
        ),
    ]


def _by_step() -> list[Any]:
    steps = each_of(total(ONE.rate(figures.STEP_CPU, SERVER), "step"), total(ONE.rate(HANDSHAKES, SERVER)))
    duty = figures.step_probes_duty(Source(HOSTS))
    return [
        course(
            "CPU per handshake by step",
            Text(
                "Mean CPU time per handshake and step, as server. `unmeasured`: the step probes were"
                " detached and no similar handshake had been measured, or only socket calls showed the"
                " handshake.",
                "signing and key_exchange are small, as in resumed handshakes or with ECDSA and X25519.",
                "Large signing: use an ECDSA certificate, resume sessions. Large key_exchange: prefer"
                " X25519. rsa_decryption: disable RSA key transport.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            Query(steps, "{{step}}"),
            stacked=True,
            colours=colours.STEPS,
            size=(7, 8),
        ),
        figure(
            "Steps measured",
            Text(
                "Share of time with step probes attached; the lowest of the selected hosts.",
                "100%.",
                "Raise agent.budget: the agent detaches step probes to stay within it. 0% also where"
                " profile.library is off. The handshake share does not depend on them.",
                "No agent is scraped for this selection.",
            ),
            SHARE,
            Query(duty, "Steps measured"),
            limits=thresholds.DUTY,
            size=(5, 8),
        ),
    ]


def _waits() -> list[Any]:
    # Waits have no role label: they are divided by the handshakes of both roles.
    waits = each_of(
        total(ONE.rate("tlsprof_handshake_wait_seconds_total"), "reason"), total(ONE.rate(HANDSHAKES))
    )
    return [
        course(
            "Off-CPU time",
            Text(
                "Mean waiting time of a handshake by reason, as server or as client. `between_calls`:"
                " waiting for the peer, in a non-blocking program.",
                "Only between_calls and network: round trips to the peer.",
                "run_queue: the host has no free CPU. lock, disk: session cache (use shared memory, not"
                " files). random: a blocking random source. pipe: another process.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            Query(waits, "{{reason}}"),
            size=(6, 8),
        ),
        course(
            "Wall time",
            Text(
                "Time from the first call into the TLS library to the end of the handshake, as server.",
                "One round trip to the client for TLS 1.3, two before.",
                "Above that, see off-CPU time. Wall time is the client's latency; CPU per handshake is"
                " the cost.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            Query(ONE.quantile(0.5, DURATION, SERVER), "median"),
            Query(ONE.quantile(0.99, DURATION, SERVER), "99%"),
            size=(6, 8),
        ),
    ]


def _samples_hosts_and_requests() -> list[Any]:
    by_host = figures.largest(lambda it: figures.handshake_cost(it, "instance"), ONE, "instance")
    return [
        course(
            "CPU by step, from samples",
            Text(
                "Cores used for handshakes by step, as server and as client: by what sampled code computes,"
                " for every TLS library, without probes. Steps joined by + run the same code. What is not"
                " identified as a step's is `other`.",
                "The shares of CPU per handshake by step, where that has steps.",
                "See CPU per handshake by step. This one also has closed and stripped servers.",
                NO_SAMPLES,
            ),
            NUMBER,
            Query(total(ONE.rate("tlsprof_handshake_step_sampled_cpu_seconds_total"), "step"), "{{step}}"),
            stacked=True,
            axis="cores",
            size=(8, 7),
        ),
        course(
            "CPU per handshake by host",
            Text(
                "Mean CPU time per completed handshake, as server, by host; the 10 highest.",
                "The same on all hosts of the same type.",
                "One host above the others: look for a different certificate, an older library, a slower"
                " CPU or a busy neighbour.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            Query(by_host, "{{instance}}"),
            size=(8, 7),
        ),
        course(
            "Requests and connections",
            Text(
                "Requests answered and connections opened by clients, per second.",
                "Many requests on each connection.",
                "Lines close together: connections serve about one request each, see Connections and"
                " TIME_WAIT.",
                "No connection of the service was opened or ended in this time range.",
            ),
            PER_SECOND,
            Query(figures.requests(ONE), "requests"),
            Query(total(ONE.rate("tlsprof_connections_opened_total", SERVER)), "connections"),
            size=(8, 7),
        ),
    ]


def row() -> Row:
    return Row(
        "Cost of handshakes",
        [*_by_resumption(), *_by_step(), *_waits(), *_samples_hosts_and_requests()],
    )
