"""Agent health: overhead, lost data and capabilities by host."""

from typing import Any

from grafana_foundation_sdk.models.dashboard import Dashboard

from . import figures, overhead, thresholds
from .frame import Row, build
from .overhead import AGENTS, EACH, HOST, NO_AGENT
from .panels import NUMBER, PER_SECOND, SECONDS, SHARE, Query, course, figure
from .queries import ranked, total
from .tables import Column, listing
from .text import Text

UID = "tlsprof-agent-health"
LACKING = "degraded|unavailable"
STATES = {1: ("unavailable", "red"), 2: ("degraded", "orange"), 3: ("available", "green")}
NO_SAMPLES = (
    "No service used CPU time, or CPU samples are unavailable: run `tlsprof doctor` on the host"
    " (cpu_samples)."
)


def _state_and_overhead() -> list[Any]:
    return [
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
                "Raise agent.budget: the agent detaches probes to stay within it. 0% also where"
                " profile.library is off.",
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
            Query(figures.target_cost_share(AGENTS), "Overhead on the services"),
            limits=thresholds.TARGET_COST,
        ),
    ]


def _losses_and_services() -> list[Any]:
    degraded = total(AGENTS.value("tlsprof_agent_capability", f'state=~"{LACKING}"'))
    return [
        figure(
            "Lost",
            Text(
                "Records and calls lost per second, all hosts, except losses that do not affect counts.",
                "0.",
                "docs/alerts/TlsprofLosesData.md.",
                NO_AGENT,
            ),
            PER_SECOND,
            Query(figures.lost(AGENTS), "Lost"),
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
                "Running services with a TLS library, handshakes, TCP connections or a listening socket; all"
                " hosts.",
                "As many as you expect.",
                "`tlsprof list` on the host shows them. Beyond limits.services (200) they count as"
                " `other`.",
                NO_AGENT,
            ),
            NUMBER,
            Query(total(AGENTS.value("tlsprof_agent_services")), "Services"),
            decimals=0,
        ),
    ]


def _summary() -> Row:
    return Row(
        "At a glance",
        [*_state_and_overhead(), *_losses_and_services()],
        leads={"Agents up": "Agents by host", "Missing": "Missing capabilities"},
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
                    f"Records and calls lost per second. {', '.join(figures.HARMLESS[:-1])} and"
                    f" {figures.HARMLESS[-1]} do not affect counts.",
                    "All zero, except briefly after the agent's start. hello_not_followed: below 1% of the connections it hardly matters.",
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
                Query(figures.of_last_minute(AGENTS, "tlsprof_cpu_reconciliation_error_ratio", *HOST), EACH),
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
                Query(figures.of_last_minute(AGENTS, "tlsprof_cpu_sampled_ratio", *HOST), EACH),
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
        [_summary(), overhead.row(), _losses(), _hosts(), *_capabilities(), _samples()],
    )
