"""Thresholds for orange and red, each with its reason, which panels show."""

from dataclasses import dataclass
from typing import Optional

from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.models.dashboard import Threshold, ThresholdsMode


@dataclass(frozen=True)
class Limits:
    """Colours from a value on; `rising` false where high is good."""

    orange: float
    red: Optional[float]
    reason: str
    rising: bool = True
    middle: str = "orange"

    def steps(self) -> list[Threshold]:
        if self.rising:
            steps = [Threshold(None, "green"), Threshold(self.orange, self.middle)]
            return steps + ([Threshold(self.red, "red")] if self.red is not None else [])
        bottom = [Threshold(None, "red" if self.red is not None else self.middle)]
        middle = [Threshold(self.red, self.middle)] if self.red is not None else []
        return bottom + middle + [Threshold(self.orange, "green")]

    def config(self) -> ThresholdsConfig:
        return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(self.steps())


HANDSHAKE_SHARE = Limits(
    0.2,
    0.4,
    "Orange from 20%: a service that resumes sessions and keeps connections stays below. Red from 40%, "
    "where TlsprofHandshakeCpuShareHigh fires: handshakes then limit the host's capacity.",
)
RESUMED = Limits(
    0.5,
    0.1,
    "Green from 50%: returning clients, such as browsers, resume. Red below 10%: nearly every handshake "
    "needs a signature. New clients cannot resume, so compare with the past.",
    rising=False,
)
FAILED = Limits(
    0.01,
    0.05,
    "Orange from 1%: scanners alone stay below on most servers. Red from 5%, where "
    "TlsprofHandshakeFailures fires.",
)
EPHEMERAL_PORTS = Limits(
    0.5,
    0.8,
    "Orange from half of the ports to one endpoint: finding a free one gets slower. Red from 80%, where "
    "TlsprofEphemeralPortsRunOut fires: at 100% connect() fails with EADDRNOTAVAIL.",
)
TURNS = Limits(
    5,
    2,
    "Red below 2 requests per connection, where TlsprofFewTurnsPerConnection fires if the server closes: a "
    "handshake, full or resumed, then serves hardly any requests. Green from 5.",
    rising=False,
)
TARGET_COST = Limits(
    0.01,
    0.02,
    "Orange from 1%, the default of agent.budget. Red from 2%, where TlsprofOverBudget fires: the agent "
    "has then detached its step probes and still exceeds the budget.",
)
LOSSES = Limits(0.001, None, "Orange if anything is lost: figures that depend on it are too low.")
NONE_DOWN = Limits(1, 1, "Red if any agent is down.")
ANY = Limits(1, None, "Orange from the first one.")
OVERFLOWS = Limits(
    0.001, None, "Orange from the first one: a client whose connection attempt is dropped waits a second or more."
)
RECONCILIATION = Limits(
    0.05,
    0.2,
    "Orange from 5%: shares by activity may be off by that much. Red from 20%: sampling does not work.",
)
AGENT_CPU = Limits(
    0.05, 0.2, "Orange from 5% and red from 20% of one core: find out why the agent needs this much."
)
SCRAPE = Limits(
    0.5,
    5,
    "Orange from 0.5 s, several times the duration on the largest hosts. Red from 5 s: at 10 s, the default "
    "scrape_timeout, Prometheus gives up.",
)
MEMORY = Limits(
    128 << 20,
    384 << 20,
    "Orange from 128 MiB, more than twice the memory needed for 500 server processes. Red from 384 MiB: at "
    "512 MiB (MemoryMax of the packages) the kernel kills the agent.",
)
SERIES = Limits(
    20_000,
    None,
    "Orange from 20,000, more than 50 TLS servers need. limits.services and limits.label_sets bound it.",
)
CHANGE = Limits(
    -0.02,
    0.02,
    "Green below -2%, red above 2%: less is better. Repeated load tests differ by about 2%.",
    middle="text",
)
GAIN = Limits(
    0.02,
    -0.02,
    "Green above 2%, red below -2%: more is better.",
    rising=False,
    middle="text",
)
TIME_WAIT = Limits(
    10_000,
    20_000,
    "Orange from 10,000 sockets of one service. Red from 20,000, where TlsprofTimeWaitPilesUp fires.",
)
DUTY = Limits(
    0.5,
    None,
    "Orange below 50%: steps and signatures are then known for that share of handshakes only.",
    rising=False,
)
QUEUE = Limits(0.5, 0.8, "Orange from half full: bursts overflow it. Red from 80%.")
