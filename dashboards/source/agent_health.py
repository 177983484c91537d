"""Agent health: overhead, lost data and capabilities by host."""

from typing import Any

from grafana_foundation_sdk.models.dashboard import Dashboard

from . import figures, thresholds
from .frame import Row, build
from .panels import BYTES, NUMBER, PER_SECOND, SECONDS, SHARE, Query, course, figure
from .queries import HOSTS, Source, ranked, total
from .tables import Column, listing
from .text import Text

UID = "tlsprof-agent-health"
AGENTS = Source(HOSTS)
HOST = ("cluster", "instance")
LACKING = "degraded|unavailable"
STATES = {1: ("unavailable", "red"), 2: ("degraded", "orange"), 3: ("available", "green")}
NO_AGENT = (
    "Prometheus scrapes no agent for this selection. docs/fleet.md has the scrape job; `tlsprof doctor` on the"
    " host shows what does not work."
)
NO_SAMPLES = (
    "No service used CPU time, or CPU samples are unavailable: run `tlsprof doctor` on the host"
    " (cpu_samples)."
)


def _summary() -> Row:
    cost = figures.target_cost_share(AGENTS)
    lost = figures.lost(AGENTS)
    degraded = total(AGENTS.value("tlsprof_agent_capability", f'state=~"{LACKING}"'))
    return Row(
        "At a glance",
        [
            figure(
                "Agents up",
                Text(
                    "Agents reached by the last scrape, out of all that Prometheus scrapes.",
                    "All are up.",
                    "Click to see which are down; docs/alerts/TlsprofAgentDown.md.",
                    NO_AGENT,
                ),
                NUMBER,
                Query(figures.agents_down(AGENTS), "{{up}} of {{all}}"),
                decimals=0,
                named=True,
                limits=thresholds.NONE_DOWN,
            ),
            figure(
                "Steps measured",
                Text(
                    "Share of time with step probes attached; the lowest of the selected hosts.",
                    "100%.",
                    "Raise agent.budget: the agent detaches step probes to stay within it.",
                    NO_AGENT,
                ),
                SHARE,
                Query(figures.step_probes_duty(AGENTS), "Steps measured"),
                limits=thresholds.DUTY,
            ),
            figure(
                "Cost",
                Text(
                    "Estimated overhead as a share of the profiled services' CPU time, all hosts. Can be far"
                    " higher right after an agent starts.",
                    "Below 1%.",
                    "docs/alerts/TlsprofOverBudget.md.",
                    NO_AGENT,
                ),
                SHARE,
                Query(cost, "Overhead on the services"),
                limits=thresholds.TARGET_COST,
            ),
            figure(
                "Lost",
                Text(
                    "Records and calls lost per second, all hosts, except losses that do not affect counts.",
                    "0.",
                    "docs/alerts/TlsprofLosesData.md.",
                    NO_AGENT,
                ),
                PER_SECOND,
                Query(lost, "Lost"),
                limits=thresholds.LOSSES,
            ),
            figure(
                "Missing",
                Text(
                    "Capabilities that are unavailable or degraded, summed over hosts.",
                    "0, or what older kernels lack.",
                    "Click to see them; `tlsprof doctor` on the host shows the reason.",
                    NO_AGENT,
                ),
                NUMBER,
                Query(degraded, "Missing"),
                limits=thresholds.ANY,
                decimals=0,
            ),
            figure(
                "Services",
                Text(
                    "Running services that the agents know, all hosts.",
                    "As many as you expect.",
                    "`tlsprof list` on the host shows them. Beyond limits.services (200) they count as"
                    " `other`.",
                    NO_AGENT,
                ),
                NUMBER,
                Query(total(AGENTS.value("tlsprof_agent_services")), "Services"),
                decimals=0,
            ),
        ],
        leads={"Agents up": "Agents by host", "Missing": "Missing capabilities"},
    )


def _cost() -> Row:
    host = "{{instance}}"
    return Row(
        "Overhead",
        [
            course(
                "Estimated overhead on the services",
                Text(
                    "Share of the services' CPU time: probe hits x the cost of one hit on this machine,"
                    " plus the time in BPF programs.",
                    "Below 1%. The agent detaches step probes to stay within agent.budget.",
                    'agent.keep = "connections" lets the agent detach more; profile.steps = "off" and'
                    ' profile.library = "off" do so for good.',
                    NO_AGENT,
                ),
                SHARE,
                Query(figures.target_cost_share(AGENTS, *HOST), host),
                limits=thresholds.TARGET_COST,
                soft_max=0.025,
            ),
            course(
                "CPU of the agent",
                Text(
                    "CPU time of the agent's process, as a share of one core.",
                    "Below 5%.",
                    "Grows with handshakes and with process starts and exits. A rise without those is a"
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
                    "Time that the profiled services spend in the agent's BPF programs, as a share of one"
                    " core.",
                    "Small compared with the CPU time of the services, and proportional to their load.",
                    "Runs and probe hits shows whether there are more runs, or more expensive ones.",
                    NO_AGENT,
                ),
                SHARE,
                Query(total(AGENTS.rate("tlsprof_agent_bpf_run_seconds_total"), *HOST), host),
                size=(8, 8),
            ),
            course(
                "Runs and probe hits",
                Text(
                    "BPF program runs and probe hits in services, per second.",
                    "Follows handshakes and socket calls.",
                    "Many more runs than socket calls: the agent uses the most expensive hook (raw_syscalls);"
                    " see All capabilities.",
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
                    "Flat after the first minutes, a few tens of MB.",
                    "limits.services and limits.label_sets bound it. Unbounded growth is a bug: report it.",
                    NO_AGENT,
                ),
                BYTES,
                Query(total(AGENTS.value("tlsprof_agent_resident_memory_bytes"), *HOST), host),
                limits=thresholds.MEMORY,
                size=(8, 8),
            ),
            course(
                "Measured",
                Text(
                    "Share of time with step probes, probes in TLS libraries and hooks on socket calls attached.",
                    "100%.",
                    "Raise agent.budget or change agent.keep: the agent detaches these to stay within its"
                    " budget. steps below 100%: steps are known for that share of handshakes only. libraries:"
                    " handshakes are measured on their sockets. socket calls: handshakes are estimates.",
                    NO_AGENT,
                ),
                SHARE,
                *[
                    Query(
                        f"min by (cluster, instance) ({AGENTS.value(f'tlsprof_agent_{group}_duty_ratio')})",
                        f"{host} {name}",
                    )
                    for group, name in (
                        ("step_probes", "steps"),
                        ("library_probes", "libraries"),
                        ("socket_calls", "socket calls"),
                    )
                ],
                limits=thresholds.DUTY,
                size=(12, 7),
                soft_max=1,
            ),
            course(
                "Profiled images",
                Text(
                    "Executable files (programs and libraries) with probes.",
                    "At least one if a supported TLS library is in use.",
                    "0 on a host with TLS servers: figures come from socket calls. `tlsprof list` on the host"
                    " shows why.",
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
    witness = f"max by (instance) ({AGENTS.value('tlsprof_build_info')})"
    return Row(
        "Losses and scrapes",
        [
            course(
                "Lost, by reason",
                Text(
                    "Records and calls lost per second. began_before_attach, hello_* and mapping_record_lost do"
                    " not affect counts.",
                    "All zero, except briefly after the agent's start.",
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
                "Scrape duration",
                Text(
                    "Time that Prometheus needs to scrape the agent.",
                    "Below 0.1 s.",
                    "Above that, the host is overloaded, or there are very many services.",
                    NO_AGENT,
                ),
                SECONDS,
                Query(scrape, "{{instance}}"),
                limits=thresholds.SCRAPE,
                size=(8, 8),
            ),
            course(
                "Series of an agent",
                Text(
                    "Samples per scrape of the agent; a native histogram counts as one.",
                    "About 280 per TLS server with classic histograms, 125 with native ones: docs/fleet.md.",
                    "limits.label_sets and limits.services bound it.",
                    NO_AGENT,
                ),
                NUMBER,
                Query(samples, "{{instance}}"),
                limits=thresholds.SERIES,
                size=(8, 8),
            ),
        ],
    )


def _samples() -> Row:
    host = "{{instance}}"
    return Row(
        "CPU samples",
        collapsed=True,
        panels=[
            course(
                "CPU time without a sample",
                Text(
                    "Deviation of the sum of activities from the kernel's accounting over the last minute;"
                    " mean of the host's services, weighted by CPU time.",
                    "Below 5%.",
                    "`tlsprof doctor` on the host (cpu_samples). Shares by activity are off by that much.",
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
                    "CPU time covered by samples, as a share of the kernel's accounting over the last"
                    " minute; mean of the host's services, weighted by CPU time.",
                    "Around 100%.",
                    "Below: samples are lost, see Lost, by reason. Above: services with very short processes, for"
                    " which the kernel does not account all CPU time.",
                    NO_SAMPLES,
                ),
                SHARE,
                Query(figures.of_last_minute(AGENTS, "tlsprof_cpu_sampled_ratio", *HOST), host),
                size=(12, 7),
            ),
        ],
    )


def _hosts() -> Row:
    version = f"max by (cluster, instance, version) ({AGENTS.value('tlsprof_build_info')})"
    up = f"max by (cluster, instance) ({AGENTS.value('up')})"
    seen = f"timestamp({AGENTS.value('tlsprof_build_info')})[$__range:15s]"
    seen = f"max by (cluster, instance) (max_over_time({seen})) * 1000"
    return Row(
        "Hosts",
        [
            listing(
                "Agents by host",
                Text(
                    "Agents scraped in this time range: state, version, and time since the last successful scrape.",
                    "All up, with the same version.",
                    "Old version: update the agent. Missing host: Prometheus does not scrape it.",
                    NO_AGENT,
                ),
                {"cluster": "Cluster", "instance": "Host", "version": "Version"},
                Column("State", up, words={0: ("down", "red"), 1: ("up", "green")}),
                Column("Last seen", seen, "dateTimeFromNow", width=160),
                Column("Known version", version, hidden=True),
                sort="State",
                descending=False,
                first=["State"],
                size=(24, 7),
            ),
        ],
    )


def _capabilities() -> list[Row]:
    """First the few that a host lacks; the rest on request."""

    def states(*ranks: int) -> Column:
        # A capability has a series of each state, and 1 for the one that it is in.
        asked = {rank: STATES[rank] for rank in ranks}
        each = ranked("tlsprof_agent_capability", AGENTS, "state", asked, "instance", "capability")
        return Column("State", each, words=STATES)

    def table(title: str, shows: str, no_data: str, column: Column) -> Any:
        return listing(
            title,
            Text(
                shows,
                "available. One of the three hooks on socket calls (socket_calls_*) is enough.",
                "`tlsprof doctor` on the host shows the reason and the remedy.",
                no_data,
            ),
            {"instance": "Host", "capability": "Capability"},
            column,
            sort="State",
            descending=False,
            first=["State"],
            size=(24, 7),
        )

    missing = "Every capability is available on every host, or no agent is scraped for this selection."
    lacking = table("Missing capabilities", "Capabilities that are unavailable or degraded, by host.", missing, states(1, 2))
    every = table("All capabilities", "State of each capability by host, unavailable first.", NO_AGENT, states(*STATES))
    return [Row("Capabilities", [lacking]), Row("All capabilities by host", [every], collapsed=True)]


def make() -> Dashboard:
    """Whether the agents work, and what they cost."""
    return build(
        UID,
        "Agent health",
        "Overhead, lost data and capabilities of the agents.",
        [_summary(), _cost(), _losses(), _hosts(), *_capabilities(), _samples()],
    )
