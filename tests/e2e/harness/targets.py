"""Servers of every TLS stack, with what each can negotiate and the load that shows all of it."""

import shutil
import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from . import other_stacks, servers, web_servers
from .catalogue import Start
from .certificates import Certificate
from .load import Load
from .servers import Server

NGINX_GROUPS = "X25519:P-256:P-384:ffdhe2048"


@dataclass(frozen=True)
class Target:
    """A server, and where it differs from what most can do."""

    start: Start
    versions: tuple[str, ...] = ("1.2", "1.3")
    openssl: bool = False
    """Its TLS is a libssl that can be probed."""
    session_ids: bool = True
    """It resumes TLS 1.2 by session id; all do by ticket."""
    rsa_transport: bool = True
    dhe: bool = False
    """DHE in TLS 1.2."""
    ffdhe: bool = True
    """ffdhe2048 in TLS 1.3. Java 17 has it, too, but drops the leading zeros of the shared secret:
    one handshake in 256 fails."""
    x448: bool = True
    silent: bool = False
    """It closes on what it does not like, without an alert: to its peer, it may as well have
    gone away."""
    needs: tuple[str, ...] = ()
    """Programs without which it is left out."""

    @property
    def missing(self) -> list[str]:
        return [program for program in self.needs if not shutil.which(program)]

    @property
    def means(self) -> set[str]:
        """How it resumes."""
        found = {"ticket", "session_id"} if self.session_ids else {"ticket"}
        return found | {"psk"} if "1.3" in self.versions else found

    @property
    def groups(self) -> set[str]:
        """What it agrees on keys with."""
        found = {"x25519", "secp256r1", "secp384r1"}
        if "1.3" in self.versions:
            found |= {"x448"} if self.x448 else set()
        return found | ({"ffdhe2048"} if self.ffdhe else set())

    def loads(self, plain: bool = True, times: int = 1) -> list[Load]:
        """Some hundreds of connections that show all that it can negotiate, so many times."""
        found = times * [load for tls in self.versions for load in self._loads(tls)]
        return found if plain else [replace(load, plain=0) for load in found]

    def _loads(self, tls: str) -> list[Load]:
        mix = Load(tls=tls, full=40, resume=60, plain=20, dribble=10)
        broken = Load(tls=tls, abort_hello=6, abort_flight=6, reset=6, garbage=6, reject=6)
        broken = replace(broken, no_version=6, no_group=0 if self.x448 else 6)
        groups = ["P-256", "P-384", "X25519"]
        if tls == "1.2":
            more = [Load(tls=tls, full=20, resume=40, tickets=False)]
            suites = [("AES128-GCM-SHA256", self.rsa_transport)]
            suites += [("DHE-RSA-AES128-GCM-SHA256", self.dhe)]
            more += [Load(tls=tls, full=10, ciphers=suite) for suite, has in suites if has]
        else:
            # Servers without X448 ask for another group (HelloRetryRequest).
            groups += ["X448:P-384"] + ["ffdhe2048"] * self.ffdhe
            more = [Load(tls=tls, full=10, ciphersuites="TLS_CHACHA20_POLY1305_SHA256")]
        return [mix, broken, *more, *(Load(tls=tls, full=6, groups=group) for group in groups)]


def nginx(folder: Path, certificate: Certificate) -> AbstractContextManager[Server]:
    """nginx that also takes DHE, and not X448."""
    parameters = folder / "ffdhe2048.pem"
    subprocess.run(
        ["openssl", "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048"]
        + ["-out", parameters],
        check=True,
        capture_output=True,
    )
    extra = f"ssl_dhparam {parameters}; ssl_ecdh_curve {NGINX_GROUPS};"
    return web_servers.nginx(folder, certificate, extra=extra)


TARGETS: dict[str, Target] = {
    "nginx": Target(nginx, openssl=True, dhe=True, x448=False),
    "apache": Target(lambda *where: web_servers.apache(*where, "event"), openssl=True, dhe=True),
    "haproxy": Target(web_servers.haproxy, openssl=True),
    "node": Target(servers.node, openssl=True, session_ids=False),
    "stunnel": Target(web_servers.stunnel, openssl=True, ffdhe=False),
    "go": Target(other_stacks.go, session_ids=False, ffdhe=False, x448=False),
    "rustls": Target(other_stacks.rustls, rsa_transport=False, ffdhe=False, x448=False),
    "java": Target(other_stacks.java, dhe=True, ffdhe=False, silent=True),
    "java-pool": Target(
        lambda *where: other_stacks.java(*where, other_stacks.JAVA_THREADS),
        dhe=True,
        ffdhe=False,
        silent=True,
    ),
    "gnutls-serv": Target(other_stacks.gnutls_serv, dhe=True),
    "selfserv": Target(other_stacks.selfserv, dhe=True, x448=False, needs=("selfserv", "pk12util")),
    "static-http": Target(other_stacks.static_http, dhe=True),
    "static-http-1.2": Target(
        lambda *where: other_stacks.static_http(*where, "1.2"),
        versions=("1.2",),
        dhe=True,
    ),
}
