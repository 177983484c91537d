"""Clients that fetch long answers, so that the server's time goes to the protection of records."""

from .processes import Argument

MEBIBYTE = 1 << 20

AES_128_GCM = "TLS_AES_128_GCM_SHA256"
AES_256_GCM = "TLS_AES_256_GCM_SHA384"
CHACHA20_POLY1305 = "TLS_CHACHA20_POLY1305_SHA256"
AES_128_CCM = "TLS_AES_128_CCM_SHA256"

ALL = ":".join([AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, AES_128_CCM])
"""OpenSSL does not offer CCM by itself."""


def download(port: int, mebibytes: int, times: int = 1, ciphersuites: str = ALL) -> list[Argument]:
    """A command that fetches an answer of that length `times` times, one connection after another;
    `ciphersuites` are those of TLS 1.3."""
    url = f"https://127.0.0.1:{port}/{mebibytes * MEBIBYTE}"
    command: list[Argument] = ["curl", "--silent", "--show-error", "--fail", "--insecure"]
    command += ["--http1.1", "--header", "Connection: close", "--tls13-ciphers", ciphersuites]
    return [*command, *["--output", "/dev/null", url] * times]
