"""One service: where its CPU goes, what its handshakes cost, and why."""

from grafana_foundation_sdk.models.dashboard import Dashboard, DynamicConfigValue

from . import colours, figures, negotiation, problems, thresholds
from .figures import CLIENT, HANDSHAKE_CPU, HANDSHAKES, SERVER
from .frame import Row, build, busiest_service_variable
from .negotiation import NO_HANDSHAKE
from .panels import CORES, NUMBER, PER_SECOND, SECONDS, SHARE, Query, course, figure, heat_map
from .queries import HOSTS, Source, each_of, ratio, total
from .text import Text

UID = "tlsprof-service"
ONE = Source()

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
            CORES,
            figures.cpu(ONE),
            None,
        ),
        (
            "Handshake share",
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
            "CPU/handshake",
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
        "At a glance: $service_name",
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
                colours=colours.ACTIVITIES,
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
                colours=colours.MODES,
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
                colours=colours.ACTIVITIES,
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
    # Waits have no role: both are in them, and so in the handshakes that they are divided by.
    waits = each_of(
        total(ONE.rate("tlsprof_handshake_wait_seconds_total"), "reason"), total(ONE.rate(HANDSHAKES))
    )
    duty = f"min({Source(HOSTS).value('tlsprof_agent_step_probes_duty_ratio')})"
    return Row(
        "Cost of handshakes",
        [
            course(
                "CPU per handshake, quantiles",
                Text(
                    "CPU time of a completed handshake, full or resumed (psk, ticket, session_id). From"
                    " native histograms where they are scraped, else from classic buckets, which are"
                    " coarser.",
                    "Resumed ones below full ones, far below before TLS 1.3 (with psk, it still exchanges"
                    " keys). 99% within twice the median.",
                    "A full one is dear by its group and signature. A wide spread comes from other work in"
                    " the same call, or several keys.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                *quantiles,
            )
            .override_by_name("median none", [DynamicConfigValue("displayName", "median full")])
            .override_by_name("99% none", [DynamicConfigValue("displayName", "99% full")]),
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
                colours=colours.STEPS,
                size=(7, 8),
            ),
            figure(
                "Steps measured",
                Text(
                    "Share of the time in which the probes of the steps are attached, on the selected host"
                    " where it is least.",
                    "100%.",
                    "Raise agent.budget: the agent takes these probes off before it passes its budget. Shares"
                    " of handshakes in CPU time do not depend on them.",
                    "No agent is scraped for this selection.",
                ),
                SHARE,
                Query(duty, "Steps measured"),
                limits=thresholds.DUTY,
                size=(5, 8),
            ),
            course(
                "Time off the CPU in handshakes",
                Text(
                    "How long a handshake waits, by reason, as server or as client. `between_calls`: for the"
                    " peer, in a program that does not block.",
                    "between_calls and network only: the way to the client and back.",
                    "run_queue: the host is full. lock, disk: the session cache (shared memory, not files)."
                    " random: a random source that blocks. pipe: another process.",
                    NO_HANDSHAKE,
                ),
                SECONDS,
                Query(waits, "{{reason}}"),
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


def _as_client() -> Row:
    nothing = "The service made no TLS handshake as client in this time."
    return Row(
        "As client: its own connections to others",
        [
            course(
                "Handshakes as client",
                Text(
                    "Completed handshakes a second that the service made with others, such as a proxy with"
                    " its upstreams.",
                    "Far below the requests a second.",
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
                    "Mean CPU time of a completed handshake as client.",
                    "What it was yesterday.",
                    "Most of it is verifying certificates: shorter chains, resumption.",
                    nothing,
                ),
                SECONDS,
                Query(figures.handshake_cost(ONE, "service_name", role=CLIENT), "{{service_name}}"),
                size=(8, 7),
            ),
            course(
                "Resumed as client",
                Text(
                    "Share of the completed handshakes as client that took up an earlier session.",
                    "Above 50%.",
                    "Turn on session reuse (nginx: proxy_ssl_session_reuse).",
                    nothing,
                ),
                SHARE,
                Query(figures.resumed_share(ONE, "service_name", role=CLIENT), "{{service_name}}"),
                most=1,
                size=(8, 7),
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
        collapsed=True,
        panels=[
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
        problems.row(ONE),
        _cpu(),
        _cost(),
        negotiation.negotiated(),
        negotiation.resumption(),
        _as_client(),
        negotiation.failures(),
        _trust(),
    ]
    return build(
        UID,
        "Service",
        "One service, or several: CPU by activity, the cost of its handshakes, what it negotiates, and why.",
        rows,
        busiest_service_variable(),
    )
