"""The steps of a handshake against the same operations timed by themselves.

Server, client and reference share one core and take turns, so that none of them
runs beside a busy sibling of that core when the others do not.
"""

import json
from dataclasses import dataclass

import pytest

from harness import servers
from harness.load import Load, run_load
from harness.paths import PRIMITIVES
from harness.processes import run
from harness.profiler import Profiling
from harness.settling import measure_until

TOLERANCE = 0.20
COLDER = 0.30
"""How much more a step may take than in a loop: in a server its code and tables have left the
caches by the time of the next handshake, and on a busy machine more of them."""
REPEATS = dict(least=5, most=15)
CPU = 0

SPEED_ALGORITHM = {"X25519": "ecdhx25519", "P-384": "ecdhp384"}


@dataclass(frozen=True)
class Speed:
    """What `openssl speed` says, in seconds an operation."""

    sign: float
    derive: float


def openssl_speed(group: str) -> Speed:
    """Runs `openssl speed` with its machine-readable output.

    The lines are `+F2:index:bits:signs a second:verifies a second` for RSA and
    `+F5:index:bits:operations a second:seconds an operation` for ECDH.
    """
    command = ["openssl", "speed", "-mr", "-seconds", "1", "rsa2048", SPEED_ALGORITHM[group]]
    lines = run(command, cpu=CPU).stdout.splitlines()
    rows = {line.split(":")[0]: line.split(":") for line in lines}
    return Speed(sign=1 / float(rows["+F2"][3]), derive=1 / float(rows["+F5"][3]))


def primitives(group: str, key) -> dict[str, float]:
    """Seconds for key generation, peer check, derivation and signature."""
    return json.loads(run([PRIMITIVES, group, key, 10], cpu=CPU).stdout)


def profiled_steps(group: str, certificate, folder) -> tuple[float, float]:
    """Seconds for key exchange and signing in one handshake, as tlsprof has them."""
    load = Load(tls="1.3", full=200, groups=group, threads=1)
    with servers.selftimed("epoll", certificate, "--groups", group, cpu=CPU) as server:
        with Profiling(folder) as profiling:
            run_load(load, server.port, cpu=CPU)
    service = profiling.report.service("selftimed")
    return service.step_seconds("key_exchange"), service.step_seconds("signing")


@dataclass(frozen=True)
class Round:
    """Seconds an operation, by `openssl speed`, by the library alone, and as tlsprof has them."""

    speed: Speed
    alone: dict[str, float]
    exchange: float
    signing: float


@dataclass(frozen=True)
class Comparison:
    """Of the least of each: whatever else the machine does only adds time."""

    derivation: float
    exchange: float
    signing: float
    signing_is_dearer: bool

    @staticmethod
    def of(rounds: list[Round]) -> "Comparison":
        derive = min(one.speed.derive for one in rounds)
        # A server makes a key, checks the peer's and derives. `openssl speed` times a
        # derivation only, so it stands for that part.
        rest = min(one.alone["keygen"] + one.alone["check_peer"] for one in rounds)
        exchange = min(one.exchange for one in rounds)
        signing = min(one.signing for one in rounds)
        return Comparison(
            derivation=min(one.alone["derive"] for one in rounds) / derive,
            exchange=exchange / (rest + derive),
            signing=signing / min(one.speed.sign for one in rounds),
            signing_is_dearer=signing > exchange,
        )

    @property
    def agrees(self) -> bool:
        steps = (self.exchange, self.signing)
        return self.derivation == pytest.approx(1.0, abs=TOLERANCE) and all(
            1.0 - TOLERANCE <= ratio <= 1.0 + COLDER for ratio in steps
        )


@pytest.mark.parametrize("group", SPEED_ALGORITHM)
def test_steps_agree_with_openssl_speed(group, rsa, tmp_path):
    def measure() -> Round:
        return Round(
            openssl_speed(group), primitives(group, rsa.key), *profiled_steps(group, rsa, tmp_path)
        )

    rounds = measure_until(lambda rounds: Comparison.of(rounds).agrees, measure, **REPEATS)
    comparison = Comparison.of(rounds)
    assert comparison.agrees, (comparison, rounds)
    assert comparison.signing_is_dearer == (group == "X25519"), (comparison, rounds)
