"""The directives of remedies, as the pages in docs/findings have them, pass the servers' own checks.

Those with ML-KEM are checked by servers with OpenSSL 3.5, others by those of the host. Envoy and Caddy have
a file of their own; HCL Domino cannot be had here.
"""

import re
from base64 import b64encode
from http.client import HTTPConnection
from pathlib import Path

import pytest

from harness import plain_nginx
from harness.certificates import Certificate
from harness.newer_servers import Servers, servers
from harness.processes import Process, run
from harness.remedies import PAGES, named
from harness.servers import Server, nginx_folders, on_free_port
from harness.suites import Unobtainable

NGINX = """
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    {folders}
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
LoadModule mpm_event_module {root}/usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module {root}/usr/lib/apache2/modules/mod_authz_core.so
LoadModule socache_shmcb_module {root}/usr/lib/apache2/modules/mod_socache_shmcb.so
LoadModule proxy_module {root}/usr/lib/apache2/modules/mod_proxy.so
LoadModule ssl_module {root}/usr/lib/apache2/modules/mod_ssl.so
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

STUNNEL = """
foreground = yes
pid =
[tls]
accept = 127.0.0.1:0
connect = 127.0.0.1:9
cert = {both}
{directive}
"""

NODE = "require('tls').createSecureContext({{ {directive} }})"

UPSTREAM = """
daemon off;
master_process off;
pid {folder}/proxy.pid;
error_log stderr warn;
events {{}}
http {{
    access_log off;
    {folders}
    upstream backend {{ server 127.0.0.1:{upstream}; {pool} }}
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://{to}; {own} }}
    }}
}}
"""

POST_QUANTUM = "MLKEM"
"""In directives that OpenSSL has been able to follow since 3.5."""

REQUESTS = 20

GLOBALS = ("tune.", "ssl-default-")
IN_FRONTEND = ("backlog",)


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


@pytest.fixture(scope="module")
def program():
    """How to run a program that can follow a directive, and the root of its files."""

    def find(path: str, directive: str) -> tuple[list, Path | str]:
        if POST_QUANTUM not in directive.upper():
            return [Path(path).name], ""
        newer = newer_servers("trixie")
        return newer.command(path), newer.root

    return find


def newer_servers(suite: str) -> Servers:
    try:
        return servers(suite)
    except Unobtainable as error:
        pytest.skip(str(error))


@pytest.mark.harness
@pytest.mark.parametrize("directive", named("nginx"))
def test_nginx(directive, rsa, tmp_path, program):
    config = nginx_config(directive, rsa, tmp_path)
    nginx, _ = program("usr/sbin/nginx", directive)
    done = run([*nginx, "-t", "-e", "stderr", "-c", config])
    assert done.child.returncode == 0, done.describe()


def nginx_config(directive: str, rsa: Certificate, tmp_path: Path) -> Path:
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
    config.write_text(NGINX.format(folder=tmp_path, folders=nginx_folders(tmp_path), key=rsa.key, directive=text, **values))
    return config


@pytest.mark.harness
def test_nginx_compresses_certificates_as_the_page_says(rsa, tmp_path):
    page = (PAGES / "long-certificate-chain.md").read_text()
    (directive,) = set(re.findall(r"`(ssl_certificate_compression on)`", page))
    nginx = newer_servers("sid").command("usr/sbin/nginx")
    done = run([*nginx, "-t", "-e", "stderr", "-c", nginx_config(f"{directive};", rsa, tmp_path)])
    assert done.child.returncode == 0, done.describe()


@pytest.mark.harness
@pytest.mark.parametrize("directive", named("Apache httpd"))
def test_apache(directive, rsa, tmp_path, program):
    apache, root = program("usr/sbin/apache2", directive)
    config = tmp_path / "apache.conf"
    text = on_this_machine(directive, rsa)
    values = dict(folder=tmp_path, cert=rsa.cert, key=rsa.key, root=root)
    config.write_text(APACHE.format(directive=text, **values))
    done = run([*apache, "-t", "-f", config])
    assert done.child.returncode == 0, done.describe()


@pytest.mark.harness
@pytest.mark.parametrize("directive", named("HAProxy"))
def test_haproxy(directive, rsa, tmp_path, program):
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
    haproxy, _ = program("usr/sbin/haproxy", directive)
    done = run([*haproxy, "-c", "-f", config])
    assert done.child.returncode == 0, done.describe()


@pytest.mark.harness
@pytest.mark.parametrize("directive", named("stunnel", least=2, word="curves"))
def test_stunnel(directive, rsa, tmp_path, program):
    config = tmp_path / "stunnel.conf"
    config.write_text(STUNNEL.format(both=rsa.both, directive=directive))
    stunnel, _ = program("usr/bin/stunnel4", directive)
    with Process([*stunnel, config]) as process:
        process.wait_for_line("Configuration successful")


@pytest.mark.harness
@pytest.mark.parametrize("directive", named("Node.js", least=2, word="ecdhCurve"))
def test_node(directive):
    newer = POST_QUANTUM in directive
    # Debian's reads its own scripts by their absolute paths.
    node = newer_servers("trixie").inside("/usr/bin/node") if newer else ["node"]
    done = run([*node, "-e", NODE.format(directive=directive)])
    assert done.child.returncode == 0, done.describe()


@pytest.mark.harness
def test_newer_nginx_keeps_upstream_connections_as_the_page_says(tmp_path):
    """Open by default where there is an upstream block; not for an address, nor with what is to be removed."""
    page = (PAGES / "upstream-keep-alive-off.md").read_text()
    removed = re.search(r"1\.29\.7 and later .*?: remove (.*)\.", page).group(1)
    own = dict.fromkeys(re.findall("`(.*?)`", removed), REQUESTS)
    assert len(own) == 3
    command = newer_servers("sid").command("usr/sbin/nginx")
    with plain_nginx.nginx(tmp_path, "upstream", extra='location / { return 200 "$connection\n"; }') as upstream:
        address = f"127.0.0.1:{upstream.port}"
        for directive, connections in {"": 1, **own}.items():
            values = dict(pool="", own="") | {"pool" if directive.startswith("keepalive") else "own": f"{directive};"}
            values = values if directive else dict(pool="", own="")
            assert upstream_connections(command, tmp_path, upstream, "backend", **values) == connections, directive
        assert upstream_connections(command, tmp_path, upstream, address, pool="", own="") == REQUESTS


def upstream_connections(command: list, folder: Path, upstream: Server, to: str, pool: str, own: str) -> int:
    """How many connections a proxy makes for its requests: the answers are their numbers."""
    config = folder / "proxy.conf"

    def start(port: int) -> Process:
        values = dict(folder=folder, folders=nginx_folders(folder), upstream=upstream.port)
        config.write_text(UPSTREAM.format(port=port, to=to, pool=pool, own=own, **values))
        return Process([*command, "-e", "stderr", "-c", config])

    numbers = set()
    with on_free_port(start) as proxy:
        client = HTTPConnection("127.0.0.1", proxy.port, timeout=10.0)
        for _ in range(REQUESTS):
            client.request("GET", "/")
            numbers.add(client.getresponse().read())
        client.close()
    return len(numbers)
