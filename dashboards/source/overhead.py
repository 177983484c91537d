"""The row of the Agent health dashboard on what profiling costs."""

from typing import Any

from . import figures, thresholds
from .frame import Row
from .panels import BYTES, NUMBER, PER_SECOND, SHARE, Query, course
from .queries import HOSTS, Source, total
from .text import Text

AGENTS = Source(HOSTS)
HOST = ("cluster", "instance")
EACH = "{{instance}}"
NO_AGENT = (
    "Prometheus scrapes no agent for this selection. docs/fleet.md has the scrape job; `tlsprof doctor` on the"
    " host shows what does not work."
)


def _shares() -> list[Any]:
    return [
        course(
            "Estimated overhead on the services",
            Text(
                "Share of the services' CPU time: probe hits x the cost of one hit on this machine,"
                " plus the time in BPF programs.",
                "Below 1%. The agent measures less to stay within agent.budget.",
                'Leave agent.keep at "connections", its default; profile.steps = "off" and'
                ' profile.library = "off" do so for good.',
                NO_AGENT,
            ),
            SHARE,
            Query(figures.target_cost_share(AGENTS, *HOST), EACH),
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
            Query(total(AGENTS.rate("tlsprof_agent_cpu_seconds_total"), *HOST), EACH),
            limits=thresholds.AGENT_CPU,
        ),
    ]


def _amounts() -> list[Any]:
    return [
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
            Query(total(AGENTS.rate("tlsprof_agent_bpf_run_seconds_total"), *HOST), EACH),
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
            Query(total(AGENTS.rate("tlsprof_agent_bpf_runs_total"), *HOST), f"runs {EACH}"),
            Query(total(AGENTS.rate("tlsprof_agent_probe_hits_total"), *HOST), f"hits {EACH}"),
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
            Query(total(AGENTS.value("tlsprof_agent_resident_memory_bytes"), *HOST), EACH),
            limits=thresholds.MEMORY,
            size=(8, 8),
        ),
    ]


def _attached() -> list[Any]:
    return [
        course(
            "Measured",
            Text(
                "Share of time with step probes, probes in TLS libraries and hooks on socket calls attached.",
                "100%.",
                "Raise agent.budget or change agent.keep: the agent detaches these to stay within its"
                " budget. steps below 100%: steps are known for that share of handshakes only. libraries:"
                " handshakes are measured on their sockets. socket calls: handshakes and requests are estimates.",
                NO_AGENT,
            ),
            SHARE,
            *[
                Query(
                    f"min by (cluster, instance) ({AGENTS.value(f'tlsprof_agent_{group}_duty_ratio')})",
                    f"{EACH} {name}",
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
            Query(total(AGENTS.value("tlsprof_agent_profiled_images"), *HOST), EACH),
            size=(12, 7),
        ),
    ]


def row() -> Row:
    return Row(
        "Overhead",
        [*_shares(), *_amounts(), *_attached()],
    )
