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

NO_CPU = "The service used no CPU time, or is not known on the selected hosts."
NO_SAMPLES = (
    "The service used no CPU time, or is not sampled: `tlsprof doctor` on the host says why (cpu_samples)."
)
DURATION = "tlsprof_handshake_duration_seconds"


def _summary() -> Row:
    shows = [
        (
            "CPU",
            Text(
                "CPU time of the service's processes in cores, as the kernel accounts it.",
                "What you planned for.",
                "The stack below says what it is spent on.",
                NO_CPU,
            ),
            NUMBER,
            figures.cpu(ONE),
            None,
        ),
        (
            "CPU in handshakes",
            Text(
                "Share of the service's CPU time in TLS handshakes.",
                "Below 20%.",
                "Fewer handshakes (keep connections), cheaper ones (resume sessions, X25519, ECDSA).",
                NO_CPU,
            ),
            SHARE,
            figures.handshake_share(ONE),
            thresholds.HANDSHAKE_SHARE,
        ),
        (
            "Handshakes",
            Text(
                "Completed handshakes a second, as server.",
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
                "Mean CPU time of a completed handshake, as server.",
                "What it was yesterday.",
                "Steps and mixes below say what makes it dear.",
                NO_HANDSHAKE,
            ),
            SECONDS,
            figures.handshake_cost(ONE),
            None,
        ),
        (
            "Resumed",
            Text(
                "Share of completed handshakes that took up an earlier session.",
                "Above 50% where clients come back.",
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
                "Share of handshakes that an error or a fatal alert ended.",
                "Below 1%.",
                "See failures and alerts below.",
                "No handshake, failed or not, in this time.",
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
                    "CPU time by activity in cores; the areas add up to all that the kernel accounts to the"
                    " service. `unattributed`: no sample speaks for it.",
                    "application has most of it.",
                    "Begin with the largest area that is not application.",
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
                    "CPU time of the service's processes by mode, as the kernel accounts it.",
                    "For TLS, mostly user. System time comes with connections and with what is sent.",
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
                "Softirqs for its connections",
                Text(
                    "Work of the kernel for the service's connections outside its processes' time, in cores,"
                    " by activity. It is in no other figure.",
                    "Small beside the CPU time of the service.",
                    "tcp_open and tcp_close: keep connections longer. socket_io follows what is sent and"
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
                    "CPU time of a completed handshake by kind of resumption, `none` being a full one. From"
                    " native histograms where they are scraped, else from classic buckets, which are"
                    " coarser.",
                    "Resumed ones far below full ones, 99% within twice the median.",
                    "A full one is dear by its group and signature. A wide spread comes from other work in"
                    " the same call, or several keys.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                *quantiles,
            ),
            heat_map(
                "CPU per handshake, all",
                Text(
                    "How many handshakes took how much CPU time, as server.",
                    "Two narrow bands: resumed ones below, full ones above.",
                    "A band that moved up tells when the cost changed: look for a deployment, a new"
                    " certificate, a changed cipher list.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                Query(ONE.heat_map(HANDSHAKE_CPU, SERVER), "{{le}}"),
            ),
            course(
                "CPU per handshake by step",
                Text(
                    "Mean CPU time of each step of a handshake, over all handshakes as server. `unmeasured`:"
                    " the step probes were detached and none alike had been measured, or only socket"
                    " calls showed the handshake.",
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
                "Time off the CPU in handshakes",
                Text(
                    "Seconds a second that handshakes wait, by reason. `between_calls`: for the client, in a"
                    " server that does not block.",
                    "between_calls and network only: the way to the client and back.",
                    "run_queue: the host is full. lock, disk: the session cache (shared memory, not files)."
                    " random: a random source that blocks. pipe: another process.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                Query(waits, "{{reason}}"),
                axis="seconds a second",
            ),
            course(
                "Wall time of handshakes",
                Text(
                    "Time from the first call into the TLS library to the end of the handshake, as server.",
                    "The time to the client and back, once for TLS 1.3, twice before.",
                    "Above that: see the waits. CPU per handshake tells cost, this tells what the client"
                    " feels.",
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
        "Where these figures come from",
        [
            course(
                "Handshakes by source",
                Text(
                    "Handshakes a second by what measured them: probes in the TLS library, or socket calls."
                    " `offloaded`: another thread answered than the one that read, and further threads may have"
                    " worked in between, so that their CPU time is a lower bound.",
                    "library, which also knows steps; socket where the library has no symbols.",
                    "`tlsprof list` says why a service is not probed. Offloaded ones may make CPU in"
                    " handshakes too low.",
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
                    "CPU time of the same handshakes as socket calls measured it, relative to library"
                    " probes.",
                    "0.9 to 1.1.",
                    "Far from 1: the service reads from other sockets during a handshake, or hands it to"
                    " other threads. Trust the library then.",
                    "No handshake was seen by both sources: the service has no library that is probed, or"
                    " made no handshake.",
                ),
                SHARE,
                Query(agreement, "socket / library"),
                size=(12, 7),
            ),
            course(
                "CPU time without a sample",
                Text(
                    "How far the activities of the last minute are from what the kernel accounts, by host.",
                    "Below 5%. More if the service uses next to no CPU: its time waits for the next sample.",
                    "Trust shares by activity as far as this is small. `tlsprof doctor` tells whether samples"
                    " are taken.",
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
                    "What the samples of the last minute stand for, as a share of what the kernel accounts,"
                    " by host.",
                    "Around 100%; with n samples it scatters by 1 / sqrt(n).",
                    "Below: samples are lost. Above: processes so short that the kernel does not account all"
                    " of their time; shares are right then, sums too low.",
                    NO_SAMPLES,
                ),
                SHARE,
                Query(by_host("tlsprof_cpu_sampled_ratio"), "{{instance}}"),
                size=(8, 7),
            ),
            course(
                "Unclassified samples",
                Text(
                    "Share of the samples in kernel functions that are on none of tlsprof's lists. They are"
                    " in application.",
                    "Below 5%.",
                    "Above, application holds work of the kernel that may belong elsewhere: report the"
                    " kernel's version.",
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
        "One service: its CPU by activity, the cost of its handshakes, what it negotiates, and why.",
        rows,
        service_variable(),
    )
