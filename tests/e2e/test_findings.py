"""Findings on a real nginx: there in the bad configuration, absent in the good one."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import plain_nginx, servers
from harness.certificates import Certificate
from harness.load import Load, run_load
from harness.paths import SERVERS
from harness.plain_nginx import request
from harness.processes import run
from harness.profiler import Profiling, Report
from harness.scenarios import TOLERANCE, find
from harness.sequential import assert_agrees, repeats
from harness.servers import SYSTEM_PYTHON
from harness.web_servers import nginx

ENOUGH = 150
"""Handshakes, over the default threshold of 100."""

ENOUGH_FOR_A_COST = 10
"""Measured handshakes without which no cost is told."""

TURNS = 5
"""Of two kinds of handshakes that are compared."""

CBC = "ECDHE-RSA-AES256-SHA384"
GCM = "ECDHE-RSA-AES256-GCM-SHA384"

MEGABYTES = 800
"""Enough for two seconds of encryption with CBC on any machine that runs these tests."""

NO_SESSIONS = "ssl_session_cache off; ssl_session_tickets off;"


def profiled(folder: Path, port: int, *loads: Load) -> Report:
    """A report of that server alone, so that no other service of the host tells a cost."""
    with Profiling(folder, "--port", port) as profiling:
        for load in loads:
            run_load(load, port)
        profiling.finish()
    return profiling.report


@pytest.mark.parametrize("curves, expected", [("secp384r1", True), ("X25519:secp384r1", False)])
def test_slow_key_exchange_is_found_where_clients_offer_a_faster_one(curves, expected, rsa, tmp_path):
    extra = f"ssl_ecdh_curve {curves};"
    with nginx(tmp_path, rsa, workers=1, extra=extra) as server:
        report = profiled(tmp_path, server.port, Load(full=ENOUGH, groups="X25519:P-384"))
    finding = find(report, server.port, "slow-key-exchange")
    assert (finding is not None) == expected, report.data["findings"]
    if finding:
        assert finding["figures"]["affected_handshakes"] == ENOUGH
        assert finding["figures"]["offered_faster_ratio"] == 1.0
        assert "ssl_ecdh_curve X25519" in finding["remedy"]["directive"]
        assert finding["remedy"]["server"] == "nginx"


def test_the_saving_of_a_faster_group_is_measured_in_the_same_service(rsa, tmp_path):
    extra = "ssl_ecdh_curve secp384r1:X25519;"
    with nginx(tmp_path, rsa, workers=1, extra=extra) as server:
        # In turns: what else the machine does at a time costs both.
        offers = ("P-384:X25519", "X25519") * TURNS
        loads = [Load(full=ENOUGH // TURNS, groups=groups, tls="1.3") for groups in offers]
        report = profiled(tmp_path, server.port, *loads)
    finding = find(report, server.port, "slow-key-exchange")
    assert finding, report.data["findings"]
    prediction = finding["prediction"]
    assert (prediction["kind"], prediction["source"]) == ("saving", "this_service")
    service = report.on_port(server.port)
    means = {
        group: service.cpu_seconds(group=group, outcome="completed")
        / service.count(group=group, outcome="completed")
        for group in ("secp384r1", "x25519")
    }
    measured = (means["secp384r1"] - means["x25519"]) * ENOUGH
    assert prediction["cpu_seconds"]["likely"] == pytest.approx(measured, rel=TOLERANCE)


def predicted_and_spent(folder: Path, certificate: Certificate, curves: str) -> tuple[float, float]:
    """CPU seconds a handshake: the saving that is predicted, and what it takes."""
    folder.mkdir()
    with nginx(folder, certificate, workers=1, extra=f"ssl_ecdh_curve {curves};") as server:
        report = profiled(folder, server.port, Load(full=ENOUGH, groups="X25519:P-384"))
    finding = find(report, server.port, "slow-key-exchange")
    spent = report.on_port(server.port).cpu_seconds(role="server") / ENOUGH
    if not finding:
        return 0.0, spent
    prediction = finding["prediction"]
    assert prediction["source"] == "calibration", prediction
    return prediction["cpu_seconds"]["likely"] / ENOUGH, spent


def predicted_to_saved(folder: Path, certificate: Certificate) -> float:
    """Of a change of the group."""
    predicted, before = predicted_and_spent(folder / "slow", certificate, "secp384r1")
    _, after = predicted_and_spent(folder / "fast", certificate, "X25519:secp384r1")
    return predicted / (before - after)


@pytest.mark.host
def test_a_calibration_predicts_a_saving(rsa, tmp_path):
    """No handshake on this host shows the cost of X25519 before the change is made."""
    assert predicted_to_saved(tmp_path, rsa) > 0


@pytest.mark.long
def test_a_calibration_predicts_what_the_change_saves(rsa, tmp_path_factory):
    figures = repeats(lambda: predicted_to_saved(tmp_path_factory.mktemp("calibration"), rsa))
    assert_agrees(figures, expected=1.0, within=TOLERANCE)


@pytest.mark.parametrize("limit, name", [(1, "keep-alive-off"), (5, "connections-closed-after-n-turns"), (1000, None)])
def test_connections_that_end_too_soon_are_found(limit, name, rsa, tmp_path):
    extra = f"ssl_certificate {rsa.cert}; ssl_certificate_key {rsa.key};" + plain_nginx.ANSWER
    with plain_nginx.nginx(tmp_path, "nginx-turns", limit, extra, parameters=" ssl") as server:
        with Profiling(tmp_path) as profiling:
            made = request(server.port, min(limit, 5) * ENOUGH, rsa.cert)
            profiling.finish()
    report = profiling.report
    for one in ("keep-alive-off", "connections-closed-after-n-turns"):
        finding = find(report, server.port, one)
        assert (finding is not None) == (one == name), report.data["findings"]
        if finding:
            assert finding["observed_count"] == made == ENOUGH
            assert finding["figures"]["turns"] == limit
            assert "keepalive" in finding["remedy"]["directive"]


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("keeps", [False, True])
def test_refused_sessions_are_found(version, keeps, rsa, tmp_path):
    folders = [tmp_path / "giver", tmp_path / "taker"]
    for folder in folders:
        folder.mkdir()
    with ExitStack() as stack:
        giver = stack.enter_context(nginx(folders[0], rsa, workers=1))
        taker = giver
        if not keeps:
            taker = stack.enter_context(nginx(folders[1], rsa, workers=1, extra=NO_SESSIONS))
        with Profiling(tmp_path) as profiling:
            arguments = [giver.port, taker.port, ENOUGH, version, rsa.cert]
            done = run([SYSTEM_PYTHON, SERVERS / "session_client.py", *arguments])
            assert done.child.returncode == 0, done.describe()
            profiling.finish()
    assert json.loads(done.stdout)["resumed"] == (ENOUGH if keeps else 0)
    report = profiling.report
    finding = find(report, taker.port, "resumption-refused")
    assert (finding is None) == keeps, report.data["findings"]
    if finding:
        assert finding["figures"]["refused_handshakes"] == ENOUGH
        steps = report.on_port(taker.port).data["steps"]
        # Another process of the host may keep libcrypto from being probed, from the beginning or in between.
        measured = max((step["measured_handshakes"] for step in steps), default=0) >= ENOUGH_FOR_A_COST
        assert finding["prediction"]["kind"] == ("saving" if measured else "unknown")
        assert "ssl_session_cache shared" in finding["remedy"]["directive"]


@pytest.mark.parametrize("form", ["fork", "epoll"])
def test_a_process_for_each_connection_is_found(form, rsa, tmp_path):
    with servers.selftimed(form, rsa) as server:
        report = profiled(tmp_path, server.port, Load(full=ENOUGH))
    finding = find(report, server.port, "process-per-connection")
    assert (finding is not None) == (form == "fork"), report.data["findings"]
    if finding:
        # One process may be forked before the ledger knows the service.
        assert ENOUGH - 1 <= finding["figures"]["processes_forked"] <= ENOUGH
        # Forking, ending and page faults were over a third of the CPU time of this server.
        assert finding["prediction"]["kind"] == "saving"
        assert 0.1 < finding["prediction"]["cpu_ratio"]["likely"] < 0.8


def downloaded(folder: Path, certificate: Certificate, suites: str) -> tuple[Report, int]:
    """A report on an nginx that has sent megabytes to a client that offers both suites."""
    folder.mkdir()
    (folder / "file").write_bytes(bytes(1_000_000))
    extra = f"""
        ssl_certificate {certificate.cert}; ssl_certificate_key {certificate.key};
        ssl_protocols TLSv1.2; ssl_ciphers {suites};
        location /file {{ alias {folder}/file; }}
    """
    with plain_nginx.nginx(folder, "nginx-cipher", extra=extra, parameters=" ssl") as server:
        with Profiling(folder, "--port", server.port) as profiling:
            url = f"https://localhost:{server.port}/file?[1-{MEGABYTES}]"
            options = ["--cacert", certificate.cert, "--resolve", f"localhost:{server.port}:127.0.0.1"]
            done = run(["curl", "-s", "-f", *options, "-o", "/dev/null", url])
            assert done.child.returncode == 0, done.describe()
            profiling.finish()
        return profiling.report, server.port


def encryption(report: Report, port: int) -> float:
    """CPU seconds."""
    rows = report.on_port(port).data["activities"]
    return sum(row["cpu_seconds"] for row in rows if row["activity"] == "encryption")


@pytest.mark.host
def test_a_costly_cipher_is_found(rsa, tmp_path):
    costly_cipher(tmp_path, rsa)


@pytest.mark.long
def test_the_saving_of_another_cipher_is_predicted(rsa, tmp_path_factory):
    figures = repeats(lambda: costly_cipher(tmp_path_factory.mktemp("cipher"), rsa))
    assert_agrees(figures, expected=1.0, within=TOLERANCE)


def costly_cipher(folder: Path, certificate: Certificate) -> float:
    """What the finding predicts to what the change saves; the finding is there before it alone."""
    before, port = downloaded(folder / "cbc", certificate, CBC)
    finding = find(before, port, "costly-cipher")
    assert finding, before.data["findings"]
    assert finding["figures"]["offered_aes_gcm_ratio"] == 1.0
    assert finding["figures"]["bytes"] == pytest.approx(MEGABYTES * 1e6, rel=0.01)
    assert "ssl_ciphers ECDHE+AESGCM" in finding["remedy"]["directive"]
    assert finding["prediction"]["source"] == "calibration", finding
    spent = encryption(before, port)
    after, port = downloaded(folder / "gcm", certificate, GCM)
    assert not find(after, port, "costly-cipher"), after.data["findings"]
    saved = spent - encryption(after, port)
    return finding["prediction"]["cpu_seconds"]["likely"] / saved
