"""One service: where its CPU goes, what its handshakes cost, and why."""

from grafana_foundation_sdk.models.dashboard import Dashboard, DynamicConfigValue

from . import colours, figures, negotiation, problems, sources, thresholds
from .figures import CLIENT, HANDSHAKE_CPU, HANDSHAKES, SERVER
from .frame import Row, build, busiest_service_variable
from .load_tests import NOTES
from .negotiation import NO_HANDSHAKE
from .panels import CORES, NUMBER, PER_SECOND, SECONDS, SHARE, Query, course, figure, heat_map
from .queries import HOSTS, Source, each_of, total
from .text import Text

UID = "tlsprof-service"
ONE = Source()

NO_CPU = "The service used no CPU time, or does not exist on the selected hosts."
NO_SAMPLES = (
    "The service used no CPU time, or CPU samples are unavailable: run `tlsprof doctor` on the host"
    " (cpu_samples)."
)
DURATION = "tlsprof_handshake_duration_seconds"


def _summary() -> Row:
    shows = [
        (
            "CPU",
            Text(
                "CPU time of the service's processes in cores, as accounted by the kernel.",
                "In line with its load.",
                "The stacked chart below shows the activities.",
                NO_CPU,
            ),
            CORES,
            figures.cpu(ONE),
            None,
        ),
        (
            "Handshake share",
            Text(
                "Share of the service's CPU time spent on TLS handshakes.",
                "Below 20%.",
                "Reduce the number of handshakes (keep connections open) and their cost (resume sessions,"
                " X25519, ECDSA).",
                NO_CPU,
            ),
            SHARE,
            figures.handshake_share(ONE),
            thresholds.HANDSHAKE_SHARE,
        ),
        (
            "Handshakes",
            Text(
                "Completed handshakes per second, as server.",
                "Follows the number of clients, not of requests.",
                "If near the request rate, raise the keep-alive limits.",
                NO_HANDSHAKE,
            ),
            PER_SECOND,
            figures.handshakes(ONE),
            None,
        ),
        (
            "CPU/handshake",
            Text(
                "Mean CPU time per completed handshake, as server.",
                "Same as yesterday.",
                "Steps and negotiated parameters below show why it is expensive.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            figures.handshake_cost(ONE),
            None,
        ),
        (
            "Resumed",
            Text(
                "Share of completed handshakes that resumed a session.",
                "Above 50% if clients return.",
                "See resumption and refused sessions below.",
                NO_HANDSHAKE,
            ),
            SHARE,
            figures.resumed_share(ONE),
            thresholds.RESUMED,
        ),
        (
            "Failed",
            Text(
                "Share of handshakes that ended with an error or a fatal alert.",
                "Below 1%.",
                "Click to see the alerts; the row Failures below has more.",
                "No handshake in this time range, failed or not.",
            ),
            SHARE,
            figures.failed_share(ONE),
            thresholds.FAILED,
        ),
    ]
    return Row(
        "At a glance: $service_name",
        [
            figure(name, text, unit, Query(query, name), limits=limits)
            for name, text, unit, query, limits in shows
        ],
        leads={"Failed": "Alerts"},
    )


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


def _cost() -> Row:
    quantiles = [
        Query(ONE.quantile(q, HANDSHAKE_CPU, SERVER, by=["resumption"]), f"{name} {{{{resumption}}}}")
        for q, name in ((0.5, "median"), (0.99, "99%"))
    ]
    steps = each_of(total(ONE.rate(figures.STEP_CPU, SERVER), "step"), total(ONE.rate(HANDSHAKES, SERVER)))
    # Waits have no role label: they are divided by the handshakes of both roles.
    waits = each_of(
        total(ONE.rate("tlsprof_handshake_wait_seconds_total"), "reason"), total(ONE.rate(HANDSHAKES))
    )
    duty = figures.step_probes_duty(Source(HOSTS))
    by_host = figures.largest(lambda it: figures.handshake_cost(it, "instance"), ONE, "instance")
    return Row(
        "Cost of handshakes",
        [
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
                    "Raise agent.budget: the agent detaches step probes to stay within it. The handshake"
                    " share does not depend on them.",
                    "No agent is scraped for this selection.",
                ),
                SHARE,
                Query(duty, "Steps measured"),
                limits=thresholds.DUTY,
                size=(5, 8),
            ),
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
                    "Share of completed handshakes as client that resumed a session.",
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
        _cost(),
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
