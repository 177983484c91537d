"""The cipher suites that the installed OpenSSL has, of those that tlsprof knows the cost of."""

import re
from dataclasses import dataclass
from typing import Optional

from .processes import Argument, run

NO_LIMITS = "@SECLEVEL=0"
"""CCM with short tags is below OpenSSL's usual level of security."""

TLS_1_3 = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
]

KNOWN = re.compile(r"(AES_\d+_(GCM|CCM|CBC)|CHACHA20_POLY1305|3DES_EDE_CBC)(_|$)")
"""What of a name in the registry tells that calibrations know it."""


@dataclass(frozen=True)
class Suite:
    """A suite by its name in the registry and by OpenSSL's."""

    name: str
    openssl: str
    version: str
    certificate: str
    """The kind that a server needs for it."""
    exchange: str
    """`RSA`, `DH`, `ECDH`, or `any` in TLS 1.3."""

    def client(self) -> list[Argument]:
        """Options of curl that offer nothing else."""
        if self.version == "1.3":
            return ["--tlsv1.3", "--tls13-ciphers", self.openssl, "--ciphers", f"DEFAULT:{NO_LIMITS}"]
        return ["--tls-max", "1.2", "--ciphers", f"{self.openssl}:{NO_LIMITS}"]

    def server(self) -> list[Argument]:
        """Options of the self-timed server that take nothing else."""
        if self.version == "1.3":
            return ["--tls", "1.3", "--ciphersuites", self.openssl]
        return ["--tls", "1.2", "--ciphers", f"{self.openssl}:{NO_LIMITS}"]


def installed() -> list[Suite]:
    """Those with a key exchange and a certificate, without pre-shared keys and DSS."""
    command = ["openssl", "ciphers", "-stdname", "-v", "-ciphersuites", ":".join(TLS_1_3)]
    listed = run([*command, f"ALL:COMPLEMENTOFALL:{NO_LIMITS}"]).stdout
    return [suite for line in listed.splitlines() if (suite := _suite(line))]


def _suite(line: str) -> Optional[Suite]:
    # TLS_RSA_WITH_AES_128_CBC_SHA - AES128-SHA  SSLv3  Kx=RSA  Au=RSA  Enc=AES(128)  Mac=SHA1
    name, _, openssl, version, exchange, authentication, *_ = line.split()
    certificate = {"Au=RSA": "rsa2048", "Au=any": "rsa2048", "Au=ECDSA": "ecdsa"}.get(authentication)
    exchange = exchange.removeprefix("Kx=")
    plain = exchange in ("RSA", "DH", "ECDH", "any")
    if not (certificate and plain and KNOWN.search(name)):
        return None
    return Suite(name, openssl, "1.3" if version == "TLSv1.3" else "1.2", certificate, exchange)
