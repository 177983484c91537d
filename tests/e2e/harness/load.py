"""The load: loadgen's command line and what it saw."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, NamedTuple, Optional

from .paths import LOADGEN
from .processes import LONG_SECONDS, run


@dataclass(frozen=True)
class Load:
    """How many connections of each kind; kinds as loadgen names them."""

    full: int = 0
    resume: int = 0
    abort_hello: int = 0
    abort_flight: int = 0
    reset: int = 0
    garbage: int = 0
    no_group: int = 0
    no_version: int = 0
    reject: int = 0
    plain: int = 0
    dribble: int = 0
    tls: str = "any"
    tickets: bool = True
    prelude: Optional[str] = None
    groups: Optional[str] = None
    ciphers: Optional[str] = None
    """Cipher suites up to TLS 1.2."""
    ciphersuites: Optional[str] = None
    """Cipher suites of TLS 1.3."""
    threads: int = 4
    rate: float = 0.0
    """Connections begun a second; 0: as fast as they go."""
    log: Optional[Path] = None
    """Gets a line with the monotonic time at which each connection begins."""
    program: Path = LOADGEN

    @property
    def connections(self) -> int:
        return self.completing + self.failing + self.aborted + self.plain

    @property
    def completing(self) -> int:
        """Handshakes that complete."""
        return self.full + self.resume + self.dribble

    @property
    def failing(self) -> int:
        """Handshakes in which the server raises an error or gets an alert."""
        return self.garbage + self.no_group + self.no_version + self.reject

    @property
    def aborted(self) -> int:
        """Handshakes in which the client goes away."""
        return self.abort_hello + self.abort_flight + self.reset

    def command(self, port: int) -> list[str]:
        kinds = ("full", "resume", "abort_hello", "abort_flight", "reset")
        kinds += ("garbage", "no_group", "no_version", "reject", "plain", "dribble")
        command = [str(self.program), "--port", str(port), "--tls", self.tls]
        command += ["--threads", str(self.threads)]
        for kind in kinds:
            if getattr(self, kind):
                command += [f"--{kind.replace('_', '-')}", str(getattr(self, kind))]
        for option in ("groups", "ciphers", "ciphersuites", "prelude"):
            if getattr(self, option):
                command += [f"--{option}", getattr(self, option)]
        if self.rate:
            command += ["--rate", str(self.rate)]
        if self.log:
            command += ["--log", str(self.log)]
        if not self.tickets:
            command.append("--no-ticket")
        return command


class Negotiated(NamedTuple):
    """What a completed handshake negotiated, in the words of reports."""

    version: str
    cipher: str
    group: str
    resumption: str


@dataclass(frozen=True)
class Seen:
    """What loadgen saw, from its JSON line."""

    completed: int
    resumed: int
    failed: int
    abandoned: int
    plain: int
    unplanned: int
    cpu_seconds: float
    versions: dict[str, int] = field(default_factory=dict)
    ciphers: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    handshakes: Counter[Negotiated] = field(default_factory=Counter)
    """Completed handshakes by all that they negotiated."""

    @property
    def full(self) -> int:
        return self.completed - self.resumed

    @property
    def outcomes(self) -> dict[str, int]:
        return {"completed": self.completed, "failed": self.failed, "abandoned": self.abandoned}

    def agrees_with(self, outcomes: dict[str, int]) -> bool:
        """Whether the report counts what the clients saw. Where the server ends a connection with an
        alert and a reset, the client may read the one and the kernel see the other first."""
        ended = outcomes["failed"] + outcomes["abandoned"]
        return (outcomes["completed"], ended) == (self.completed, self.failed + self.abandoned)

    @staticmethod
    def nothing() -> "Seen":
        return Seen(0, 0, 0, 0, 0, 0, 0.0)

    def __add__(self, other: "Seen") -> "Seen":
        def merged(ours: dict[str, int], theirs: dict[str, int]) -> dict[str, int]:
            return dict(Counter(ours) + Counter(theirs))

        return Seen(
            self.completed + other.completed,
            self.resumed + other.resumed,
            self.failed + other.failed,
            self.abandoned + other.abandoned,
            self.plain + other.plain,
            self.unplanned + other.unplanned,
            self.cpu_seconds + other.cpu_seconds,
            merged(self.versions, other.versions),
            merged(self.ciphers, other.ciphers),
            merged(self.groups, other.groups),
            self.handshakes + other.handshakes,
        )

    @staticmethod
    def parse(output: str) -> "Seen":
        """The last line that is loadgen's; a profiler may print around it."""
        lines = [line for line in output.splitlines() if line.startswith('{"completed"')]
        assert lines, f"no result of loadgen in:\n{output}"
        result = json.loads(lines[-1])
        result["handshakes"] = counted(result["handshakes"])
        return Seen(**result)


def counted(rows: Iterable[dict[str, Any]]) -> Counter[Negotiated]:
    """Rows with the fields of `Negotiated` and a count; of the client's result or of a report."""
    counts: Counter[Negotiated] = Counter()
    for row in rows:
        counts[Negotiated(*(row[name] for name in Negotiated._fields))] += row["count"]
    return counts


def run_load(load: Load, port: int, timeout: float = LONG_SECONDS, cpu: Optional[int] = None) -> Seen:
    """Runs the load without a profiler; every connection must go as planned."""
    done = run(load.command(port), timeout=timeout, cpu=cpu)
    assert done.child.returncode == 0, done.describe()
    return Seen.parse(done.stdout)
