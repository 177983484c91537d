"""nginx, Apache, HAProxy and stunnel, each from a configuration in a folder of the test."""

import signal
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Optional

from .certificates import Certificate
from .processes import Process, children, private_copy
from .servers import Server, nginx_folders, on_free_port, plain_http
from .waiting import wait_until

NGINX_CONFIG = """
daemon off;
user www-data;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    {folders}
    ssl_session_cache {sessions};
    server {{
        listen 127.0.0.1:{port} ssl{parameters};
        ssl_certificate {cert};
        ssl_certificate_key {key};
        ssl_protocols {protocols};
        {extra}
        location / {{ return 200 "ok\\n"; }}
    }}
}}
"""

# auth_http is asked only when somebody logs in: nobody does.
NGINX_MAIL_CONFIG = """
load_module /usr/lib/nginx/modules/ngx_mail_module.so;
daemon off;
user www-data;
worker_processes 2;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 512; }}
mail {{
    server_name localhost;
    auth_http 127.0.0.1:9/;
    server {{
        listen 127.0.0.1:{port};
        protocol {protocol};
        smtp_auth login plain;
        starttls on;
        ssl_certificate {cert};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:mail:1m;
    }}
}}
"""

APACHE_CONFIG = """
ServerRoot {folder}
ServerName localhost
LoadModule mpm_{mpm}_module /usr/lib/apache2/modules/mod_mpm_{mpm}.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule socache_shmcb_module /usr/lib/apache2/modules/mod_socache_shmcb.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
Listen 127.0.0.1:{port} https
User www-data
Group www-data
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
Mutex fcntl:{folder} default
ErrorLog /dev/stderr
LogLevel warn
KeepAlive Off
StartServers 2
DocumentRoot {folder}
SSLSessionCache shmcb:{folder}/sessions(512000)
SSLEngine on
SSLCertificateFile {cert}
SSLCertificateKeyFile {key}
SSLProtocol -all +TLSv1.2 +TLSv1.3
{extra}
"""

HAPROXY_CONFIG = """
global
    nbthread 2
    ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
    mode http
    timeout client 20s
    timeout connect 5s
    timeout server 20s
frontend tls
    bind 127.0.0.1:{port} ssl crt {both}{parameters}
    http-request return status 200 content-type text/plain string ok
"""

STUNNEL_CONFIG = """
foreground = yes
pid =
debug = warning
syslog = no
[tls]
accept = 127.0.0.1:{port}
connect = 127.0.0.1:{backend}
cert = {cert}
key = {key}
TIMEOUTclose = 0
"""


def _write(path: Path, template: str, certificate: Certificate, **values: Any) -> Path:
    path.write_text(
        template.format(
            folder=path.parent,
            cert=certificate.cert,
            key=certificate.key,
            both=certificate.both,
            **values,
        )
    )
    return path


@contextmanager
def nginx(
    folder: Path,
    certificate: Certificate,
    workers: int = 2,
    extra: str = "",
    protocols: str = "TLSv1.2 TLSv1.3",
    cpu: Optional[int] = None,
    env: Optional[dict[str, str]] = None,
    parameters: str = "",
    connections: int = 512,
    program: Optional[Path] = None,
    sessions: str = "shared:tests:1m",
) -> Iterator[Server]:
    """nginx with a master and workers; `extra` goes into its server block, `parameters` to its
    listen directive, `sessions` is its session cache. `connections` is what each worker takes at a time. `program` is a copy under
    a name that the test chose."""

    def start(port: int) -> Process:
        values = {"port": port, "workers": workers, "extra": extra}
        values |= {"parameters": parameters, "connections": connections, "protocols": protocols}
        values |= {"sessions": sessions, "folders": nginx_folders(folder)}
        config = _write(folder / "nginx.conf", NGINX_CONFIG, certificate, **values)
        return Process([program or private_copy("nginx", folder), "-e", "stderr", "-c", config], cpu=cpu, env=env)

    with on_free_port(start) as server:
        wait_until(lambda: len(children(server.pid)) == workers, "nginx workers")
        yield server


@contextmanager
def nginx_mail(folder: Path, certificate: Certificate, protocol: str) -> Iterator[Server]:
    """nginx as a mail proxy: `protocol` is smtp, imap or pop3, which switch to TLS on demand."""

    def start(port: int) -> Process:
        values = {"port": port, "protocol": protocol}
        config = _write(folder / "nginx.conf", NGINX_MAIL_CONFIG, certificate, **values)
        return Process([private_copy("nginx", folder), "-e", "stderr", "-c", config])

    with on_free_port(start) as server:
        wait_until(lambda: len(children(server.pid)) == 2, "nginx workers")
        yield server


def reload_nginx(server: Server) -> None:
    """Reloads and waits until the workers that served before have all been replaced."""
    before = set(children(server.pid))
    server.process.send(signal.SIGHUP)
    wait_until(lambda: before.isdisjoint(children(server.pid)), "new nginx workers")


@contextmanager
def apache(
    folder: Path,
    certificate: Certificate,
    mpm: str,
    extra: str = "",
    name: Optional[str] = None,
) -> Iterator[Server]:
    """Apache with the worker or the event module; `extra` goes to the end of its configuration.
    Its program is a copy, which may have a name that the test chose."""

    def start(port: int) -> Process:
        values = {"port": port, "mpm": mpm, "extra": extra}
        config = _write(folder / "apache.conf", APACHE_CONFIG, certificate, **values)
        return Process([private_copy("apache2", folder, name), "-D", "FOREGROUND", "-f", config])

    with on_free_port(start) as server:
        yield server


@contextmanager
def haproxy(folder: Path, certificate: Certificate, parameters: str = "") -> Iterator[Server]:
    """HAProxy; `parameters` go to its bind line."""

    def start(port: int) -> Process:
        values = {"port": port, "parameters": parameters}
        config = _write(folder / "haproxy.cfg", HAPROXY_CONFIG, certificate, **values)
        return Process([private_copy("haproxy", folder), "-db", "-f", config])

    with on_free_port(start) as server:
        yield server


@contextmanager
def stunnel(folder: Path, certificate: Certificate) -> Iterator[Server]:
    """stunnel in front of a plain HTTP server."""
    with plain_http() as backend:

        def start(port: int) -> Process:
            values = {"port": port, "backend": backend.port}
            config = _write(folder / "stunnel.conf", STUNNEL_CONFIG, certificate, **values)
            return Process([private_copy("stunnel4", folder), config])

        with on_free_port(start) as server:
            yield server
