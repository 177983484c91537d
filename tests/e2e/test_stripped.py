"""The share of the cipher where no symbols tell it, against symbols.

perf samples the same process at the same time, and what its addresses are is known from outside:
see harness/symbols.py. What protects records beside the cipher is the application's here.
"""

import re
import shutil
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest

from harness import other_stacks, symbols
from harness.certificates import Certificate
from harness.downloads import AES_128_GCM, CHACHA20_POLY1305, download
from harness.paths import PROGRAMS
from harness.processes import run
from harness.profiler import Profiling, Service
from harness.servers import Server
from harness.settling import assert_median

pytestmark = pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed")

FREQUENCY = 997
CONFIG = f"[profile]\nsample_frequency = {FREQUENCY}\n"

SHARE_TOLERANCE = 0.03
# Both sides are samples, a few thousand each: chance alone takes single runs 1 to 2 points apart.
REPEATS = dict(least=3, most=7)

Functions = Callable[[Counter[symbols.Place], Server], Counter[str]]


def stripped(program: str) -> Functions:
    return lambda places, server: symbols.stripped_functions(
        places, server.pid, PROGRAMS / f"{program}.symbols"
    )


@dataclass(frozen=True)
class Stack:
    """A TLS stack without symbols, and how its cipher is called where it has some."""

    start: Callable[[Path, Certificate], AbstractContextManager[Server]]
    functions: Functions
    cipher: str
    mebibytes: int = 1000
    """Of each download."""
    downloads: int = 3
    warm_up: int = 0
    """Mebibytes that make it compile what is to be measured."""


STACKS = {
    "static OpenSSL": Stack(
        other_stacks.static_http,
        stripped("http"),
        r"_?aesni_|gcm_(ghash|gmult|init)_|CRYPTO_gcm128_|ChaCha20_|poly1305_|Poly1305_",
        # Its blocks of ChaCha20 end in stores that are not known: 1.6 points, and little left for chance.
        downloads=6,
    ),
    "Go": Stack(
        other_stacks.go,
        stripped("go_server"),
        r"crypto/internal/fips140/aes|(\S*/)?chacha20poly1305\.chacha20Poly1305",
    ),
    "rustls": Stack(
        other_stacks.rustls,
        stripped("rustls-server"),
        r"(aws_lc_\d+_\d+_\d+_)?(aes_(gcm|hw|ctr)|aesni_|vaes|gcm_|CRYPTO_gcm|[cC]ha[cC]ha20_poly1305_seal_"
        r"|ChaCha20_|poly1305_|CRYPTO_poly1305)",
    ),
    "Java": Stack(
        lambda *where: other_stacks.java(*where, options=symbols.JAVA_OPTIONS),
        lambda places, server: symbols.java_functions(places, server.process),
        r"StubRoutines::(aescrypt|counterMode|ghash|galois|chacha20|poly1305)"
        r"|\S+ com\.sun\.crypto\.provider\.(GHASH|CounterMode|AESCrypt)\."
        r"|\S+ com\.sun\.crypto\.provider\.ChaCha20Cipher\.(chaCha20|xor|generateKeystream)"
        r"|\S+ com\.sun\.crypto\.provider\.Poly1305\.|\S+ \S+\.IntegerPolynomial(1305)?\.",
        mebibytes=300,
        warm_up=400,
    ),
}

CIPHERS = {"AES-128-GCM": AES_128_GCM, "ChaCha20-Poly1305": CHACHA20_POLY1305}


def encryption(service: Service) -> dict[str, Any]:
    [row] = [row for row in service.data["activities"] if row["activity"] == "encryption"]
    return row


@pytest.mark.parametrize("program", ["http", "go_server", "rustls-server"])
def test_servers_have_no_symbols(program):
    assert not run(["nm", PROGRAMS / program]).stdout


@pytest.mark.parametrize("cipher", CIPHERS)
@pytest.mark.parametrize("name", STACKS)
def test_the_cipher_is_known_by_its_instructions(name, cipher, rsa, tmp_path_factory):
    stack = STACKS[name]

    def measure() -> float:
        folder = tmp_path_factory.mktemp("stripped")
        config = folder / "tlsprof.toml"
        config.write_text(CONFIG)
        with stack.start(folder, rsa) as server:
            if stack.warm_up:
                run(download(server.port, stack.warm_up, 1, CIPHERS[cipher]))
            with Profiling(folder, "--pid", server.pid, "--config", config) as profiling:
                client = download(server.port, stack.mebibytes, stack.downloads, CIPHERS[cipher])
                places = symbols.perf_places(folder, server.pid, FREQUENCY, client)
            functions = stack.functions(places, server)
        matching = {name: functions[name] for name in functions if re.match(stack.cipher, name)}
        truth = sum(matching.values()) / sum(functions.values())
        service = profiling.report.on_port(server.port)
        assert encryption(service)["samples"] == service.data["cpu_samples"]["cipher_alone"]
        share = encryption(service)["share"]
        print(f"{name}, {cipher}: {share:.3f}, by symbols {truth:.3f} of {sum(functions.values())}")
        assert truth > 0.05, functions.most_common(20)
        return share - truth

    assert_median(measure, expected=0.0, within=SHARE_TOLERANCE, **REPEATS)
