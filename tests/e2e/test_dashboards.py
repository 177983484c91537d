"""Every query of every dashboard and rule, on a real Prometheus that scrapes a real agent while a
real nginx is under load: none is refused, none is empty without a reason, and what they say is what
the clients counted and the agent's own metrics add up to."""

import math
import re
import shutil
import time
import urllib.parse
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Iterator

import pytest

from harness import metrics, plain_nginx, web_servers
from harness.dashboards import Query, boards, queries
from harness.load import Load, Seen, run_load
from harness.observatory import TODAY, Observatory, Series, observatory
from harness.profiler import start_agent
from harness.today import of_today
from harness.waiting import wait_until

WARM_UP = [Load(tls=tls, full=40, resume=40, garbage=4, reject=4, abort_flight=4) for tls in ("1.2", "1.3")]
LOADS = [
    Load(tls=tls, full=300, resume=300, garbage=10, reject=10, abort_flight=10) for tls in ("1.2", "1.3")
]
SERVICE = plain_nginx.unique("nginx")
KINDS = ("native", "classic")
"""Of histograms, each in a Prometheus of its own: Debian's."""
KINDS_TODAY = tuple(f"{kind} today" for kind in KINDS)
"""The same in a Prometheus of today, where there is one."""
ALL_KINDS = (*KINDS, *map(of_today, KINDS_TODAY))
HANDSHAKES = "tlsprof_handshakes_total"
FINDING = "costly-certificate"
SEVERITIES = ["high", "medium", "low", "info"]
"""As the tables sort them, from 1 on."""
TOLERANCE = 0.05
MARGIN_SECONDS = 0.01
SUBQUERY_SECONDS = 15.0
"""The longest step of subqueries in the dashboards. Prometheus puts these at multiples of it, and a
shorter window may hold none: then they give nothing."""

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


def _cpu_is_read(agent_url: str) -> None:
    """Waits until the agent has read the CPU time of services once more. It does so every second or
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
        _cpu_is_read(agent_url)
        second = metrics.scrape(agent_url)
        now = [sample for sample in second if sample.labels.get("service_name") == SERVICE]
        counters = lambda samples: {str(sample) for sample in samples if "sockets" not in sample.name}
        return second if counters(first) == counters(now) else []

    return wait_until(still, "counters that stand still", timeout=60.0)


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


@pytest.fixture(scope="module")
def watched(rsa, tmp_path_factory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("observatory")
    folder.chmod(0o755)
    # Without a budget: else a busy host changes, half way, what is told of handshakes, and so their
    # labels.
    config = folder / "tlsprof.toml"
    config.write_text('[agent]\nbudget = 1.0\n[profile]\nsteps = "always"\n')
    program = folder / SERVICE
    shutil.copy(shutil.which("nginx"), program)
    with (
        start_agent(["--config", config]) as agent,
        web_servers.nginx(folder, rsa, program=program) as server,
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
            wait_until(lambda: _severities(agent.url), f"the finding {FINDING}", timeout=60.0)
            after = _settled(agent.url, made + more)
            wait_until(lambda: time.time() - max(begins.values()) > SUBQUERY_SECONDS, "a step of each subquery")
            ends = {kind: _scrape(prometheus) for kind, prometheus in every.items()}
            watches = {
                kind: Watch(every[kind], begins[kind] - MARGIN_SECONDS, ends[kind] + MARGIN_SECONDS)
                for kind in kinds
            }
            yield Watched(watches, before, after, seen, _severities(agent.url))


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
