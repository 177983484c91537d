"""Clients that fetch long answers, so that the server's time goes to the protection of records."""

from .processes import Argument

MEBIBYTE = 1 << 20

CIPHERSUITES = ":".join(
    f"TLS_{cipher}_SHA{hash}"
    for cipher, hash in [
        ("AES_128_GCM", 256),
        ("AES_256_GCM", 384),
        ("CHACHA20_POLY1305", 256),
        ("AES_128_CCM", 256),
    ]
)
"""Of TLS 1.3: the server chooses. OpenSSL does not offer CCM by itself."""


def download(port: int, mebibytes: int, times: int = 1, *options: Argument) -> list[Argument]:
    """A command that fetches an answer of that length `times` times, one connection after another;
    `options` are curl's."""
    url = f"https://127.0.0.1:{port}/{mebibytes * MEBIBYTE}"
    command: list[Argument] = ["curl", "--silent", "--show-error", "--fail", "--insecure"]
    command += ["--http1.1", "--header", "Connection: close", "--tls13-ciphers", CIPHERSUITES]
    return [*command, *options, *["--output", "/dev/null", url] * times]
