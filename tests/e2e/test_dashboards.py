"""Every query of every dashboard and rule, on a real Prometheus that scrapes a real agent while a
real nginx is under load: none is refused, none is empty without a reason, and what they say is what
the clients counted and the agent's own metrics add up to."""

import math
import re
from typing import Iterator

import pytest

from harness import metrics
from harness.dashboards import Query, boards, queries
from harness.today import of_today
from harness.waiting import wait_until
from harness.watched import FINDING, HANDSHAKES, KINDS, KINDS_TODAY, SERVICE, Watched, watch

ALL_KINDS = (*KINDS, *map(of_today, KINDS_TODAY))
TOLERANCE = 0.05

EMPTY = {
    "tlsprof-connections / Ephemeral ports": "nginx connects nowhere",
    "tlsprof-connections / Outgoing connections": "nginx connects nowhere",
    "tlsprof-service / Features of ClientHellos": "these clients send no server name",
    "tlsprof-service / Handshakes as client": "nginx connects nowhere",
    "tlsprof-service / CPU per handshake as client": "nginx connects nowhere",
    "tlsprof-service / Resumed as client": "nginx connects nowhere",
    "tlsprof-overview / Firing alerts": "nothing is wrong for as long as alerts want",
    "tlsprof-service / Firing alerts": "nothing is wrong for as long as alerts want",
}
"""Queries that give nothing under this load, by the begin of their name, and why."""

OF_THE_HOST = {
    "tlsprof-load-test / Load tests": "other tests run some beside this one",
}
"""Queries that may well give something, and not of this load."""

NEEDS = {
    "tlsprof-connections / Accept wait": "accept_wait",
}
"""Queries that give something only with a capability of the host."""

QUIET_RULES = {
    "instance:tlsprof_agent_target_cost:ratio_rate5m": "wants a twentieth of a core over 5 minutes",
    "TlsprofAgentDown": "the agent is up",
    "TlsprofLosesData": "nothing is lost",
    "TlsprofTimeWaitPilesUp": "hundreds of sockets, not 20,000",
    "TlsprofEphemeralPortsRunOut": "the load takes few of the ports",
    "TlsprofHandshakeCostRose": "there is no past day",
    "TlsprofResumptionCollapsed": "there is no past day",
    "TlsprofSlowKeyExchange": "X25519 is chosen",
    "TlsprofSlowSignature": "the key is RSA-2048",
    "TlsprofAcceptQueueOverflows": "no queue is full",
    "TlsprofOverBudget": "depends on the machine",
    "TlsprofHandshakeCpuShareHigh": "depends on the machine",
    "TlsprofHandshakeFailures": "depends on what lies in the last 5 minutes",
    "TlsprofFewTurnsPerConnection": "depends on who closes first",
}
"""Rules whose expressions may well be empty here; promtool's tests show them with data."""


@pytest.fixture(scope="module")
def watched(rsa, tmp_path_factory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("observatory")
    folder.chmod(0o755)
    with watch(folder, rsa) as found:
        yield found


LACKING = "tlsprof-agent-health / Missing capabilities"


def _unavailable(watched: Watched) -> set[str]:
    """Queries for which this host lacks the capability; and the list of what it lacks, where it lacks none."""
    works = lambda name: metrics.total(
        watched.after, "tlsprof_agent_capability", capability=name, state="available"
    )
    lacks = any(
        metrics.total(watched.after, "tlsprof_agent_capability", state=state) for state in ("degraded", "unavailable")
    )
    nothing = set() if lacks else {LACKING}
    return nothing | {query for query, capability in NEEDS.items() if not works(capability)}


def _empty_for_a_reason(query: Query, watched: Watched) -> bool:
    reasons = EMPTY.keys() | OF_THE_HOST.keys() | _unavailable(watched)
    return any(str(query).startswith(name) for name in reasons)


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("uid", boards())
def test_every_panel_has_data(watched, kind, uid):
    empty, nonsense = [], []
    for query in queries(boards()[uid]):
        result = watched.by[kind].ask(query)
        if not result and not _empty_for_a_reason(query, watched):
            empty.append(str(query))
        numbers = [series.value for series in result if isinstance(series.value, float)]
        # A change may be a fall.
        least = -1 if query.expression.endswith("- 1") else 0
        if any(math.isnan(value) or math.isinf(value) or value < least for value in numbers):
            nonsense.append(f"{query}: {result}")
    assert (empty, nonsense) == ([], [])


def _queries_by(name: str) -> list[Query]:
    found = [query for board in boards().values() for query in queries(board) if str(query).startswith(name)]
    assert found, "no such query: take it off the list"
    return found


@pytest.mark.parametrize("name", OF_THE_HOST)
def test_what_depends_on_other_tests_is_a_query(name):
    _queries_by(name)


@pytest.mark.parametrize("name", [*EMPTY, *NEEDS])
def test_what_is_expected_to_be_empty_is(watched, name):
    if name in NEEDS and name not in _unavailable(watched):
        pytest.skip(f"this host has {NEEDS[name]}")
    for query in _queries_by(name):
        assert watched.by["native"].ask(query) == []


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_rule_is_evaluated(watched, kind):
    watch = watched.by[kind]

    def evaluated() -> list[dict]:
        rules = watch.prometheus.rules()
        return rules if all(rule["health"] != "unknown" for rule in rules) else []

    for rule in wait_until(evaluated, "an evaluation of every rule"):
        assert rule["health"] == "ok", rule
        query = rule["query"]
        found = watch.prometheus.query(query, watch.end)
        assert found or rule["name"] in QUIET_RULES, f"{rule['name']} is empty: {query}"


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_variables_have_values(watched, kind):
    selector = re.compile(r"label_values\((\w+)\{(.*)\}, (\w+)\)")
    ranking = re.compile(r"query_result\((.*service_name.*)\)")
    wanted = {"cluster": "here", "job": "tlsprof", "service_name": SERVICE}
    for board in boards().values():
        for variable in board["templating"]["list"]:
            # Hosts without recorded series; load tests (test_load_test.py).
            if variable["type"] != "query" or variable["name"] in ("unrecorded", "after", "before"):
                continue
            asked = variable["query"]["query"]
            if ranked := ranking.fullmatch(asked):
                rows = watched.by[kind].ask(Query(board["uid"], variable["name"], "", ranked[1], True))
                found = [row.labels["service_name"] for row in rows]
            else:
                metric, matchers, label = selector.fullmatch(asked).groups()
                matchers = re.sub(r"\$\w+", ".*", matchers)
                found = watched.by[kind].prometheus.label_values(f"{metric}{{{matchers}}}", label)
            assert wanted.get(variable["name"], found[0]) in found


def _panel(uid: str, title: str, ref: str = "A") -> Query:
    found = [query for query in queries(boards()[uid]) if (query.panel, query.ref) == (title, ref)]
    assert len(found) == 1, (uid, title, ref)
    return found[0]


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_counts_are_those_of_the_clients(watched, kind):
    handshakes = watched.by[kind].number(_panel("tlsprof-service", "Handshakes"))
    handshakes *= watched.by[kind].seconds
    assert handshakes == pytest.approx(watched.seen.completed, rel=TOLERANCE)
    resumed = watched.by[kind].number(_panel("tlsprof-service", "Resumed"))
    assert resumed == pytest.approx(watched.seen.resumed / watched.seen.completed, rel=TOLERANCE)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_failures_are_those_of_the_agent(watched, kind):
    """Of the agent, not of the clients: where the server ends a connection by an alert and a reset, the
    client may read the one and the kernel see the other first."""
    server = dict(service_name=SERVICE, role="server")
    wanted = watched.growth(HANDSHAKES, outcome="failed", **server) / watched.growth(HANDSHAKES, **server)
    failed = watched.by[kind].number(_panel("tlsprof-service", "Failed"))
    assert 0.02 < wanted < 0.05
    assert failed == pytest.approx(wanted, rel=TOLERANCE)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_costs_are_those_of_the_agent(watched, kind):
    server = dict(service_name=SERVICE, role="server")
    cpu = watched.growth("tlsprof_service_cpu_seconds_total", service_name=SERVICE)
    in_handshakes = watched.growth("tlsprof_handshake_outcome_cpu_seconds_total", service_name=SERVICE)
    spent = watched.growth("tlsprof_handshake_cpu_seconds_sum", **server)
    count = watched.growth("tlsprof_handshake_cpu_seconds_count", **server)
    turns = watched.growth("tlsprof_connection_turns_sum", **server)
    connections = watched.growth("tlsprof_connection_turns_count", **server)
    wanted = {
        ("tlsprof-service", "CPU"): cpu / watched.by[kind].seconds,
        ("tlsprof-service", "Handshake share"): in_handshakes / cpu,
        ("tlsprof-service", "CPU/handshake"): spent / count,
        ("tlsprof-connections", "Requests/connection"): turns / connections,
        ("tlsprof-load-test", "CPU/request"): cpu / turns,
    }
    said = {place: watched.by[kind].number(_panel(*place)) for place in wanted}
    assert said == pytest.approx(wanted, rel=TOLERANCE)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_activities_add_up_to_the_cpu_time_of_the_service(watched, kind):
    """Softirqs not among them: they are outside what the kernel accounts to the service."""
    parts = [_panel("tlsprof-service", "CPU by activity", ref) for ref in "AB"]
    areas = [area for part in parts for area in watched.by[kind].ask(part)]
    assert len({area.labels["activity"] for area in areas}) == len(areas) == 7
    cpu = watched.by[kind].number(_panel("tlsprof-service", "CPU"))
    assert sum(area.value for area in areas) == pytest.approx(cpu, rel=TOLERANCE)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_findings_are_listed(watched, kind):
    """With its severity as a number, the most severe first, and the number of hosts."""
    # It depends on what else the service does with its CPU time.
    (severity,) = set(watched.severities)
    listed = watched.by[kind].ask(_panel("tlsprof-overview", "Findings"))
    found = [row for row in listed if row.labels["finding"] == FINDING]
    names = ("service_name", "role", "hosts")
    assert [(*map(row.labels.get, names), row.value) for row in found] == [(SERVICE, "server", "1", severity)]


def test_native_and_classic_say_the_same(watched):
    """Sums and counts exactly alike; quantiles within a classic bucket, five to a decade."""
    native, classic = (
        watched.by[kind].number(_panel("tlsprof-service", "CPU/handshake")) for kind in KINDS
    )
    assert native == pytest.approx(classic, rel=TOLERANCE)
    query = _panel("tlsprof-service", "CPU per handshake, quantiles")
    results = {
        kind: {series.labels["resumption"]: series.value for series in watched.by[kind].ask(query)}
        for kind in KINDS
    }
    assert results["native"].keys() == results["classic"].keys() >= {"none", "psk", "ticket"}
    for resumption, value in results["native"].items():
        assert value == pytest.approx(results["classic"][resumption], rel=0.7)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_heat_map_is_native_or_by_bucket(watched, kind):
    found = watched.by[kind].ask(_panel("tlsprof-service", "CPU per handshake, distribution"))
    if kind.startswith("native"):
        assert len(found) == 1 and "buckets" in found[0].value
    else:
        assert len(found) > 5 and all("le" in series.labels for series in found)
