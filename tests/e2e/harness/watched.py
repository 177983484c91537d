"""A load on nginx, as the clients, the agent and a Prometheus of each kind saw it."""

import shutil
import time
import urllib.parse
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Optional

from . import metrics, plain_nginx, web_servers
from .certificates import Certificate
from .dashboards import Query
from .load import Load, Seen, run_load
from .observatory import TODAY, Observatory, Series, observatory
from .profiler import start_agent
from .waiting import wait_until

WARM_UP = [Load(tls=tls, full=40, resume=40, garbage=4, reject=4, abort_flight=4) for tls in ("1.2", "1.3")]
LOADS = [
    Load(tls=tls, full=300, resume=300, garbage=10, reject=10, abort_flight=10) for tls in ("1.2", "1.3")
]
SERVICE = plain_nginx.unique("nginx")
KINDS = ("native", "classic")
"""Of histograms, each in a Prometheus of its own: Debian's."""
KINDS_TODAY = tuple(f"{kind} today" for kind in KINDS)
"""The same in a Prometheus of today, where there is one."""
HANDSHAKES = "tlsprof_handshakes_total"
FINDING = "costly-certificate"
SEVERITIES = ["high", "medium", "low", "info"]
"""As the tables sort them, from 1 on."""
MARGIN_SECONDS = 0.01
SUBQUERY_SECONDS = 15.0
"""The longest step of subqueries in the dashboards. Prometheus puts these at multiples of it, and a
shorter window may hold none: then they give nothing."""


@dataclass(frozen=True)
class Watch:
    """A Prometheus, with a window that holds the load and nothing else. It begins and ends at a
    scrape: to the edges beyond these, rate() would extrapolate."""

    prometheus: Observatory
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin

    def ask(self, query: Query) -> list[Series]:
        """The query as Grafana would send it. What was before is so by a second only."""
        window = f"{round(self.seconds * 1000)}ms"
        values = {"cluster": "here", "job": "tlsprof", "instance": ".*", "service_name": SERVICE}
        values |= {"__rate_interval": window, "__range": window, "unrecorded": ".*"}
        values |= {"after": f"[{window}]", "before": f"[{window}] offset 1s"}
        return self.prometheus.query(query.filled(values), self.end)

    def number(self, query: Query) -> float:
        found = self.ask(query)
        assert len(found) == 1, f"{query}: {found}"
        return found[0].value


@dataclass(frozen=True)
class Watched:
    """The load, as the clients, the agent and Prometheus saw it."""

    by: dict[str, Watch]
    before: list[metrics.Sample]
    after: list[metrics.Sample]
    seen: Seen
    severities: list[float]
    """Of the finding, at the end of the window."""

    def growth(self, name: str, **labels: str) -> float:
        """By how much a metric of the agent grew over the window, as Prometheus can know it: of a
        series that came to be within, the first value is no increase."""
        known = {(sample.name, *sorted(sample.labels.items())) for sample in self.before}
        after = [one for one in self.after if (one.name, *sorted(one.labels.items())) in known]
        return metrics.total(after, name, **labels) - metrics.total(self.before, name, **labels)


def wait_for_cpu_times(agent_url: str) -> None:
    """Until the agent has read the CPU time of services once more. It does so every second or
    later, and so it does with the word on itself: between two of these there is a reading."""
    own = lambda: metrics.total(metrics.scrape(agent_url), "tlsprof_agent_cpu_seconds_total")
    for _ in range(2):
        known = own()
        wait_until(lambda: own() != known, "the agent's next word on itself")


def _settled(agent_url: str, handshakes: int) -> list[metrics.Sample]:
    """The agent's metrics once it has as many server handshakes of nginx as were made, and once all
    its counters stand still: CPU time and connections follow a moment after."""
    ours = dict(service_name=SERVICE, role="server")
    wait_until(
        lambda: metrics.total(metrics.scrape(agent_url), HANDSHAKES, **ours) >= handshakes,
        f"{handshakes} handshakes in the metrics",
    )

    def still() -> list[metrics.Sample]:
        first = [
            sample for sample in metrics.scrape(agent_url) if sample.labels.get("service_name") == SERVICE
        ]
        wait_for_cpu_times(agent_url)
        second = metrics.scrape(agent_url)
        now = [sample for sample in second if sample.labels.get("service_name") == SERVICE]
        counters = lambda samples: {str(sample) for sample in samples if "sockets" not in sample.name}
        return second if counters(first) == counters(now) else []

    return wait_until(still, "counters that stand still")


def _make(loads: list[Load], port: int) -> tuple[int, Seen]:
    """Runs the loads; how many handshakes that makes, and what the clients saw."""
    seen = sum((run_load(load, port) for load in loads), start=Seen.nothing())
    return sum(load.completing + load.failing + load.aborted for load in loads), seen


def _severities(agent_url: str) -> list[float]:
    """Those of the finding, as the tables sort them. Services are judged every 15 s; RSA for clients that
    accept ECDSA is the least to be found."""
    wanted = dict(service_name=SERVICE, role="server", finding=FINDING)
    return [
        float(1 + SEVERITIES.index(sample.labels["severity"]))
        for sample in metrics.scrape(agent_url)
        if sample.name == "tlsprof_finding" and wanted.items() <= sample.labels.items()
    ]


def _scrape(prometheus: Observatory) -> float:
    """The time of a scrape that began after this was called."""
    now = time.time()
    return wait_until(
        lambda: max(0.0, prometheus.last_scrape() - now) and prometheus.last_scrape(), "a scrape"
    )


def _ends(every: dict[str, Observatory], agent_url: str) -> Optional[tuple[dict[str, float], list[float]]]:
    """A scrape by each, and the severities that all of them saw; None if these changed meanwhile."""
    before = _severities(agent_url)
    ends = {kind: _scrape(prometheus) for kind, prometheus in every.items()}
    return (ends, before) if before == _severities(agent_url) else None


@contextmanager
def watch(folder: Path, certificate: Certificate) -> Iterator[Watched]:
    """Runs the load on an nginx, below an agent and a Prometheus of each kind."""
    # Without a budget: else a busy host changes, half way, what is told of handshakes, and so their
    # labels.
    config = folder / "tlsprof.toml"
    config.write_text('[agent]\nbudget = 1.0\n[profile]\nsteps = "always"\n')
    program = folder / SERVICE
    shutil.copy(shutil.which("nginx"), program)
    with (
        start_agent(["--config", config]) as agent,
        web_servers.nginx(folder, certificate, program=program) as server,
    ):
        target = urllib.parse.urlsplit(agent.url).netloc
        kinds = [*KINDS, *(KINDS_TODAY if TODAY.exists() else ())]
        with ExitStack() as stack:
            every = {
                kind: stack.enter_context(
                    observatory(
                        folder / kind.replace(" ", "-"),
                        target,
                        kind.startswith("native"),
                        today=kind in KINDS_TODAY,
                    )
                )
                for kind in kinds
            }
            made = _make(WARM_UP, server.port)[0]
            before = _settled(agent.url, made)
            begins = {kind: _scrape(prometheus) for kind, prometheus in every.items()}
            more, seen = _make(LOADS, server.port)
            wait_until(lambda: _severities(agent.url), f"the finding {FINDING}")
            after = _settled(agent.url, made + more)
            wait_until(lambda: time.time() - max(begins.values()) > SUBQUERY_SECONDS, "a step of each subquery")
            ends, severities = wait_until(lambda: _ends(every, agent.url), "scrapes between two judgements")
            watches = {
                kind: Watch(every[kind], begins[kind] - MARGIN_SECONDS, ends[kind] + MARGIN_SECONDS)
                for kind in kinds
            }
            yield Watched(watches, before, after, seen, severities)
