"""The share of the cipher where no symbols tell it, against symbols.

perf samples the same process at the same time, and what its addresses are is known from outside:
see harness/symbols.py. What protects records beside the cipher is the application's here.
"""

import re
import shutil
from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest

from harness import other_stacks, symbols
from harness.certificates import Certificate
from harness.downloads import AES_128_GCM, CHACHA20_POLY1305, download
from harness.paths import PROGRAMS
from harness.processes import Argument, run
from harness.profiler import Profiling, Service
from harness.sequential import Rounds, assert_agrees
from harness.servers import Server

pytestmark = pytest.mark.skipif(not shutil.which("perf"), reason="perf is not installed")

FREQUENCY = 997
CONFIG = f"[profile]\nsample_frequency = {FREQUENCY}\n"

SHARE_TOLERANCE = 0.03
"""Both sides are samples, a few thousand each: chance alone takes single runs 1 to 2 points apart."""
FOUND_TOLERANCE = 0.2
"""For one short run: four standard deviations (0.045 in 130 runs beside four busy loops)."""


@dataclass(frozen=True)
class Stack:
    """A TLS stack without symbols, and how its cipher is called where it has some."""

    start: Callable[[Path, Certificate, str], AbstractContextManager[Server]]
    functions: symbols.Functions
    cipher: str
    mebibytes: int = 1000
    """Of each download."""
    downloads: int = 3
    warm_up: int = 0
    """Mebibytes that make it compile what is to be measured."""


STACKS = {
    "static OpenSSL": Stack(
        lambda *where: other_stacks.static_http(*where[:2], name=where[2]),
        symbols.stripped("http"),
        r"_?aesni_|gcm_(ghash|gmult|init)_|CRYPTO_gcm128_|ChaCha20_|poly1305_|Poly1305_",
    ),
    "Go": Stack(
        other_stacks.go,
        symbols.stripped("go_server"),
        # In assembly; what is written in Go around it is no cipher.
        r"crypto/internal/fips140/aes\S*\.abi0$|(\S*/)?chacha20poly1305\.chacha20Poly1305",
    ),
    "rustls": Stack(
        other_stacks.rustls,
        symbols.stripped("rustls-server"),
        r"(aws_lc_\d+_\d+_\d+_)?(aes_(gcm|hw|ctr)|aesni_|vaes|gcm_|CRYPTO_gcm|[cC]ha[cC]ha20_poly1305_seal_"
        r"|ChaCha20_|poly1305_|CRYPTO_poly1305)",
    ),
    "Java": Stack(
        # It waits for its own compiler: what else is compiled meanwhile would be measured with it.
        lambda *where: other_stacks.java(*where[:2], options=[*symbols.JAVA_OPTIONS, "-Xbatch"], name=where[2]),
        lambda places, server: symbols.java_functions(places, server.process),
        r"StubRoutines::(aescrypt|counterMode|ghash|galois|chacha20|poly1305)"
        r"|\S+ com\.sun\.crypto\.provider\.(GHASH|CounterMode|AESCrypt)\."
        r"|\S+ com\.sun\.crypto\.provider\.ChaCha20Cipher\.(chaCha20|xor|generateKeystream)"
        r"|\S+ com\.sun\.crypto\.provider\.Poly1305\.|\S+ \S+\.IntegerPolynomial(1305)?\.",
        mebibytes=300,
        warm_up=400,
    ),
}

UNKNOWN = {
    # Its eight blocks of ChaCha20 end in stores that nothing tells from others.
    ("static OpenSSL", "ChaCha20-Poly1305"): -0.016,
    # gcmAesEnc ends in 112 bytes that swap and store eight blocks, too far from the last AES round to be
    # told by it: 3% of the time in user mode (Go 1.26.8).
    ("Go", "AES-128-GCM"): -0.02,
}
"""Shares of the server's CPU time that are the cipher's, and not known to be."""

CIPHERS = {"AES-128-GCM": AES_128_GCM, "ChaCha20-Poly1305": CHACHA20_POLY1305}


def encryption(service: Service) -> dict[str, Any]:
    [row] = [row for row in service.data["activities"] if row["activity"] == "encryption"]
    return row


@pytest.mark.harness
@pytest.mark.parametrize("program", ["http", "go_server", "rustls-server"])
def test_servers_have_no_symbols(program):
    assert not run(["nm", PROGRAMS / program]).stdout


Case = tuple[str, str]
Off = dict[Case, float]

EVERY = [(name, cipher) for name in STACKS for cipher in CIPHERS]
USUAL = [("static OpenSSL", "AES-128-GCM"), ("Go", "ChaCha20-Poly1305")]
"""For every run of the tests: that the cipher of such servers is found at all."""


def shares_off(folder: Path, certificate: Certificate, cases: list[Case], least: int = 1) -> Off:
    """How far the share of the cipher is from that by symbols: a server for each case, in one profile
    beside one perf. `least`: by how much downloads are shortened."""
    config = folder / "tlsprof.toml"
    config.write_text(CONFIG)
    with ExitStack() as stack:
        running: dict[Case, Server] = {}
        for name, cipher in cases:
            own = f"{name}-{cipher}".replace(" ", "-")
            home = folder / f"of-{own}"
            home.mkdir()
            server = stack.enter_context(STACKS[name].start(home, certificate, own))
            running[name, cipher] = server
            if STACKS[name].warm_up:
                run(download(server.port, STACKS[name].warm_up, 1, CIPHERS[cipher]), timeout=symbols.MOST_SECONDS)
        with Profiling(folder, "--config", config) as profiling:
            fetches = [fetch(server, case, least) for case, server in running.items()]
            pids = [server.pid for server in running.values()]
            places = symbols.perf_places_of_each(folder, pids, FREQUENCY, fetches)
            profiling.finish()
        return {
            case: share_off(profiling.report.on_port(server.port), case, places[server.pid], server)
            for case, server in running.items()
        }


def fetch(server: Server, case: Case, least: int) -> list[Argument]:
    name, cipher = case
    stack = STACKS[name]
    return download(server.port, stack.mebibytes // least, stack.downloads, CIPHERS[cipher])


def share_off(service: Service, case: Case, places: Counter[symbols.Place], server: Server) -> float:
    stack = STACKS[case[0]]
    functions = stack.functions(places, server)
    matching = [functions[one] for one in functions if re.match(stack.cipher, one)]
    truth = sum(matching) / sum(functions.values())
    assert encryption(service)["samples"] == service.data["cpu_samples"]["cipher_alone"]
    share = encryption(service)["share"]
    print(f"{case}: {share:.3f}, by symbols {truth:.3f} of {sum(functions.values())}")
    assert truth > 0.05, functions.most_common(20)
    return share - truth


def test_the_cipher_is_found(rsa, tmp_path):
    """How much of it is the long test's matter."""
    for case, off in shares_off(tmp_path, rsa, USUAL, least=4).items():
        assert abs(off) < FOUND_TOLERANCE, case


@pytest.fixture(scope="module")
def rounds(rsa, tmp_path_factory) -> Rounds[Off]:
    return Rounds(lambda: shares_off(tmp_path_factory.mktemp("stripped"), rsa, EVERY))


@pytest.mark.long
@pytest.mark.parametrize("case", EVERY, ids="-".join)
def test_the_cipher_is_known_by_its_instructions(case, rounds):
    figures = rounds.each(lambda one: one[case])
    expected = UNKNOWN.get(case, 0.0)
    assert_agrees(figures, expected=expected, within=SHARE_TOLERANCE, name="-".join(case))
