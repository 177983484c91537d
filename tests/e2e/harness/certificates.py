"""Keys and certificates for the servers, made by openssl for each run."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_KEYS = {
    "rsa2048": ["-newkey", "rsa:2048"],
    "rsa4096": ["-newkey", "rsa:4096"],
    "ecdsa": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "ed25519": ["-newkey", "ed25519"],
}


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate for localhost."""

    cert: Path
    key: Path
    both: Path
    """Certificate and key in one file, as HAProxy wants them."""


def make_certificate(folder: Path, kind: str) -> Certificate:
    """Makes a certificate of kind rsa2048, rsa4096, ecdsa or ed25519."""
    made = Certificate(folder / f"{kind}.crt", folder / f"{kind}.key", folder / f"{kind}.pem")
    subprocess.run(
        ["openssl", "req", "-x509", *_KEYS[kind], "-noenc", "-days", "2"]
        + ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
        + ["-out", str(made.cert), "-keyout", str(made.key)],
        check=True,
        capture_output=True,
    )
    made.both.write_text(made.cert.read_text() + made.key.read_text())
    made.key.chmod(0o644)  # servers that change their user read it again
    return made


def make_chain(folder: Path, intermediates: int) -> Certificate:
    """A certificate with an RSA-2048 key for localhost, and so many that lead to a root, all with
    one RSA-4096 key. `cert` holds what a server is to send: not the root."""
    made = Certificate(folder / "chain.crt", folder / "chain.key", folder / "chain.pem")
    key = folder / "issuers.key"
    _openssl("genrsa", "-out", key, 4096)
    issuers = [folder / f"issuer{number}.crt" for number in range(intermediates + 1)]
    for number, issuer in enumerate(issuers):
        by = ["-CA", issuers[number - 1], "-CAkey", key] if number else []
        subject = f"/O=tlsprof tests/CN=Issuer {number}"
        _openssl("req", "-x509", "-key", key, "-subj", subject, "-days", 2, *by, "-out", issuer)
    leaf = folder / "leaf.crt"
    _openssl(
        *["req", "-x509", *_KEYS["rsa2048"], "-noenc", "-days", 2, "-subj", "/CN=localhost"],
        *["-addext", "subjectAltName=DNS:localhost", "-CA", issuers[-1], "-CAkey", key],
        *["-out", leaf, "-keyout", made.key],
    )
    made.cert.write_text("".join(one.read_text() for one in [leaf, *reversed(issuers[1:])]))
    made.both.write_text(made.cert.read_text() + made.key.read_text())
    made.key.chmod(0o644)
    return made


def _openssl(*arguments: object) -> None:
    command = ["openssl", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)
