"""Figures that several dashboards show, each defined once. All take a `Source` and the labels to
keep apart."""

from typing import Callable

from .queries import Source, or_zero, ratio, total

HANDSHAKES = "tlsprof_handshakes_total"
HANDSHAKE_CPU = "tlsprof_handshake_cpu_seconds"
OUTCOME_CPU = "tlsprof_handshake_outcome_cpu_seconds_total"
STEP_CPU = "tlsprof_handshake_step_cpu_seconds_total"
SERVICE_CPU = "tlsprof_service_cpu_seconds_total"
ACTIVITY_CPU = "tlsprof_cpu_seconds_total"
TURNS = "tlsprof_connection_turns"
TARGET_COST = "tlsprof_agent_target_cost_seconds_total"
LOST = "tlsprof_agent_events_lost_total"

RECORDED_CPU = "service:tlsprof_cpu:rate5m"
RECORDED_COMPLETED = "service_role_resumption:tlsprof_handshakes_completed:rate5m"
RECORDED_COST = "service_role_resumption:tlsprof_handshake_cpu_seconds:mean5m"
RECORDED_HANDSHAKES = "service_role:tlsprof_handshakes:rate5m"
RECORDED_FAILED = "service_role:tlsprof_handshakes_failed:ratio_rate5m"

SERVER = 'role="server"'
CLIENT = 'role="client"'
OF_PROCESSES = 'mode!="softirq"'
"""Of CPU time by activity: what the kernel accounts to the service. Softirqs are in no sum."""
COMPLETED = 'outcome="completed"'
RESUMED = 'resumption!~"none|unknown"'
KNOWN = 'resumption!="unknown"'
PARAMETERS = ("version", "cipher", "group", "signature", "outcome")
"""Labels of handshakes that recorded series do not have."""
HARMLESS = ("began_before_attach", "hello_gap", "hello_table_full", "mapping_record_lost")
"""Losses that do not affect counts. The alert TlsprofLosesData leaves out `hello_not_followed` as well, up to 1% of the connections."""
FALSIFIES_COUNTS = f'reason!~"{"|".join(HARMLESS)}"'


def cpu(source: Source, *by: str) -> str:
    """CPU seconds a second, which is cores, as the kernel accounts them."""
    cores = source.recorded_or(
        lambda it: it.average(RECORDED_CPU),
        lambda it: it.rate(SERVICE_CPU),
        "mode",
    )
    return total(cores, *by)


def handshake_cpu(source: Source, *by: str) -> str:
    """Cores in handshakes of both roles, completed or not: the histogram's sum for those that completed,
    and the others. It does not depend on the step probes."""
    cores = source.recorded_or(
        lambda it: f"{it.average('service:tlsprof_handshake_cpu:ratio_rate5m')} * {it.average(RECORDED_CPU)}",
        lambda it: it.rate(OUTCOME_CPU),
        "role",
        "outcome",
    )
    return total(cores, *by)


def handshake_share(source: Source, *by: str) -> str:
    """Share of CPU time in handshakes."""
    return ratio(handshake_cpu(source, *by), cpu(source, *by))


def activity_share(source: Source, activities: str, *by: str) -> str:
    """Share of CPU time in activities (a regular expression), from the CPU ledger."""
    part = total(source.rate(ACTIVITY_CPU, OF_PROCESSES, f'activity=~"{activities}"'), *by)
    return ratio(part, total(source.rate(ACTIVITY_CPU, OF_PROCESSES), *by))


def by_activity(source: Source) -> list[str]:
    """Cores by activity; they add up to the kernel's accounting. Two expressions: application comes last, so
    that the others are stacked from zero."""
    matchers = ('activity!="application"', 'activity="application"')
    return [total(source.rate(ACTIVITY_CPU, OF_PROCESSES, matcher), "activity") for matcher in matchers]


def of_last_minute(hosts: Source, check: str, *by: str) -> str:
    """A check of CPU accounts (a gauge by service) for a host as a whole: weighted by CPU time, so
    that services with a handful of samples do not tell."""
    each = ("cluster", "job", "instance", "service_name")
    spent, checks = cpu(hosts, *each), hosts.value(check)
    weighted = total(f"{checks} * on ({', '.join(each)}) {spent}", *by)
    return ratio(weighted, total(f"{spent} and on ({', '.join(each)}) {checks}", *by))


def with_tls(expression: str, source: Source, *by: str) -> str:
    """Only what has made a TLS handshake: hundreds of programs on a host have none."""
    made = source.recorded_or(
        lambda it: it.average(RECORDED_HANDSHAKES),
        lambda it: it.value(HANDSHAKES),
        "resumption",
        *PARAMETERS,
    )
    return f"{expression} and on ({', '.join(by)}) {total(made, *by)}"


def of_the_busiest(expression: str, source: Source, most: int = 10) -> str:
    """Only services with the most CPU time in handshakes over the whole selected time: the same ones on
    each panel and at each point, and none with a handshake a minute, whose mean says nothing."""
    spent = handshake_cpu(source.over_all(), "service_name")
    return f"{expression} and on (service_name) topk({most}, {spent} > 0)"


def worst(formula: Callable[..., str], source: Source, pick: str = "topk") -> str:
    """The service with the largest value of those that spend most on handshakes, or with `bottomk` the
    smallest."""
    return f"{pick}(1, {of_the_busiest(formula(source, 'service_name'), source)})"


def largest(formula: Callable[[Source], str], source: Source, *by: str, most: int = 10) -> str:
    """Only the largest over the whole selected time, the same ones at each point."""
    return f"({formula(source)}) and on ({', '.join(by)}) topk({most}, {formula(source.over_all())})"


def change(now: str, before: str) -> str:
    """What came to it since, as a share of what was before."""
    return f"({now}) / (({before}) > 0) - 1"


def handshakes(source: Source, *by: str, role: str = SERVER) -> str:
    """Completed handshakes a second. A proxy's own handshakes with what stands behind it are those
    of the role client."""
    return total(_completed(source, role), *by)


def _completed(source: Source, *matchers: str) -> str:
    return source.recorded_or(
        lambda it: it.average(RECORDED_COMPLETED, *matchers),
        lambda it: it.histogram_count(HANDSHAKE_CPU, *matchers),
    )


def handshake_cost(source: Source, *by: str, role: str = SERVER) -> str:
    """Mean CPU seconds of a completed handshake."""
    spent = source.recorded_or(
        lambda it: f"{it.average(RECORDED_COST, role)} * {it.average(RECORDED_COMPLETED, role)}",
        lambda it: it.histogram_sum(HANDSHAKE_CPU, role),
    )
    count = source.recorded_or(
        lambda it: it.average(RECORDED_COMPLETED, role),
        lambda it: it.histogram_count(HANDSHAKE_CPU, role),
    )
    return ratio(total(spent, *by), total(count, *by))


def resumed_share(source: Source, *by: str, role: str = SERVER) -> str:
    """Share of the completed handshakes that took up an earlier session, of those of which it is known."""
    resumed = total(_completed(source, role, RESUMED), *by)
    known = total(_completed(source, role, KNOWN), *by)
    return ratio(f"({or_zero(resumed, known)})", known)


def refused_share(source: Source, *by: str) -> str:
    """Share of the ClientHellos whose session the server did not take up."""
    refused = total(source.rate("tlsprof_resumption_attempts_total", SERVER, 'attempt="refused"'), *by)
    everything = total(source.rate("tlsprof_hellos_total", SERVER), *by)
    return ratio(f"({or_zero(refused, everything)})", everything)


def failed_share(source: Source, *by: str) -> str:
    """Share of the handshakes of servers that an error or a fatal alert ended."""
    failed = source.recorded_or(
        lambda it: f"{it.average(RECORDED_FAILED, SERVER)} * {it.average(RECORDED_HANDSHAKES, SERVER)}",
        lambda it: it.rate(HANDSHAKES, SERVER, 'outcome="failed"'),
        "resumption",
        *PARAMETERS,
    )
    every = source.recorded_or(
        lambda it: it.average(RECORDED_HANDSHAKES, SERVER),
        lambda it: it.rate(HANDSHAKES, SERVER),
        "resumption",
        *PARAMETERS,
    )
    failed, everything = total(failed, *by), total(every, *by)
    return ratio(f"({or_zero(failed, everything)})", everything)


def requests(source: Source, *by: str) -> str:
    """Requests answered a second: turns of the connections that ended."""
    return total(source.histogram_sum(TURNS, SERVER), *by)


def turns(source: Source, *by: str) -> str:
    """Mean requests on a connection of a server, of the connections that ended."""
    return ratio(requests(source, *by), total(source.histogram_count(TURNS, SERVER), *by))


def turns_by_host(source: Source, *by: str) -> str:
    """The same for each service of each host; `by` are their labels. Recorded means have no sum."""
    each = source.recorded_or(
        lambda it: it.average("service_role:tlsprof_connection_turns:mean5m", SERVER),
        lambda it: ratio(it.histogram_sum(TURNS, SERVER), it.histogram_count(TURNS, SERVER)),
    )
    return f"max by ({', '.join(by)}) ({each})"


TURN_CLASSES = {"1": (1, 1.2), "2 to 5": (5, 5.4), "6 to 20": (20, 20.75), "21 to 100": (100, 107.6)}
"""Requests on a connection: the upper bounds of classes, of a classic bucket and in a native histogram, whose
buckets end elsewhere: there, no whole number lies between both, up to 20."""


def turns_shares(source: Source) -> dict[str, str]:
    """Shares of the connections of servers that ended, by their number of requests."""
    native, count = total(source.rate(TURNS, SERVER)), total(source.rate(f"{TURNS}_count", SERVER))
    upto = []
    for classic, bound in TURN_CLASSES.values():
        # Prometheus writes 1 or 1.0, depending on its version and on the format of the scrape.
        bucket = total(source.rate(f"{TURNS}_bucket", SERVER, f'le=~"{classic}(\\\\.0)?"'))
        upto.append(f"(histogram_fraction(0, {bound:g}, {native}) >= 0 or {ratio(bucket, count)})")
    less = ["0", *upto]
    shares = {name: f"clamp_min({upto[at]} - {less[at]}, 0)" for at, name in enumerate(TURN_CLASSES)}
    return {**shares, "more": f"clamp_min(1 - {upto[-1]}, 0)"}


def cpu_per_request(source: Source, *by: str) -> str:
    """CPU seconds of the service for each request."""
    return ratio(cpu(source, *by), requests(source, *by))


def step_probes_duty(hosts: Source) -> str:
    """Share of the time in which the step probes are attached, on the host where it is least."""
    return f"min({hosts.value('tlsprof_agent_step_probes_duty_ratio')})"


def agents_down(hosts: Source) -> str:
    """How many agents the last scrape did not reach; the labels `up` and `all` say how many it did, and of how
    many."""
    up = hosts.value("up")
    counts = f'count_values("up", sum({up})) * on () group_left (all) count_values("all", count({up}))'
    return f"{counts} * scalar(count({up}) - sum({up}))"


def lost(hosts: Source, *by: str) -> str:
    """What agents lost a second, without what leaves counts whole."""
    return total(hosts.rate(LOST, FALSIFIES_COUNTS), *by)


def target_cost_share(hosts: Source, *by: str) -> str:
    """Estimated share of the services' CPU time that profiling takes. An agent knows its cost for
    the whole host only, so that all services of the host are the whole."""
    return ratio(total(hosts.rate(TARGET_COST), *by), cpu(hosts, *by))
