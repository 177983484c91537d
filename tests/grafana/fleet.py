"""A made-up fleet: what Prometheus would have scraped of many agents, as OpenMetrics text.

Figures are plausible and steady, so that every panel has something to draw, and are the same in each
run. What they say is checked elsewhere, with real agents; here it is about how pages look and how long
they take."""

import random
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Mapping, Sequence, TextIO

from harness.dashboards import METRICS
from harness.observatory import Observatory, archive

JOB = "tlsprof"
MINUTE = 60
CPU_BUCKETS = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01)
WALL_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5)
TURN_BUCKETS = (1, 2, 3, 5, 10, 20, 50, 100, 200)

Labels = Mapping[str, Any]


@dataclass(frozen=True)
class Host:
    """`load_tests` are their begins and ends, in seconds before now; after the first, CPU per request falls.
    `recorded`: there are the series of the recording rules that dashboards read."""

    name: str
    services: tuple["Service", ...]
    up: bool = True
    load_tests: tuple[tuple[int, int], ...] = ()
    recorded: bool = True


@dataclass(frozen=True)
class Service:
    """A server: handshakes a second, how many of ten are resumed, CPU cores, seconds of CPU for a full one."""

    name: str
    rate: float
    resumed: float = 0.4
    cores: float = 0.3
    full: float = 0.0015
    group: str = "x25519"
    signature: str = "rsa_2048"
    client_rate: float = 0.0
    finding: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Series:
    """One series: where it starts, and what it gains a second; a gauge gains nothing."""

    name: str
    labels: Labels
    start: float
    slope: float

    @property
    def is_cpu(self) -> bool:
        ends = ("cpu_seconds_total", "cpu_seconds_sum", "tlsprof_cpu:rate5m", "cpu_seconds:mean5m")
        return "service_name" in self.labels and self.name.endswith(ends)

    @property
    def family(self) -> str:
        """The same for all series of a histogram: they gain together."""
        labels = {name: value for name, value in self.labels.items() if name != "le"}
        return f"{re.sub('_(bucket|sum|count)$', '', self.name)}{labels}"


def _counter(name: str, labels: Labels, slope: float) -> Series:
    return Series(name, labels, 0.0, slope)


def _gauge(name: str, labels: Labels, value: float) -> Series:
    return Series(name, labels, value, 0.0)


def _histogram(
    name: str, labels: Labels, rate: float, mean: float, bounds: Sequence[float]
) -> Iterator[Series]:
    """A classic histogram whose values spread around the mean."""
    shares = [min(1.0, max(0.0, 0.5 + (bound - mean) / (1.5 * mean))) for bound in bounds]
    for bound, share in zip((*bounds, "+Inf"), (*shares, 1.0)):
        yield _counter(f"{name}_bucket", {**labels, "le": bound}, rate * share)
    yield _counter(f"{name}_sum", labels, rate * mean)
    yield _counter(f"{name}_count", labels, rate)


def _cpu(service: Service, own: Labels) -> Iterator[Series]:
    handshakes = min(0.9 * service.cores, service.rate * service.full)
    shares = {
        "handshake": handshakes / service.cores,
        "encryption": 0.05,
        "tcp_open": 0.02,
        "tcp_close": 0.01,
        "socket_io": 0.06,
    }
    shares["application"] = max(0.0, 1.0 - sum(shares.values()))
    for mode, part in (("user", 0.7), ("system", 0.3)):
        yield _counter("tlsprof_service_cpu_seconds_total", {**own, "mode": mode}, service.cores * part)
        for activity, share in shares.items():
            labels = {**own, "activity": activity, "mode": mode}
            yield _counter("tlsprof_cpu_seconds_total", labels, service.cores * share * part)
            yield _counter("tlsprof_cpu_samples_total", labels, 99 * service.cores * share * part)
    softirq = {**own, "activity": "socket_io", "mode": "softirq"}
    yield _counter("tlsprof_cpu_seconds_total", softirq, service.cores * 0.02)
    yield _counter("tlsprof_cpu_samples_unclassified_total", own, service.cores)
    yield _gauge("tlsprof_cpu_reconciliation_error_ratio", own, 0.01)
    yield _gauge("tlsprof_cpu_sampled_ratio", own, 0.99)
    for outcome, share in (("completed", 0.98), ("failed", 0.01), ("abandoned", 0.01)):
        labels = {**own, "role": "server", "outcome": outcome}
        yield _counter("tlsprof_handshake_outcome_cpu_seconds_total", labels, handshakes * share)


def _handshakes(service: Service, own: Labels, role: str, rate: float) -> Iterator[Series]:
    ours = {**own, "role": role}
    kinds = (("none", service.signature, 1 - service.resumed), ("psk", "none", service.resumed))
    for resumption, signature, share in kinds:
        labels = {
            **ours,
            "version": "TLS1.3",
            "cipher": "TLS_AES_256_GCM_SHA384",
            "group": service.group,
            "signature": signature,
            "resumption": resumption,
            "outcome": "completed",
        }
        yield _counter("tlsprof_handshakes_total", labels, rate * share)
        kind = {**ours, "resumption": resumption}
        cost = service.full * (1.0 if resumption == "none" else 0.3)
        yield from _histogram("tlsprof_handshake_cpu_seconds", kind, rate * share, cost, CPU_BUCKETS)
        yield from _histogram("tlsprof_handshake_duration_seconds", kind, rate * share, 0.02, WALL_BUCKETS)
    failed = {**ours, "version": "unknown", "cipher": "unknown", "group": "unknown", "signature": "unknown"}
    for outcome, share in (("failed", 0.01), ("abandoned", 0.005)):
        labels = {**failed, "resumption": "unknown", "outcome": outcome}
        yield _counter("tlsprof_handshakes_total", labels, rate * share)
    for step, share in (("key_exchange", 0.2), ("signing", 0.4), ("key_derivation", 0.1), ("other", 0.3)):
        labels = {**ours, "step": step}
        yield _counter("tlsprof_handshake_step_cpu_seconds_total", labels, rate * service.full * share)
    yield _counter("tlsprof_handshakes_by_source_total", {**ours, "source": "library"}, rate)
    yield _counter("tlsprof_hellos_total", ours, rate)
    for group, share in (("secp384r1", 0.3), ("x25519", 1.0)):
        yield _counter("tlsprof_offered_groups_total", {**ours, "group": group}, rate * share)
    for version, share in (("TLS1.3", 0.97), ("TLS1.2", 1.0)):
        yield _counter("tlsprof_offered_versions_total", {**ours, "version": version}, rate * share)
    for feature, share in (("server_name", 0.99), ("post_quantum", 0.4)):
        yield _counter("tlsprof_hello_features_total", {**ours, "feature": feature}, rate * share)
    for attempt, share in (("accepted", service.resumed), ("refused", 0.03), ("not_offered", 0.4)):
        labels = {**ours, "means": "psk", "attempt": attempt}
        yield _counter("tlsprof_resumption_attempts_total", labels, rate * share)
    for source in ("library", "socket"):
        labels = {**ours, "source": source}
        yield _counter("tlsprof_agreement_cpu_seconds_total", labels, rate * service.full)
    yield _counter("tlsprof_handshakes_offloaded_total", ours, 0.0)
    alert = {**own, "direction": "received", "description": "unknown_ca"}
    if role == "server":
        yield _counter("tlsprof_alerts_total", alert, rate * 0.01)
        for step, share in (("key_exchange", 0.15), ("signing", 0.35), ("other", 0.5)):
            sampled = rate * service.full * share
            yield _counter("tlsprof_handshake_step_sampled_cpu_seconds_total", {**own, "step": step}, sampled)
        for step, probed, sampled in (("key_exchange", 0.2, 0.18), ("signing", 0.4, 0.38), ("other", 0.4, 0.44)):
            for source, share in (("library", probed), ("samples", sampled)):
                labels = {**own, "step": step, "source": source}
                name = "tlsprof_agreement_step_cpu_seconds_total"
                yield _counter(name, labels, rate * service.full * share)
        for reason, share in (("between_calls", 0.01), ("run_queue", 0.0005)):
            yield _counter("tlsprof_handshake_wait_seconds_total", {**own, "reason": reason}, rate * share)


def _connections(service: Service, own: Labels) -> Iterator[Series]:
    ours = {**own, "role": "server"}
    rate = service.rate
    yield _counter("tlsprof_connections_opened_total", ours, rate)
    for who, share in (("local", 0.3), ("remote", 0.7)):
        labels = {**ours, "closed_by": who}
        yield _counter("tlsprof_connections_closed_total", labels, rate * share)
        yield _counter("tlsprof_connections_reset_total", labels, rate * share * 0.02)
    for direction, size in (("received", 900), ("sent", 14000)):
        labels = {**ours, "direction": direction}
        yield _counter("tlsprof_connection_bytes_total", labels, rate * size)
    yield from _histogram("tlsprof_connection_turns", ours, rate, 6.0, TURN_BUCKETS)
    yield from _histogram("tlsprof_connection_duration_seconds", ours, rate, 0.4, WALL_BUCKETS)
    yield _counter("tlsprof_time_wait_created_total", ours, rate * 0.3)
    yield _gauge("tlsprof_time_wait_sockets", ours, rate * 18)
    yield _gauge("tlsprof_ephemeral_ports_used_ratio", own, 0.02)
    yield _gauge("tlsprof_accept_queue_length", own, 0)
    yield _gauge("tlsprof_accept_queue_limit", own, 511)
    yield _counter("tlsprof_listen_overflows_total", own, 0.0)
    yield from _histogram("tlsprof_accept_wait_seconds", own, rate, 0.0008, (0.0001, 0.001, 0.01))


def _recorded(service: Service, own: Labels) -> Iterator[Series]:
    """What the rules would make of it, but for the change after a load test."""
    yield _gauge("service:tlsprof_cpu:rate5m", own, service.cores)
    spent = min(0.9 * service.cores, service.rate * service.full)
    yield _gauge("service:tlsprof_handshake_cpu:ratio_rate5m", own, spent / service.cores)
    for role, rate in (("server", service.rate), ("client", service.client_rate)):
        ours = {**own, "role": role}
        if not rate:
            continue
        yield _gauge("service_role:tlsprof_handshakes:rate5m", ours, rate)
        yield _gauge("service_role:tlsprof_handshakes_failed:ratio_rate5m", ours, 0.01)
        for kind, share, cost in (("none", 1 - service.resumed, 1.0), ("psk", service.resumed, 0.3)):
            each = {**ours, "resumption": kind}
            name = "service_role_resumption:tlsprof_handshakes_completed:rate5m"
            yield _gauge(name, each, rate * share)
            name = "service_role_resumption:tlsprof_handshake_cpu_seconds:mean5m"
            yield _gauge(name, each, service.full * cost)
        if role == "server":
            yield _gauge("service_role:tlsprof_connection_turns:mean5m", ours, 6.0)


def _of_service(service: Service, host: Labels) -> Iterator[Series]:
    own = {**host, "service_name": service.name}
    yield from _cpu(service, own)
    if service.rate:
        yield from _handshakes(service, own, "server", service.rate)
        yield from _connections(service, own)
    if service.client_rate:
        client = {**own, "role": "client"}
        yield _counter("tlsprof_connections_opened_total", client, service.client_rate)
        yield from _handshakes(service, own, "client", service.client_rate)
    finding, severity = service.finding
    if finding:
        labels = {**own, "role": "server", "finding": finding, "severity": severity}
        yield _gauge("tlsprof_finding", labels, 1)


def _of_agent(host: Host, labels: Labels) -> Iterator[Series]:
    cores = sum(service.cores for service in host.services)
    yield _gauge("tlsprof_build_info", {**labels, "version": "0.1.0"}, 1)
    for capability, state in (("library_probes", "available"), ("accept_wait", "unavailable")):
        for each in ("available", "degraded", "unavailable"):
            states = {**labels, "capability": capability, "state": each}
            yield _gauge("tlsprof_agent_capability", states, float(each == state))
    yield _gauge("tlsprof_agent_services", labels, len(host.services))
    yield _gauge("tlsprof_agent_profiled_images", labels, 3)
    yield _gauge("tlsprof_agent_step_probes_duty_ratio", labels, 0.05)
    yield _gauge("tlsprof_agent_library_probes_duty_ratio", labels, 1)
    yield _gauge("tlsprof_agent_socket_calls_duty_ratio", labels, 1)
    yield _gauge("tlsprof_agent_resident_memory_bytes", labels, 30e6)
    yield _gauge("tlsprof_cpu_sample_period_seconds", labels, 0.01)
    yield _counter("tlsprof_agent_cpu_seconds_total", labels, 0.01)
    yield _counter("tlsprof_agent_bpf_run_seconds_total", labels, 0.004)
    yield _counter("tlsprof_agent_bpf_runs_total", labels, 9000)
    yield _counter("tlsprof_agent_probe_hits_total", labels, 2000)
    yield _counter("tlsprof_agent_target_cost_seconds_total", labels, cores * 0.008)
    yield _counter("tlsprof_agent_events_lost_total", {**labels, "reason": "event_ring_full"}, 0.0)


DOWN = {"alertname": "TlsprofAgentDown", "severity": "warning"}
"""The alert on a host that is down; the rules need longer for it than tests take."""


def series(host: Host) -> Iterator[Series]:
    """All series of a host, with the labels that a scrape adds."""
    labels = {"job": JOB, "instance": host.name}
    yield _gauge("up", labels, float(host.up))
    yield _gauge("scrape_duration_seconds", labels, 0.02)
    if not host.up:
        yield _gauge("ALERTS", {**labels, **DOWN, "alertstate": "firing"}, 1)
    if host.up:
        yield from _of_agent(host, labels)
        for service in host.services:
            yield from _of_service(service, labels)
            if host.recorded:
                yield from _recorded(service, {**labels, "service_name": service.name})
        yield _gauge("scrape_samples_scraped", labels, 400)


CHEAPER = 0.7
"""How much CPU time the same takes after the first load test, as a share."""


def _of_load_tests(tests: Sequence[tuple[int, int]], labels: Labels, now: int, at: int) -> Iterator[str]:
    """What the agent says of load tests at a time."""
    begun = [now - begin for begin, _ in tests if now - begin <= at]
    running = any(now - begin <= at < now - end for begin, end in tests)
    yield _line(_gauge("tlsprof_report_running", labels, 0), at, float(running))
    if begun:
        yield _line(_gauge("tlsprof_report_start_time_seconds", labels, 0), at, float(max(begun)))


def _line(one: Series, at: int, value: float) -> str:
    labels = ",".join(f'{name}="{value}"' for name, value in one.labels.items())
    return f"{one.name}{{{labels}}} {value:.6f} {at}\n"


def write(hosts: Sequence[Host], now: int, minutes: int, interval: int, output: TextIO) -> int:
    """Writes OpenMetrics text for `promtool tsdb create-blocks-from openmetrics`, of so many minutes before and
    after now, in seconds since 1970; returns how many series."""
    begin, end = now - minutes * MINUTE, now + minutes * MINUTE
    changed = now - max((ended for host in hosts for _, ended in host.load_tests), default=0)
    every = sorted((one for host in hosts for one in series(host)), key=lambda one: one.name)
    for one in every:
        chance = random.Random(one.family)
        gained = one.slope * 1000
        for at in range(begin, end + 1, interval):
            share = CHEAPER if one.is_cpu and changed < at and changed != now else 1.0
            output.write(_line(one, at, one.start * share + gained))
            gained += one.slope * interval * chance.uniform(0.9, 1.1) * share
    for name in ("tlsprof_report_running", "tlsprof_report_start_time_seconds"):
        for host in hosts:
            labels = {"job": JOB, "instance": host.name}
            for at in range(begin, end + 1, interval):
                lines = _of_load_tests(host.load_tests, labels, now, at)
                output.writelines(line for line in lines if line.startswith(name))
    output.write("# EOF\n")
    return len(every)


def unknown() -> list[str]:
    """Names in this fleet that no agent has."""
    host = Host("here", (Service("server", 1.0, client_rate=1.0, finding=("a", "b")),))
    names = {one.name for one in series(host) if one.name.startswith("tlsprof_")}
    suffixes = ("", "_bucket", "_sum", "_count")
    known = {name + suffix for name in METRICS for suffix in suffixes}
    return sorted(names - known)


SLOW = ("slow-key-exchange", "high")
SMALL = (
    Host(
        "web-1:9843",
        (
            Service("edge-nginx", 110, 0.3, 0.4, 0.0025, "secp384r1", client_rate=15, finding=SLOW),
            Service("shop-api", 15, 0.1, 0.08, 0.001, finding=("connections-closed-after-n-turns", "medium")),
            Service("postgresql", 0, cores=0.05),
            Service("backup", 0, cores=0.002, client_rate=0.02),
        ),
        load_tests=((25 * MINUTE, 20 * MINUTE), (10 * MINUTE, 5 * MINUTE)),
    ),
    Host(
        "web-2:9843",
        (
            Service("edge-nginx", 95, 0.3, 0.35, 0.0024, "secp384r1", client_rate=12, finding=SLOW),
            Service("node", 40, 0.5, 0.2, 0.002, finding=("costly-certificate", "low")),
        ),
        recorded=False,
    ),
    Host("web-3:9843", (), up=False),
)
BUSIEST = "edge-nginx"
"""The service of `SMALL` with the most handshakes."""


def large(hosts: int, services: int, on_each: int) -> list[Host]:
    """So many hosts, on which so many services run, some on each host."""
    every = [
        Service(f"service-{number:03}", rate=5 + number % 40, cores=0.05 + number % 7 / 20)
        for number in range(services)
    ]
    return [
        Host(f"host-{number:02}:9843", tuple(every[(number * on_each + at) % services] for at in range(on_each)))
        for number in range(hosts)
    ]


@contextmanager
def in_prometheus(
    folder: Path, hosts: Sequence[Host], interval: int, minutes: int
) -> Iterator[Observatory]:
    """A Prometheus with the last `minutes` of a fleet and, for what is asked and evaluated meanwhile, as many
    to come."""
    now = int(time.time())
    text = folder / "fleet.om"
    with open(text, "w") as output:
        write(hosts, now, minutes, interval, output)
    with archive(folder / "prometheus", text) as found:
        yield found
