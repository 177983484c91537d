"""Field reports A and B where the agent measures least: connections are counted, handshakes and
requests are estimated from windows of half a second in 32.

Another service's load takes the agent down to that rung, so that nothing is known of ours from before.
"""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Iterator

import pytest

from harness import other_stacks, servers, web_servers
from harness.lowest_rung import CONFIG, is_lowest, lead_down
from harness.outlets import live_state
from harness.processes import private_copy
from harness.profiler import Agent, start_agent
from harness.scenarios import Load as Requests
from harness.scenarios import Saving, ab, assert_predicted, http_client, spend
from harness.servers import Server
from harness.waiting import wait_until

BETWEEN_WINDOWS = 33.0
"""Seconds: in so many there is a window."""

FEW, MANY = ab(400, 20), ab(1600, 20)


@pytest.fixture(name="lowest")
def _lowest(tmp_path, rsa) -> Iterator[Agent]:
    config = tmp_path / "tlsprof.toml"
    config.write_text(CONFIG)
    with start_agent(["--config", config]) as agent, servers.selftimed("epoll", rsa) as other:
        lead_down(agent, other.port)
        yield agent


def run_between_windows(server: Server, load: Requests) -> None:
    began = time.monotonic()
    while time.monotonic() < began + BETWEEN_WINDOWS:
        load(server.port)


def found(agent: Agent, service: str, name: str) -> dict[str, Any]:
    """The finding of that name, as soon as the agent has it with a figure."""

    def of_that_name() -> list[dict[str, Any]]:
        findings = live_state(agent, service)["selected"]["details"]["findings"]
        return [one for one in findings if one["id"] == name and one["prediction"]["kind"] != "unknown"]

    (finding,) = wait_until(of_that_name, f"finding {name}")
    assert is_lowest(agent)
    return finding


def nginx(folder: Path, certificate, name: str, curves: str):
    folder.mkdir()
    folder.chmod(0o755)
    return web_servers.nginx(
        folder,
        certificate,
        workers=1,
        protocols="TLSv1.2",
        extra=f"ssl_ecdh_curve {curves};",
        program=private_copy("nginx", folder, name),
    )


def test_a_the_slow_group_is_found_and_its_saving_predicted(lowest, rsa, tmp_path):
    tmp_path.chmod(0o755)
    with ExitStack() as stack:
        slow = stack.enter_context(nginx(tmp_path / "slow", rsa, "slow-nginx", "secp384r1"))
        fast = stack.enter_context(nginx(tmp_path / "fast", rsa, "fast-nginx", "X25519:secp384r1"))
        run_between_windows(slow, FEW)

        def measure() -> dict[str, Saving]:
            saved = 1 - spend(fast, MANY).each / spend(slow, FEW).each
            run_between_windows(slow, FEW)
            finding = found(lowest, "slow-nginx", "slow-key-exchange")
            return {"X25519": Saving(finding["prediction"]["cpu_ratio"]["likely"], saved)}

        assert_predicted(measure)


def test_b_the_limit_is_found_and_the_saving_of_a_higher_one_predicted(
    lowest, certificates, tmp_path
):
    load = http_client(120, certificates["ecdsa"].cert, "--resume", "--tls", "TLSv1_2")
    with ExitStack() as stack:

        def start(limit: int) -> Server:
            options = ["--bytes", 5887, "--requests", limit]
            folder, name = tmp_path / str(limit), f"limit-{limit}"
            folder.mkdir()
            return stack.enter_context(
                other_stacks.static_http(folder, certificates["ecdsa"], "1.2", options, name)
            )

        low, high = start(5), start(40)
        run_between_windows(low, load)

        def measure() -> dict[str, Saving]:
            saved = 1 - spend(high, load).each / spend(low, load).each
            run_between_windows(low, load)
            finding = found(lowest, "limit-5", "connections-closed-after-n-turns")
            assert finding["figures"]["turns"] == 5
            variants = {
                one["change"]: one["cpu_ratio"]["likely"] for one in finding["prediction"]["variants"]
            }
            return {"40": Saving(variants["40 requests per connection"], saved)}

        assert_predicted(measure)
