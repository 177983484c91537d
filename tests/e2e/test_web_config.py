"""TLS and passwords of the metrics listener, with the tools that people use."""

import re
import shutil
import subprocess
import urllib.parse
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

import pytest

from harness import metrics
from harness.certificates import Certificate, make_certificate
from harness.paths import TLSPROF
from harness.processes import run
from harness.profiler import Agent, start_agent
from harness.together import own_folder, together
from harness.waiting import wait_until

USER, PASSWORD = "prometheus", "correct horse"

TLS_CONFIG = """
tls_server_config:
  cert_file: {cert}
  key_file: {key}
  min_version: TLS13
http_server_config:
  headers:
    X-Content-Type-Options: nosniff
basic_auth_users:
  {user}: {hash}
"""

# curl's own names of what went wrong.
HANDSHAKE_FAILED, UNKNOWN_AUTHORITY = 35, 60


@pytest.fixture
def certificate(tmp_path) -> Certificate:
    """In the folder of the test, which may replace it."""
    return make_certificate(tmp_path, "ecdsa")


@pytest.fixture
def web_config(tmp_path, certificate) -> Path:
    """TLS 1.3 and one user. Certificate and key are named relative to the file."""
    hashed = run(["htpasswd", "-nbBC", "10", USER, PASSWORD]).stdout.strip().split(":")[1]
    file = tmp_path / "web.yml"
    file.write_text(
        TLS_CONFIG.format(
            cert=certificate.cert.name, key=certificate.key.name, user=USER, hash=hashed
        )
    )
    return file


@contextmanager
def agent_with(web_config: Path) -> Iterator[Agent]:
    # No process of that name: the listener alone is under test.
    with start_agent(["--web-config", web_config, "--service", "nothing-to-profile"]) as agent:
        assert agent.url.startswith("https://"), agent.url
        yield agent


def curl(
    agent: Agent, ca: Path, *options, user: str = f"{USER}:{PASSWORD}"
) -> tuple[int, int, str]:
    """Exit status of curl, status of HTTP (0 for none), and the answer with its head."""
    url = re.sub("127.0.0.1", "localhost", agent.url)
    done = run(
        ["curl", "--silent", "--show-error", "--include", "--max-time", "10", "--cacert", ca]
        + (["--user", user] if user else [])
        + [*options, url]
    )
    status = re.match(r"HTTP/1.1 (\d+)", done.stdout)
    return done.child.returncode, int(status.group(1)) if status else 0, done.stdout


def test_promtool_and_the_agent_agree_on_the_file(web_config):
    good = run(["promtool", "check", "web-config", web_config])
    assert good.child.returncode == 0, good.describe()
    web_config.write_text(web_config.read_text().replace("min_version", "least_version"))
    bad = run(["promtool", "check", "web-config", web_config])
    assert bad.child.returncode != 0, bad.describe()
    ours = run([TLSPROF, "agent", "--listen", "127.0.0.1:0", "--web-config", web_config])
    assert ours.child.returncode == 1
    assert f"{web_config}:5: tls_server_config.least_version: unknown field" in ours.stderr


def test_only_the_right_password_authority_and_version_will_do(web_config, certificate, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    stranger = make_certificate(other, "ecdsa")
    with agent_with(web_config) as agent:
        code, status, answer = curl(agent, certificate.cert)
        assert (code, status) == (0, 200), answer
        assert "x-content-type-options: nosniff" in answer
        assert "tlsprof_build_info" in answer
        for user in (f"{USER}:wrong", f"nobody:{PASSWORD}", ""):
            code, status, answer = curl(agent, certificate.cert, user=user)
            assert (code, status) == (0, 401), answer
            assert "www-authenticate: Basic" in answer and "tlsprof_" not in answer
        assert curl(agent, stranger.cert)[0] == UNKNOWN_AUTHORITY
        code, status, _ = curl(agent, certificate.cert, "--tlsv1.2", "--tls-max", "1.2")
        assert (code, status) == (HANDSHAKE_FAILED, 0)
        plain = run(["curl", "--silent", "--max-time", "10", agent.url.replace("https", "http")])
        assert plain.child.returncode != 0 and "tlsprof_" not in plain.stdout
        # The agent goes on.
        assert curl(agent, certificate.cert)[:2] == (0, 200)


def test_a_prometheus_scrapes_over_tls_with_a_password(web_config, certificate, tmp_path):
    secure = f"""
    scheme: https
    tls_config: {{ca_file: {certificate.cert}, server_name: localhost}}
    basic_auth: {{username: {USER}, password: {PASSWORD}}}
"""
    wrong = secure.replace(PASSWORD, "wrong")
    with agent_with(web_config) as agent:
        target = urllib.parse.urlsplit(agent.url).netloc
        both = {
            name: metrics.prometheus(own_folder(tmp_path, name), target, more)
            for name, more in (("good", secure), ("bad", wrong))
        }
        with together(both) as prometheus:
            good, bad = prometheus["good"], prometheus["bad"]
            wait_until(lambda: good.query('up{job="tlsprof"}') == 1, "a scrape")
            assert good.query("count(tlsprof_build_info)") == 1
            wait_until(lambda: bad.query('up{job="tlsprof"}') == 0, "a scrape that is refused")


def served_certificate(agent: Agent) -> str:
    address = urllib.parse.urlsplit(agent.url).netloc
    shown = subprocess.run(
        ["openssl", "s_client", "-connect", address], input="", capture_output=True, text=True
    )
    certificate = re.search(r"-----BEGIN.*?-----END CERTIFICATE-----", shown.stdout, re.DOTALL)
    return certificate.group() if certificate else ""


def test_a_certificate_is_renewed_without_a_restart(web_config, certificate, tmp_path):
    renewal = tmp_path / "renewal"
    renewal.mkdir()
    with agent_with(web_config) as agent:
        assert served_certificate(agent) == certificate.cert.read_text().strip()
        renewed = make_certificate(renewal, "ecdsa")
        # As clients for ACME do it: one after the other, each in one step.
        shutil.move(renewed.cert, certificate.cert)
        # Certificate and key that do not fit together are shown to nobody.
        assert served_certificate(agent) == ""
        shutil.move(renewed.key, certificate.key)
        assert served_certificate(agent) == certificate.cert.read_text().strip()
        assert curl(agent, certificate.cert)[:2] == (0, 200)
        assert agent.process.stderr.count("tls_server_config.key_file: does not fit") == 1


def test_users_change_without_a_restart(web_config, certificate):
    with agent_with(web_config) as agent:
        assert curl(agent, certificate.cert)[:2] == (0, 200)
        web_config.write_text(web_config.read_text().replace(f"{USER}:", "somebody:"))
        assert curl(agent, certificate.cert)[:2] == (0, 401)
        assert curl(agent, certificate.cert, user=f"somebody:{PASSWORD}")[:2] == (0, 200)
