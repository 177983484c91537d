"""Steps of handshakes by samples on stacks that no probe measures, against perf's samples of the same load with
the names of functions, which the stripped program does not have, or which only its libraries export."""

import re
import shutil
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest

from harness import other_stacks, symbols
from harness.certificates import Certificate
from harness.load import Load
from harness.profiler import Profiling
from harness.sampled_steps import agree, steps
from harness.servers import Server

pytestmark = [
    pytest.mark.alone,
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed"),
]

FREQUENCY = 997
CONFIG = f"[profile]\nsample_frequency = {FREQUENCY}\n"

POINTS = 0.07
"""Of the CPU time of the service."""
NAMED = 0.75
"""Of the samples. Stripped Rust is at 0.79 to 0.86: what has no name is code of the protocol, in hundreds of functions."""


@dataclass(frozen=True)
class Stack:
    """Where a stack's handshakes compute what, as names of functions in its sources."""

    start: Callable[[Path, Certificate], AbstractContextManager[Server]]
    functions: symbols.Functions
    steps: dict[str, dict[str, str]]
    """By group, for an RSA key: expressions by step."""


GO_RSA = r"crypto/(internal/fips140/)?rsa\.|crypto/internal/fips140/bigmod\.|math/big\."
AWS_LC = r"(aws_lc_[\d_]+_)?"
AWS_LC_RSA = AWS_LC + r"(rsa|RSA|bn_|BN_|bignum_(?!.*(p256|25519))|\w*amm52)"
STACKS = {
    "go": Stack(
        other_stacks.go,
        symbols.stripped("go_server"),
        {
            "X25519": {"key_exchange": r"crypto/.*25519|crypto/ecdh\.", "signing": GO_RSA},
            "P-256": {"key_exchange": r"crypto/.*(nistec|ecdh)\b", "signing": GO_RSA},
            "P-384": {"key_exchange": r"crypto/.*(nistec|ecdh)\b", "signing": GO_RSA},
        },
    ),
    "rustls": Stack(
        other_stacks.rustls,
        symbols.stripped("rustls-server"),
        {
            "X25519": {"key_exchange": AWS_LC + r"\w*25519", "signing": AWS_LC_RSA},
            "P-256": {"key_exchange": AWS_LC + r"(\w*p256|\w*nistz256|ec_|EC_)", "signing": AWS_LC_RSA},
        },
    ),
}
CASES = [(name, group) for name, stack in STACKS.items() for group in stack.steps]


@pytest.mark.parametrize("name, group", CASES)
def test_steps_are_those_of_perf_with_symbols(name, group, rsa, tmp_path):
    stack = STACKS[name]
    config = tmp_path / "tlsprof.toml"
    config.write_text(CONFIG)
    with stack.start(tmp_path, rsa) as server:
        load = Load(tls="1.3", full=2000, groups=group, threads=2)
        with Profiling(tmp_path, "--config", config) as profiling:
            places = symbols.perf_places_of_each(
                tmp_path, [server.pid], FREQUENCY, [load.command(server.port)]
            )[server.pid]
            profiling.finish()
        functions = stack.functions(places, server)
    service = profiling.report.on_port(server.port)
    spent = sum(row["cpu_seconds"] for row in service.data["activities"])
    in_handshakes = sum(row["cpu_seconds"] for row in service.data["sampled_steps"]) / spent
    found = {step: share * in_handshakes for step, share in steps(service).items()}
    exact = by_names(functions, stack.steps[group])
    print(f"{name}, {group}: {found}, by perf {exact} of {functions.total()}")
    assert min(exact.values()) > 0.01, functions.most_common(30)
    agree(found, exact, service, POINTS)
    samples = service.data["primitive_samples"]
    assert samples["not_identified"] <= (1 - NAMED) * samples["count"], service


def by_names(functions: Counter[str], names: dict[str, str]) -> dict[str, float]:
    """Shares of a process's samples by step."""
    whole = functions.total()
    matching = {
        step: sum(count for name, count in functions.items() if re.match(those, name))
        for step, those in names.items()
    }
    return {step: count / whole for step, count in matching.items()}
