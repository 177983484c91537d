"""Agent health: what profiling costs, what is lost, what works on which host."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from . import figures, problems, thresholds
from .frame import Row, build
from .panels import BYTES, NUMBER, PER_SECOND, SECONDS, SHARE, Query, course, figure
from .queries import HOSTS, Source, total
from .tables import Column, listing
from .text import Text

UID = "tlsprof-agent-health"
AGENTS = Source(HOSTS)
HOST = ("cluster", "instance")
LACKING = "degraded|unavailable"
STATES = {1: ("unavailable", "red"), 2: ("degraded", "orange"), 3: ("available", "green")}
NO_AGENT = (
    "No agent is scraped for this selection. docs/fleet.md shows the scrape job; `tlsprof doctor` on the host"
    " says what does not work."
)
NO_SAMPLES = (
    "No service used CPU time, or no samples are taken: `tlsprof doctor` on the host says why (cpu_samples)."
)


def _summary() -> Row:
    up = AGENTS.value("up")
    cost = figures.target_cost_share(AGENTS)
    lost = figures.lost(AGENTS)
    degraded = total(AGENTS.value("tlsprof_agent_capability", f'state=~"{LACKING}"'))
    return Row(
        "At a glance",
        [
            figure(
                "Agents",
                Text(
                    "Agents that the last scrape reached, and those that it did not.",
                    "None is down.",
                    "The table below names them; docs/alerts/TlsprofAgentDown.md.",
                    NO_AGENT,
                ),
                NUMBER,
                Query(f"sum({up})", "up"),
                Query(f"count({up}) - sum({up})", "down"),
                decimals=0,
            ).override_by_name("down", problems.RED_FROM_ONE),
            figure(
                "Steps measured",
                Text(
                    "Share of the time in which the probes of the steps are attached, on the host where it is"
                    " least.",
                    "100%.",
                    "Raise agent.budget: the agent takes these probes off before it passes its budget.",
                    NO_AGENT,
                ),
                SHARE,
                Query(f"min({AGENTS.value('tlsprof_agent_step_probes_duty_ratio')})", "Steps measured"),
                limits=thresholds.DUTY,
            ),
            figure(
                "Cost",
                Text(
                    "Estimated share of the profiled services' CPU time that profiling takes, all hosts.",
                    "Below 1%.",
                    "docs/alerts/TlsprofOverBudget.md.",
                    NO_AGENT,
                ),
                SHARE,
                Query(cost, "Cost on the services"),
                limits=thresholds.TARGET_COST,
            ),
            figure(
                "Lost",
                Text(
                    "Records and calls lost a second, all hosts, without what leaves counts whole.",
                    "0.",
                    "docs/alerts/TlsprofLosesData.md.",
                    NO_AGENT,
                ),
                PER_SECOND,
                Query(lost, "Lost"),
                limits=thresholds.LOSSES,
            ),
            figure(
                "Lacking",
                Text(
                    "Capabilities that are not there or work only in part, summed over hosts.",
                    "0. A host with an older kernel lacks some for good.",
                    "`tlsprof doctor` on the host gives the reason.",
                    NO_AGENT,
                ),
                NUMBER,
                Query(degraded, "Lacking"),
                limits=thresholds.ANY,
                decimals=0,
            ),
            figure(
                "Services",
                Text(
                    "Running services that the agents know, all hosts.",
                    "As many as you run.",
                    "`tlsprof list` on the host shows them. Beyond limits.services (200) they count as"
                    " `other`.",
                    NO_AGENT,
                ),
                NUMBER,
                Query(total(AGENTS.value("tlsprof_agent_services")), "Services"),
                decimals=0,
            ),
        ],
    )


def _cost() -> Row:
    host = "{{instance}}"
    return Row(
        "What profiling costs",
        [
            course(
                "Estimated cost on the services",
                Text(
                    "Share of the services' CPU time: hits of probes times the cost of one hit on this"
                    " machine, and the time in BPF programs.",
                    "Below 1%. The agent takes step probes off before it goes above agent.budget.",
                    'profile.steps = "off", or profile.library = "off" for hosts with very many handshakes.',
                    NO_AGENT,
                ),
                SHARE,
                Query(figures.target_cost_share(AGENTS, *HOST), host),
                limits=thresholds.TARGET_COST,
                soft_max=0.025,
            ),
            course(
                "CPU of the agent itself",
                Text(
                    "CPU time of the agent's process, as a share of one core.",
                    "Below 5%.",
                    "Grows with handshakes and with processes that start and end. A rise without those is a"
                    " defect: report it.",
                    NO_AGENT,
                ),
                SHARE,
                Query(total(AGENTS.rate("tlsprof_agent_cpu_seconds_total"), *HOST), host),
                limits=thresholds.AGENT_CPU,
            ),
            course(
                "Time in BPF programs",
                Text(
                    "Time inside the agent's BPF programs, spent by the profiled services, as a share of one"
                    " core.",
                    "Small beside the CPU time of the services, and in step with their load.",
                    "See runs beside: dearer runs or more of them.",
                    NO_AGENT,
                ),
                SHARE,
                Query(total(AGENTS.rate("tlsprof_agent_bpf_run_seconds_total"), *HOST), host),
                size=(8, 8),
            ),
            course(
                "Runs and probe hits",
                Text(
                    "Runs of BPF programs, and hits of probes in services, a second.",
                    "Follows handshakes and socket calls.",
                    "Many more runs than socket calls: the way to see socket calls is the dearest"
                    " (raw_syscalls); see capabilities.",
                    NO_AGENT,
                ),
                PER_SECOND,
                Query(total(AGENTS.rate("tlsprof_agent_bpf_runs_total"), *HOST), f"runs {host}"),
                Query(total(AGENTS.rate("tlsprof_agent_probe_hits_total"), *HOST), f"hits {host}"),
                size=(8, 8),
            ),
            course(
                "Resident memory",
                Text(
                    "Resident memory of the agent's process.",
                    "Flat after the first minutes, some tens of MB.",
                    "limits.services and limits.label_sets bound it. Growth without end is a defect:"
                    " report it.",
                    NO_AGENT,
                ),
                BYTES,
                Query(total(AGENTS.value("tlsprof_agent_resident_memory_bytes"), *HOST), host),
                size=(8, 8),
            ),
            course(
                "Step probes attached",
                Text(
                    "Share of the time in which the probes of public-key steps are attached.",
                    "1.",
                    "Below 1 the budget was passed: steps and kinds of resumption are told for that share of"
                    " handshakes only. Raise agent.budget if that matters.",
                    NO_AGENT,
                ),
                SHARE,
                Query(
                    f"min by (cluster, instance) ({AGENTS.value('tlsprof_agent_step_probes_duty_ratio')})",
                    host,
                ),
                size=(12, 7),
                most=1,
            ),
            course(
                "Profiled images",
                Text(
                    "Executable files, programs and libraries, that have probes.",
                    "At least one where a known TLS library is in use.",
                    "0 on a host with TLS servers: figures come from socket calls. `tlsprof list` says why.",
                    NO_AGENT,
                ),
                NUMBER,
                Query(total(AGENTS.value("tlsprof_agent_profiled_images"), *HOST), host),
                size=(12, 7),
            ),
        ],
    )


def _losses() -> Row:
    scrape = f"max by (cluster, instance) ({AGENTS.value('scrape_duration_seconds')})"
    samples = f"max by (cluster, instance) ({AGENTS.value('scrape_samples_scraped')})"
    lost = total(AGENTS.rate(figures.LOST), "instance", "reason")
    witness = f"max by (instance) ({AGENTS.value('tlsprof_agent_build_info')})"
    return Row(
        "Losses and scrapes",
        [
            course(
                "Lost, by reason",
                Text(
                    "Records and calls lost a second. began_before_attach and hello_*"
                    " leave counts whole.",
                    "All zero, but for a moment after the agent's start.",
                    "handshake_table_full: raise limits.handshakes_in_progress. event_ring_full: the agent"
                    " gets too little CPU.",
                    NO_AGENT,
                ),
                PER_SECOND,
                Query(f"{lost} > 0 or {witness} * 0", "{{instance}} {{reason}}"),
                limits=thresholds.LOSSES,
                size=(8, 8),
            ),
            course(
                "Time of a scrape",
                Text(
                    "How long Prometheus took to scrape the agent.",
                    "Below 0.1 s.",
                    "Above that the host is full, or there are very many services.",
                    NO_AGENT,
                ),
                SECONDS,
                Query(scrape, "{{instance}}"),
                size=(8, 8),
            ),
            course(
                "Series of an agent",
                Text(
                    "Samples that a scrape of the agent brings; a native histogram counts as one.",
                    "Some hundred for each service. docs/fleet.md works out what that means for a fleet.",
                    "limits.label_sets and limits.services bound it.",
                    NO_AGENT,
                ),
                NUMBER,
                Query(samples, "{{instance}}"),
                size=(8, 8),
            ),
        ],
    )


def _samples() -> Row:
    host = "{{instance}}"
    return Row(
        "CPU samples",
        [
            course(
                "CPU time without a sample",
                Text(
                    "How far the activities are from what the kernel accounts, over the last minute; mean"
                    " of the host's services, weighted by their CPU time.",
                    "Below 5%.",
                    "`tlsprof doctor` on the host (cpu_samples). Shares by activity are off by as much.",
                    NO_SAMPLES,
                ),
                SHARE,
                Query(figures.of_last_minute(AGENTS, "tlsprof_cpu_reconciliation_error_ratio", *HOST), host),
                limits=thresholds.RECONCILIATION,
                size=(12, 7),
            ),
            course(
                "Sampled",
                Text(
                    "What samples stand for, as a share of what the kernel accounts, over the last minute;"
                    " mean of the host's services, weighted by their CPU time.",
                    "Around 100%.",
                    "Below: samples are lost, see losses. Above: services with very short processes, of which"
                    " the kernel does not account all.",
                    NO_SAMPLES,
                ),
                SHARE,
                Query(figures.of_last_minute(AGENTS, "tlsprof_cpu_sampled_ratio", *HOST), host),
                size=(12, 7),
            ),
        ],
    )


def _hosts() -> Row:
    states = " or ".join(
        f"max by (instance, capability) ({AGENTS.value('tlsprof_agent_capability', of_state)} == 1) * {number}"
        for number, of_state in ((number, f'state="{word}"') for number, (word, _) in STATES.items())
    )
    version = f"max by (cluster, instance, version) ({AGENTS.value('tlsprof_agent_build_info')})"
    up = f"max by (cluster, instance) ({AGENTS.value('up')})"
    return Row(
        "Hosts",
        [
            listing(
                "Agents by host",
                Text(
                    "Agents that are or were scraped, with their version.",
                    "One version, all up.",
                    "An old version: update it. Not in the list at all: Prometheus does not know the host.",
                    NO_AGENT,
                ),
                {"cluster": "Cluster", "instance": "Host", "version": "Version"},
                Column("State", up, words={0: ("down", "red"), 1: ("up", "green")}),
                Column("Known version", version, hidden=True),
                sort="State",
                descending=False,
                first=["State"],
                size=(10, 9),
            ),
            listing(
                "Capabilities",
                Text(
                    "What works on which host, what does not work first.",
                    "available. Of the three ways to see socket calls (socket_calls_*) one is enough.",
                    "`tlsprof doctor` on the host gives the reason, and what helps.",
                    NO_AGENT,
                ),
                {"instance": "Host", "capability": "Capability"},
                Column("State", states, words=STATES),
                sort="State",
                descending=False,
                first=["State"],
                size=(14, 9),
            ),
        ],
    )


def make() -> Dashboard:
    """Whether the profiler itself is well."""
    return build(
        UID,
        "Agent health",
        "What the agents cost, what they lose, and what works on which host.",
        [_summary(), _cost(), _losses(), _samples(), _hosts()],
    )
