"""Field report A: a key exchange that nobody looked at, on nginx in front of Domino.

nginx allows P-384 only, though every client offers X25519. Domino, whose place a server of our own
takes, is asked directly by other clients, and shown beside it.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Iterator

import pytest

from harness import other_stacks, web_servers
from harness.profiler import Profiling
from harness.scenarios import (
    Profiled,
    Saving,
    ab,
    asked,
    assert_predicted,
    predicted_saving,
    profile,
    spend,
)
from harness.servers import Server

PAGE = "/homepage.nsf"
PAGE_BYTES = 4788
SLOW, FAST = "secp384r1", "X25519:secp384r1"

CLIENTS = 20
FEW = ab(400, CLIENTS, path=PAGE)
MANY = ab(1600, CLIENTS, path=PAGE)
"""For what takes less: the kernel accounts hundredths of a second."""

ENOUGH = 150
"""Handshakes, over the default threshold of 100."""

AGREEMENT = 0.05
"""Of the CPU time in the report with that of /proc, read just before and after the load."""


def are(count: int, requests: int) -> bool:
    """Whether so many handshakes are those of ab's requests: as each ends it begins another, so
    that some are under way when it has enough."""
    return requests <= count < requests + CLIENTS


class Site:
    """nginx before the change, after it, and after a second one, all in front of one Domino."""

    def __init__(self, folder: Path, certificates, stack: ExitStack):
        self._folder, self._stack = folder, stack
        options = ("--bytes", PAGE_BYTES, "--plain", "--requests", 1)
        self.domino = stack.enter_context(
            other_stacks.domino(folder, certificates["ecdsa"], *options)
        )
        self._upstream = self.domino.process.wait_for_line("plain ").split()[1]
        self.slow = self._nginx("slow", certificates["rsa2048"], SLOW)
        self.fast = self._nginx("fast", certificates["rsa2048"], FAST)
        self.fast_ecdsa = self._nginx("fast-ecdsa", certificates["ecdsa"], FAST)

    def _nginx(self, name: str, certificate, curves: str) -> Server:
        folder = self._folder / name
        folder.mkdir()
        upstream = f"location {PAGE} {{ proxy_pass http://127.0.0.1:{self._upstream}; }}"
        extra = f"ssl_ecdh_curve {curves}; {upstream}"
        return self._stack.enter_context(
            web_servers.nginx(folder, certificate, workers=1, protocols="TLSv1.2", extra=extra)
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory, certificates) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    folder.chmod(0o755)
    with ExitStack() as stack:
        yield Site(folder, certificates, stack)


@pytest.fixture(scope="module")
def before(site, tmp_path_factory) -> Profiled:
    folder = tmp_path_factory.mktemp("before")
    return asked(lambda: profile(folder, site.slow, FEW), lambda profiled: profiled.finding("slow-key-exchange"))


@pytest.fixture(scope="module")
def after(site, tmp_path_factory) -> Profiled:
    return profile(tmp_path_factory.mktemp("after"), site.fast, MANY)


def test_before_the_slow_group_is_found(before):
    finding = before.finding("slow-key-exchange")
    assert finding, before.report.data["findings"]
    assert finding["severity"] == "high"
    assert are(finding["figures"]["affected_handshakes"], before.spent.requests)
    assert finding["figures"]["offered_faster_ratio"] == 1.0
    assert finding["remedy"]["server"] == "nginx"
    assert "ssl_ecdh_curve X25519" in finding["remedy"]["directive"]


def test_before_nearly_all_cpu_time_is_that_of_handshakes(before):
    full = before.service.count(group="secp384r1", signature="rsa_2048", resumption="none")
    assert are(full, before.spent.requests)
    assert before.share_of("handshake") > 0.7


def test_user_and_system_time_are_told_apart(before):
    cpu = before.service.data["cpu_seconds"]
    whole = before.spent.user + before.spent.system
    assert cpu["user"] == pytest.approx(before.spent.user, abs=AGREEMENT * whole)
    assert cpu["system"] == pytest.approx(before.spent.system, abs=AGREEMENT * whole)


def test_after_the_slow_group_is_gone(after):
    assert not after.finding("slow-key-exchange"), after.report.data["findings"]
    full = after.service.count(group="x25519", signature="rsa_2048")
    assert are(full, after.spent.requests)


def test_the_saving_of_the_faster_group_is_predicted(site, tmp_path):
    def measure() -> dict[str, Saving]:
        saved = spend(site.slow, FEW).each - spend(site.fast, MANY).each
        predicted = predicted_saving(tmp_path, site.slow, FEW, "slow-key-exchange")
        return {FAST: Saving(predicted, saved)}

    assert_predicted(measure)


def test_after_the_certificate_is_what_costs_most(after):
    finding = after.finding("costly-certificate")
    assert finding, after.report.data["findings"]
    assert finding["figures"]["accept_ecdsa_ratio"] == 1.0


def test_the_saving_of_an_ecdsa_certificate_is_predicted(site, tmp_path):
    def measure() -> dict[str, Saving]:
        saved = spend(site.fast, MANY).each - spend(site.fast_ecdsa, MANY).each
        predicted = predicted_saving(tmp_path, site.fast, MANY, "costly-certificate")
        return {"ECDSA": Saving(predicted, saved)}

    assert_predicted(measure)


def test_after_both_changes_there_is_nothing_to_find_in_key_and_group(site, tmp_path):
    profiled = profile(tmp_path, site.fast_ecdsa, MANY)
    assert are(profiled.service.count(signature="ecdsa_p256"), profiled.spent.requests)
    for name in ("slow-key-exchange", "costly-certificate"):
        assert not profiled.finding(name), profiled.report.data["findings"]


def test_domino_and_nginx_stand_side_by_side(site, tmp_path):
    """The whole host: the one is slow, the other is not, and each has its own CPU time."""
    with Profiling(tmp_path) as profiling:
        requests = {server: FEW(server.port) for server in (site.slow, site.domino)}
        profiling.finish()
    slow, domino = (profiling.report.on_port(server.port) for server in requests)
    full = slow.count(role="server", group="secp384r1", signature="rsa_2048")
    assert are(full, requests[site.slow])
    full = domino.count(role="server", group="x25519", signature="ecdsa_p256")
    assert are(full, requests[site.domino])
    assert slow.cpu_seconds(role="server") > 2 * domino.cpu_seconds(role="server")


def apache(folder: Path, certificate):
    extra = "SSLOpenSSLConfCmd Groups P-384"
    return web_servers.apache(folder, certificate, "event", extra, "apache2")


def domino(folder: Path, certificate):
    return other_stacks.domino(folder, certificate, "--groups", "P-384")


@pytest.mark.parametrize(
    "start, name, directive",
    [
        (apache, "Apache httpd", "SSLOpenSSLConfCmd Groups X25519"),
        (domino, "HCL Domino", "SSL_DISABLE_CURVE_X25519=0"),
    ],
)
def test_other_servers_are_told_their_own_directive(start, name, directive, rsa, tmp_path):
    with start(tmp_path, rsa) as server:
        profiled = profile(tmp_path, server, ab(ENOUGH, 10, found=False))
    finding = profiled.finding("slow-key-exchange")
    assert finding, profiled.report.data["findings"]
    assert finding["remedy"]["server"] == name
    assert directive in finding["remedy"]["directive"]
