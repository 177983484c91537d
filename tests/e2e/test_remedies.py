"""The directives of remedies, as the pages in docs/findings tell them, pass the servers' own checks."""

import re
from base64 import b64encode
from pathlib import Path
from typing import Iterator

import pytest

from harness.certificates import Certificate
from harness.processes import run

PAGES = Path(__file__).parents[2] / "docs" / "findings"

NGINX = """
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {upstream}
    server {{
        {listen}
        {own}
        ssl_certificate_key {key};
        {directive}
    }}
}}
"""

APACHE = """
ServerRoot {folder}
ServerName localhost
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule socache_shmcb_module /usr/lib/apache2/modules/mod_socache_shmcb.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
ErrorLog /dev/stderr
Listen 127.0.0.1:8443 https
SSLEngine on
SSLCertificateFile {cert}
SSLCertificateKeyFile {key}
{directive}
"""

HAPROXY = """
global
    {globals}
defaults
    mode http
    timeout client 20s
    timeout connect 5s
    timeout server 20s
    {defaults}
frontend tls
    {bind}
    {frontend}
    http-request return status 200
"""

GLOBALS = ("tune.", "ssl-default-")
IN_FRONTEND = ("backlog",)


def directives(server: str) -> Iterator[tuple[str, str]]:
    """Page and directive of each remedy for that server."""
    for page in sorted(PAGES.glob("*.md")):
        for block in page.read_text().split("\n**")[1:]:
            name, _, rest = block.partition(".**")
            advice = rest.split("\n**")[0]
            code = re.search(r"\n```\n(.*?)\n```", advice, re.S)
            if name == server and code:
                yield page.stem, code[1]


def on_this_machine(directive: str, certificate: Certificate) -> str:
    """With files that are there, in place of those of the examples."""
    tickets = certificate.key.with_name("ticket.key")
    tickets.write_bytes(bytes(48))
    several = tickets.with_suffix(".keys")
    several.write_text(3 * (b64encode(bytes(48)).decode() + "\n"))
    directive = re.sub(r"/etc/\S*?ticket\.keys", str(several), directive)
    directive = re.sub(r"/etc/\S*?ticket\.key(?=[;\s]|$)", str(tickets), directive)
    directive = re.sub(r"/etc/\S*?\.key(?=[;\s]|$)", str(certificate.key), directive)
    directive = re.sub(r"/etc/\S*?\.pem(?=[;\s]|$)", str(certificate.both), directive)
    return directive.replace("/run/apache2/ssl_scache", "/tmp/tlsprof-remedies-scache")


def named(server: str) -> list:
    found = list(directives(server))
    assert len(found) > 8, f"{server}: the pages have changed their form"
    return [pytest.param(directive, id=page) for page, directive in found]


@pytest.mark.harness
@pytest.mark.parametrize("directive", named("nginx"))
def test_nginx(directive, rsa, tmp_path):
    lines = on_this_machine(directive, rsa).splitlines()
    upstream = "\n".join(line for line in lines if line.startswith("upstream"))
    listen = [line for line in lines if line.startswith("listen")] or ["listen 443 ssl;"]
    rest = [line for line in lines if not line.startswith(("upstream", "listen"))]
    values = dict(upstream=upstream, listen=listen[0].replace("443", "127.0.0.1:8443"))
    config = tmp_path / "nginx.conf"
    text = "\n".join(rest)
    # A certificate with a key comes beside that of the server, one without in its place.
    replaces = "ssl_certificate " in text and "ssl_certificate_key" not in text
    values["own"] = "" if replaces else f"ssl_certificate {rsa.cert};"
    config.write_text(NGINX.format(folder=tmp_path, key=rsa.key, directive=text, **values))
    done = run(["nginx", "-t", "-e", "stderr", "-c", config])
    assert done.child.returncode == 0, done.describe()


@pytest.mark.harness
@pytest.mark.parametrize("directive", named("Apache httpd"))
def test_apache(directive, rsa, tmp_path):
    config = tmp_path / "apache.conf"
    text = on_this_machine(directive, rsa)
    config.write_text(APACHE.format(folder=tmp_path, cert=rsa.cert, key=rsa.key, directive=text))
    done = run(["apache2", "-t", "-f", config])
    assert done.child.returncode == 0, done.describe()


@pytest.mark.harness
@pytest.mark.parametrize("directive", named("HAProxy"))
def test_haproxy(directive, rsa, tmp_path):
    lines = on_this_machine(directive, rsa).splitlines()
    bind = [line for line in lines if line.startswith("bind")] or [f"bind :443 ssl crt {rsa.both}"]
    others = [line for line in lines if not line.startswith("bind")]
    globals_ = [line for line in others if line.startswith(GLOBALS)]
    frontend = [line for line in others if line.startswith(IN_FRONTEND)]
    defaults = [line for line in others if line not in globals_ + frontend]
    text = HAPROXY.format(
        globals="\n    ".join(globals_),
        defaults="\n    ".join(defaults),
        bind=bind[0].replace(":443", "127.0.0.1:8443"),
        frontend="\n    ".join(frontend),
    )
    config = tmp_path / "haproxy.cfg"
    config.write_text(text)
    done = run(["haproxy", "-c", "-f", config])
    assert done.child.returncode == 0, done.describe()
