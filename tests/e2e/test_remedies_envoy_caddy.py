"""The directives of remedies for Envoy and Caddy pass these servers' own checks."""

import json
from pathlib import Path
from textwrap import indent

import pytest

from harness.certificates import Certificate
from harness.paths import TOOLS
from harness.processes import run
from harness.remedies import named

pytestmark = [pytest.mark.long, pytest.mark.harness]

ENVOY = """
static_resources:
  listeners:
  - address: {{ socket_address: {{ address: 127.0.0.1, port_value: 0 }} }}
{listener}
    filter_chains:
    - transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
{server}
          common_tls_context:
{common}
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: tls
          common_http_protocol_options:
            max_headers_count: 100
{http}
          route_config: {{ virtual_hosts: [] }}
  clusters:
  - name: upstream
    load_assignment: {{ cluster_name: upstream }}
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
{client}
"""

ENVOY_PLACES = {
    "tcp_backlog_size": ("listener", 4),
    "session_": ("server", 10),
    "disable_": ("server", 10),
    "tls_": ("common", 12),
    "max_requests_per_connection": ("http", 12),
    "idle_timeout": ("http", 12),
    "max_session_keys": ("client", 8),
}
"""Where in the configuration a directive goes that begins so, and how far in."""

OWN_CERTIFICATE = "tls_certificates:\n- certificate_chain: { filename: site.pem }\n  private_key: { filename: site.key }"

CADDY = """
{{
    admin off
    auto_https off
}}
https://localhost:8443 {{
    tls {cert} {key} {{
{directive}
    }}
}}
"""


def found(name: str) -> Path:
    """A server that deploy/packages/tools.sh brings."""
    program = TOOLS / name
    if not program.exists():
        pytest.skip(f"no {name}: deploy/packages/tools.sh servers")
    return program


@pytest.mark.parametrize("directive", named("Envoy"))
def test_envoy(directive, certificates, tmp_path):
    texts = dict.fromkeys(("listener", "server", "common", "http", "client"), "")
    (place, depth) = next(where for begin, where in ENVOY_PLACES.items() if directive.startswith(begin))
    texts[place] = indent(directive, depth * " ")
    if "tls_certificates" not in directive:
        texts["common"] += "\n" + indent(OWN_CERTIFICATE, 12 * " ")
    config = tmp_path / "envoy.yaml"
    config.write_text(with_certificates(ENVOY.format(**texts), certificates))
    done = run([found("envoy"), "--mode", "validate", "--log-level", "warning", "-c", config])
    assert done.child.returncode == 0, done.describe()


def with_certificates(text: str, certificates: dict[str, Certificate]) -> str:
    """With files that are there, in place of those of the examples."""
    rsa, ecdsa = certificates["rsa2048"], certificates["ecdsa"]
    for name, one in {"site-ecdsa": ecdsa, "site-rsa": rsa, "site-chain": rsa, "site": rsa}.items():
        text = text.replace(f"{name}.pem", str(one.cert)).replace(f"{name}.key", str(one.key))
    tickets = rsa.key.with_name("envoy-ticket.key")
    tickets.write_bytes(bytes(80))
    return text.replace("/etc/envoy/ticket.key", str(tickets))


@pytest.mark.parametrize("directive", named("Caddy", least=2))
def test_caddy(directive, rsa, tmp_path):
    """And the groups are those that it is to have."""
    inside = directive.removeprefix("tls {\n").removesuffix("\n}")
    config = tmp_path / "Caddyfile"
    config.write_text(CADDY.format(cert=rsa.cert, key=rsa.key, directive=inside))
    settings = dict(env={"HOME": str(tmp_path)})
    arguments = ["--config", config, "--adapter", "caddyfile"]
    done = run([found("caddy"), "validate", *arguments], **settings)
    assert done.child.returncode == 0, done.describe()
    adapted = json.loads(run([found("caddy"), "adapt", *arguments], **settings).stdout)
    (policy, *_) = adapted["apps"]["http"]["servers"]["srv0"]["tls_connection_policies"]
    assert policy["curves"] == inside.split()[1:]
