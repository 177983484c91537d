"""One service: where its CPU goes, what its handshakes cost, and why."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from . import figures, negotiation, thresholds
from .figures import HANDSHAKE_CPU, HANDSHAKES, SERVER
from .frame import Row, build, service_variable
from .panels import NUMBER, PER_SECOND, SECONDS, SHARE, Query, Text, course, figure, heat_map
from .negotiation import NO_HANDSHAKE
from .queries import SERVICE, Source, each_of, ratio, total

UID = "tlsprof-service"
ONE = Source(SERVICE)

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
                "As planned.",
                "The stacked chart below shows the activities.",
                NO_CPU,
            ),
            NUMBER,
            figures.cpu(ONE),
            None,
        ),
        (
            "CPU in handshakes",
            Text(
                "Share of the service's CPU time spent on TLS handshakes.",
                "Below 20%.",
                "Make fewer handshakes (keep connections open) and less expensive ones (resume sessions,"
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
                "Follows clients, not requests.",
                "If near the request rate, raise the keep-alive limits.",
                NO_HANDSHAKE,
            ),
            PER_SECOND,
            figures.handshakes(ONE),
            None,
        ),
        (
            "CPU per handshake",
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
                "See failures and alerts below.",
                "No handshake in this time range, failed or not.",
            ),
            SHARE,
            figures.failed_share(ONE),
            thresholds.FAILED,
        ),
    ]
    return Row(
        "$service_name",
        [
            figure(name, text, unit, Query(query, name), limits=limits)
            for name, text, unit, query, limits in shows
        ],
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
                Query(figures.by_activity(ONE), "{{activity}}"),
                stacked=True,
                axis="cores",
                size=(10, 8),
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
                size=(7, 8),
            ),
            course(
                "Softirq for its connections",
                Text(
                    "Kernel time for the service's connections outside of its processes, in cores, by"
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
                size=(7, 8),
            ),
        ],
    )


def _cost() -> Row:
    quantiles = [
        Query(ONE.quantile(q, HANDSHAKE_CPU, SERVER, by=["resumption"]), f"{name} {{{{resumption}}}}")
        for q, name in ((0.5, "median"), (0.99, "99%"))
    ]
    steps = each_of(total(ONE.rate(figures.STEP_CPU, SERVER), "step"), total(ONE.rate(HANDSHAKES, SERVER)))
    waits = total(ONE.rate("tlsprof_handshake_wait_seconds_total"), "reason")
    return Row(
        "Cost of handshakes",
        [
            course(
                "CPU per handshake, quantiles",
                Text(
                    "CPU time per completed handshake by resumption; `none` is a full handshake. From"
                    " native histograms if scraped, otherwise from the coarser classic buckets.",
                    "Resumed far below full, p99 within twice the median.",
                    "Group and signature determine the cost of full handshakes. A wide spread comes from"
                    " other work in the same call, or from several keys.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                *quantiles,
            ),
            heat_map(
                "CPU per handshake, distribution",
                Text(
                    "Number of handshakes by CPU time, as server.",
                    "Two narrow bands: resumed below, full above.",
                    "A band that moves up shows when the cost changed: look for a deployment, a new"
                    " certificate or a changed cipher list.",
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
                    "signing large: ECDSA certificate, resumption. key_exchange large: X25519."
                    " rsa_decryption: drop RSA key transport.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                Query(steps, "{{step}}"),
                stacked=True,
            ),
            course(
                "Off-CPU time in handshakes",
                Text(
                    "Waiting time of handshakes in seconds per second, by reason. `between_calls`: waiting"
                    " for the client, in a non-blocking server.",
                    "Only between_calls and network: round trips to the client.",
                    "run_queue: the host has no free CPU. lock, disk: session cache (use shared memory, not"
                    " files). random: a blocking random source. pipe: another process.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                Query(waits, "{{reason}}"),
                axis="seconds per second",
            ),
            course(
                "Wall time of handshakes",
                Text(
                    "Time from the first call into the TLS library to the end of the handshake, as server.",
                    "One round trip to the client for TLS 1.3, two before.",
                    "Above that: see off-CPU time. CPU per handshake is the cost, this is the latency for"
                    " the client.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                Query(ONE.quantile(0.5, DURATION, SERVER), "median"),
                Query(ONE.quantile(0.99, DURATION, SERVER), "99%"),
            ),
        ],
    )


def by_host(check: str) -> str:
    """A check of the service's CPU account: the largest, where a host has several series."""
    return f"max by (cluster, instance) ({ONE.value(check)})"


def _trust() -> Row:
    agreement = ratio(
        total(ONE.rate("tlsprof_agreement_cpu_seconds_total", 'source="socket"')),
        total(ONE.rate("tlsprof_agreement_cpu_seconds_total", 'source="library"')),
    )
    by_source = total(ONE.rate("tlsprof_handshakes_by_source_total"), "source")
    offloaded = total(ONE.rate("tlsprof_handshakes_offloaded_total"))
    unclassified = ratio(
        total(ONE.rate("tlsprof_cpu_samples_unclassified_total")),
        total(ONE.rate("tlsprof_cpu_samples_total")),
    )
    return Row(
        "Sources of these figures",
        [
            course(
                "Handshakes by source",
                Text(
                    "Handshakes per second by source: probes in the TLS library, or socket calls."
                    " `offloaded`: a different thread answered than the one that read, and other threads"
                    " may have worked in between, so their CPU time is a lower bound.",
                    "library, which also measures steps; socket if the library has no symbols.",
                    "`tlsprof list` shows why a service is not probed. With offloaded handshakes, CPU in"
                    " handshakes may be too low.",
                    NO_HANDSHAKE,
                ),
                PER_SECOND,
                Query(by_source, "{{source}}"),
                Query(offloaded, "offloaded"),
                size=(12, 7),
            ),
            course(
                "Agreement of the sources",
                Text(
                    "CPU time of the same handshakes from socket calls, relative to library probes.",
                    "0.9 to 1.1.",
                    "Far from 1: the service reads from other sockets during a handshake, or hands it to"
                    " other threads. In that case trust the library.",
                    "No handshake was measured by both sources: the service has no probed library, or made"
                    " no handshake.",
                ),
                SHARE,
                Query(agreement, "socket / library"),
                size=(12, 7),
            ),
            course(
                "CPU time without a sample",
                Text(
                    "Deviation of the sum of activities from the kernel's accounting in the last minute, by"
                    " host.",
                    "Below 5%. More if the service uses hardly any CPU, until the next sample.",
                    "If large, do not rely on shares by activity. `tlsprof doctor` shows whether sampling"
                    " works.",
                    NO_SAMPLES,
                ),
                SHARE,
                Query(by_host("tlsprof_cpu_reconciliation_error_ratio"), "{{instance}}"),
                limits=thresholds.RECONCILIATION,
                size=(8, 7),
            ),
            course(
                "Sampled",
                Text(
                    "CPU time covered by samples in the last minute, as a share of the kernel's accounting,"
                    " by host.",
                    "Around 100%; the scatter with n samples is 1 / sqrt(n).",
                    "Below: samples are lost. Above: processes are so short that the kernel does not"
                    " account all of their time; shares are right, but sums too low.",
                    NO_SAMPLES,
                ),
                SHARE,
                Query(by_host("tlsprof_cpu_sampled_ratio"), "{{instance}}"),
                size=(8, 7),
            ),
            course(
                "Unclassified samples",
                Text(
                    "Share of samples in kernel functions that tlsprof does not know. They count as"
                    " application.",
                    "Below 5%.",
                    "Above: application includes kernel work that may belong elsewhere. Please report the"
                    " kernel version.",
                    NO_SAMPLES,
                ),
                SHARE,
                Query(unclassified, "unclassified"),
                size=(8, 7),
            ),
        ],
    )


def make() -> Dashboard:
    """Why one service's handshakes cost what they cost."""
    rows = [
        _summary(),
        _cpu(),
        _cost(),
        negotiation.negotiated(),
        negotiation.resumption(),
        negotiation.failures(),
        _trust(),
    ]
    return build(
        UID,
        "Service",
        "One service: CPU by activity, cost of handshakes, and negotiated parameters.",
        rows,
        service_variable(),
    )
