"""The steps of a handshake against the same operations timed by themselves.

Server, client and reference share one core and take turns, so that none of them
runs beside a busy sibling of that core when the others do not.
"""

import json
from dataclasses import dataclass
from statistics import mean, median
from typing import Callable

import pytest

from harness import servers
from harness.load import Load, run_load
from harness.paths import PRIMITIVES, SELFTIMED
from harness.processes import run
from harness.profiler import Profiling
from harness.sequential import Rounds, assert_agrees

TOLERANCE = 0.20
COLD, COLD_TOLERANCE = 1.05, 0.25
"""Of a step to the same in a loop: in a server its code and tables have left the caches by the time of
the next handshake, and on a busy machine more of them."""
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
    service = profiling.report.service(SELFTIMED.name)
    return service.step_seconds("key_exchange"), service.step_seconds("signing")


@dataclass(frozen=True)
class Alone:
    """Seconds an operation, by `openssl speed` and by the library."""

    speed: Speed
    library: dict[str, float]


def alone(group: str, key) -> Alone:
    return Alone(openssl_speed(group), primitives(group, key))


@dataclass(frozen=True)
class Round:
    """Seconds an operation before and after, and as tlsprof has them in between: the speed of a shared machine changes."""

    alone: tuple[Alone, Alone]
    exchange: float
    signing: float

    def _mean(self, seconds: Callable[[Alone], float]) -> float:
        return mean(map(seconds, self.alone))

    @property
    def derivation(self) -> float:
        """What the library alone takes to what `openssl speed` says: both are loops."""
        return self._mean(lambda one: one.library["derive"]) / self._mean(lambda one: one.speed.derive)

    @property
    def exchange_to_speed(self) -> float:
        """A server makes a key, checks the peer's and derives. `openssl speed` times a derivation only,
        so it stands for that part."""
        seconds = lambda one: one.library["keygen"] + one.library["check_peer"] + one.speed.derive
        return self.exchange / self._mean(seconds)

    @property
    def signing_to_speed(self) -> float:
        return self.signing / self._mean(lambda one: one.speed.sign)


@pytest.mark.long
@pytest.mark.parametrize("group", SPEED_ALGORITHM)
def test_steps_agree_with_openssl_speed(group, rsa, tmp_path):
    def measure() -> Round:
        before, profiled = alone(group, rsa.key), profiled_steps(group, rsa, tmp_path)
        return Round((before, alone(group, rsa.key)), *profiled)

    rounds = Rounds(measure)
    assert_agrees(
        rounds.each(lambda one: one.derivation), expected=1.0, within=TOLERANCE, name="derivation"
    )
    for name in ("exchange_to_speed", "signing_to_speed"):
        figures = rounds.each(lambda one: getattr(one, name))
        assert_agrees(figures, expected=COLD, within=COLD_TOLERANCE, name=name)
    # By a factor of four in the one case, of two in the other.
    dearer = [one.signing > one.exchange for one in rounds.made]
    assert median(dearer) == (group == "X25519"), rounds.made
