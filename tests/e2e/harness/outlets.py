"""What each outlet says about a service, in the same words."""

import json
import re
import urllib.request
from collections import Counter
from dataclasses import dataclass
from typing import Any, Optional

from . import metrics
from .metrics import Sample
from .profiler import Agent, Service

HANDSHAKES = "tlsprof_handshakes_total"
SERVICE_CPU = "tlsprof_service_cpu_seconds_total"
ACTIVITIES = "tlsprof_cpu_seconds_total"
SAMPLES = "tlsprof_cpu_samples_total"
SHARES = {
    "steps": "tlsprof_handshake_step_cpu_seconds_total",
    "outcomes": "tlsprof_handshake_outcome_cpu_seconds_total",
    "histogram": "tlsprof_handshake_cpu_seconds_sum",
}

UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
IN_TEXT = re.compile(r"([\d,]+) handshakes \(([\d,.]+)/s\): ([\d,]+) completed, ([\d,]+) failed, ([\d,]+) abandoned")


@dataclass(frozen=True)
class Figures:
    """Of a service as a server."""

    handshakes: int
    completed: int
    cpu: float
    handshake_cpu: float

    @property
    def share(self) -> float:
        return self.handshake_cpu / self.cpu


def in_metrics(samples: list[Sample], name: str) -> Figures:
    ours = dict(service_name=name, role="server")
    return Figures(
        int(metrics.total(samples, HANDSHAKES, **ours)),
        int(metrics.total(samples, HANDSHAKES, outcome="completed", **ours)),
        metrics.total(samples, SERVICE_CPU, service_name=name),
        metrics.total(samples, SHARES["outcomes"], **ours),
    )


def shares_in_metrics(samples: list[Sample], name: str) -> dict[str, float]:
    """Handshakes' share of the service's CPU time, by each way to know it."""
    cpu = metrics.total(samples, SERVICE_CPU, service_name=name)
    return {way: metrics.total(samples, metric, service_name=name) / cpu for way, metric in SHARES.items()}


def by_samples(samples: list[Sample], metric: str, name: str) -> Counter[str]:
    """CPU time, or samples, of the service by activity."""
    found: Counter[str] = Counter()
    for one in samples:
        if one.name == metric and one.labels["service_name"] == name and one.labels["mode"] != "softirq":
            found[one.labels["activity"]] += one.value
    return found


def live_state(agent: Agent, name: str) -> dict[str, Any]:
    url = agent.url.removesuffix("metrics") + f"api/v1/state?service={name}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def in_live_page(state: dict[str, Any]) -> Figures:
    columns = (state["selected"]["series"] or {"columns": {}})["columns"]
    total = lambda begin: sum(sum(values) for name, values in columns.items() if name.startswith(begin))
    return Figures(
        round(total("handshakes/server/")),
        round(total("handshakes/server/completed/")),
        total("cpu/"),
        total("handshake_cpu/server"),
    )


def in_report(service: Service) -> Figures:
    return Figures(
        service.count(role="server"),
        service.count(role="server", outcome="completed"),
        sum(service.data["cpu_seconds"].values()),
        service.cpu_seconds(role="server"),
    )


def seconds(text: str) -> float:
    """`1.23 ms` as people read it."""
    number, _, unit = text.replace(",", "").partition(" ")
    return float(number) * UNITS[unit or "s"]


@dataclass(frozen=True)
class Row:
    """Of a service in the table of a report as text."""

    cpu: float
    handshakes: int
    handshake_cpu: float
    share: float


def row_of(report: str, name: str) -> Row:
    number = r"([\d,.]+ \w+|0)"
    row = re.search(rf"^ +{re.escape(name)} +{number} +([\d,]+) +{number} +([\d.]+)%", report, re.M)
    assert row, report
    cpu, handshakes, handshake_cpu, share = row.groups()
    return Row(seconds(cpu), int(handshakes.replace(",", "")), seconds(handshake_cpu), float(share) / 100)


@dataclass(frozen=True)
class Now:
    """A row of the list of `top`."""

    cores: float
    tls: Optional[float]
    """Share of TLS in its CPU time, where samples are taken."""
    per_second: float


def now_of(screen: str, name: str) -> Now:
    # With its ports where there is room.
    row = re.search(rf"^ +{re.escape(name)}(?: :\d+)* +([\d.]+) +(?:([\d.]+)%|\S) +([\d.,]+) ", screen, re.M)
    assert row, screen
    cores, tls, per_second = row.groups()
    return Now(float(cores), float(tls) / 100 if tls else None, float(per_second.replace(",", "")))


def elapsed_of(screen: str) -> int:
    """Whole seconds that `top` has profiled when it drew this."""
    clock = re.search(r" (?:(\d+):)?(\d\d):(\d\d) · every ", screen)
    assert clock, screen
    hours, minutes, rest = (int(number or 0) for number in clock.groups())
    return (hours * 60 + minutes) * 60 + rest
