"""Field report B: Domino ends connections after five requests, its default.

Ten threads make requests as fast as they can and resume their TLS sessions. A server of our own
takes Domino's place: its name, its limit, a thread for each connection, nothing to probe.
"""

from contextlib import ExitStack
from typing import Iterator

import pytest

from harness import other_stacks
from harness.scenarios import (
    Load,
    Profiled,
    Saving,
    assert_predicted,
    http_client,
    profile,
    sampled_often,
    spend,
)
from harness.servers import Server

FINDING = "connections-closed-after-n-turns"

DEFAULT = 5
LIMITS = (10, 40, 100)
ANSWER_BYTES = 5887
THREADS = 10
REQUESTS = 600
"""Of each thread."""

CONNECTIONS = THREADS * REQUESTS // DEFAULT


@pytest.fixture(scope="module")
def load(certificates) -> Load:
    return http_client(
        REQUESTS, certificates["ecdsa"].cert, "--resume", "--tls", "TLSv1_2", threads=THREADS
    )


@pytest.fixture(scope="module")
def by_limit(tmp_path_factory, certificates) -> Iterator[dict[int, Server]]:
    with ExitStack() as stack:
        yield {
            limit: stack.enter_context(
                other_stacks.domino(
                    tmp_path_factory.mktemp(f"limit-{limit}"),
                    certificates["ecdsa"],
                    *("--bytes", ANSWER_BYTES, "--requests", limit),
                )
            )
            for limit in (DEFAULT, *LIMITS)
        }


@pytest.fixture(scope="module")
def before(by_limit, load, tmp_path_factory) -> Profiled:
    return profile(tmp_path_factory.mktemp("before"), by_limit[DEFAULT], load)


def test_before_the_limit_is_found(before):
    finding = before.finding(FINDING)
    assert finding, before.report.data["findings"]
    assert finding["figures"]["turns"] == DEFAULT
    assert finding["figures"]["alike_connections"] == CONNECTIONS
    assert finding["remedy"]["server"] == "HCL Domino"
    assert "Maximum requests over a single connection" in finding["remedy"]["directive"]


def test_before_all_connections_end_after_five_turns_and_by_the_server(before):
    (connections,) = before.service.data["connections"]
    assert (connections["role"], connections["opened"]) == ("server", CONNECTIONS)
    (closed,) = connections["closed"]
    assert closed["closed_by"] == "local"
    assert closed["turns"] == [{"from": DEFAULT, "to": DEFAULT, "connections": CONNECTIONS}]


def test_before_each_connection_leaves_a_socket_in_time_wait(before):
    (connections,) = before.service.data["connections"]
    assert connections["time_wait_created"] == CONNECTIONS
    # A socket stands for 60 s: on a slow machine the first ones may be gone.
    assert 0 < connections["time_wait_standing"] <= CONNECTIONS


def test_before_all_but_the_first_sessions_are_resumed(before):
    completed = dict(role="server", outcome="completed")
    assert before.service.count(resumption="ticket", **completed) == CONNECTIONS - THREADS
    assert before.service.count(resumption="none", **completed) == THREADS


def test_after_there_is_nothing_to_find(by_limit, load, tmp_path):
    after = profile(tmp_path, by_limit[100], load)
    assert not after.finding(FINDING), after.report.data["findings"]
    (connections,) = after.service.data["connections"]
    assert connections["time_wait_created"] == THREADS * REQUESTS // 100


def test_the_saving_of_each_limit_is_predicted(by_limit, load, tmp_path):
    options = sampled_often(tmp_path)

    def measure() -> dict[str, Saving]:
        spent = {limit: spend(server, load).each for limit, server in by_limit.items()}
        finding = profile(tmp_path, by_limit[DEFAULT], load, *options).finding(FINDING)
        variants = {
            one["change"]: one["cpu_ratio"]["likely"] for one in finding["prediction"]["variants"]
        }
        savings = {}
        for limit in LIMITS:
            change = f"{limit} requests per connection"
            savings[change] = Saving(variants[change], 1 - spent[limit] / spent[DEFAULT])
        return savings

    assert_predicted(measure)
