"""Peers that mean no good, or know no better. Each function says how many connections it made.

The bytes are the same in every run.
"""

import random
import resource
import socket
import ssl
import struct
from contextlib import ExitStack, contextmanager
from typing import Iterable, Iterator

TIMEOUT_SECONDS = 20.0

HANDSHAKE = 22
RECORD_MAX = 1 << 14
FILLER_EXTENSION = 0xFF33
"""Of the range for private use: servers ignore it."""

HUGE_HELLO = 64 * 1024


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)


def send_each(port: int, messages: Iterable[bytes]) -> int:
    """Sends each message on a connection of its own, ends its side and reads to the end."""
    count = 0
    for message in messages:
        with connect(port) as peer:
            count += 1
            try:
                peer.sendall(message)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(4096):
                    pass
            except OSError:  # the server has ended or reset it, as it may
                pass
    return count


def noise(count: int) -> list[bytes]:
    """Random bytes that do not begin as TLS does."""
    source = random.Random(1)
    first = [byte for byte in range(256) if byte != HANDSHAKE]
    return [bytes([source.choice(first)]) + source.randbytes(source.randrange(2000)) for _ in range(count)]


def noise_in_records(count: int) -> list[bytes]:
    """Random bytes in records that are as they should be."""
    source = random.Random(2)
    return [record(source.randbytes(source.randrange(1, 2000))) for _ in range(count)]


def hello() -> bytes:
    """A real ClientHello, without its record's header."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()[5:]


def record(body: bytes, length: int | None = None) -> bytes:
    """A handshake record, with a length that may be a lie."""
    return struct.pack("!BHH", HANDSHAKE, 0x0301, len(body) if length is None else length) + body


def records(message: bytes, size: int = RECORD_MAX) -> bytes:
    """A message in records of at most `size` bytes."""
    return b"".join(record(message[at : at + size]) for at in range(0, len(message), size))


def lying_lengths() -> list[bytes]:
    """A ClientHello in which one length after the other says too little or too much."""
    good = hello()
    lies = [record(good, length) for length in (0, 1, len(good) - 1, len(good) + 1, 1 << 14, 0xFFFF)]
    for length in (0, 1, len(good) - 5, len(good), 0xFFFF, 0xFFFFFF):
        lies.append(record(good[:1] + length.to_bytes(3, "big") + good[4:]))
    # Session id, suites, compression, extensions: each byte that may be a length.
    for at in range(38, min(len(good), 300)):
        for value in (0, 0x7F, 0xFF):
            lies.append(record(good[:at] + bytes([value]) + good[at + 1 :]))
    return lies


def plaintext_after_hello(count: int) -> list[bytes]:
    """A good ClientHello, and then something other than TLS."""
    return [record(hello()) + b"GET / HTTP/1.1\r\n\r\n"] * count


def huge_hello(size: int = HUGE_HELLO) -> bytes:
    """A good ClientHello of `size` bytes, filled up by one extension, in several records."""
    good = hello()
    body = good[4:]
    extensions_at = _extensions(body)
    extensions = body[extensions_at + 2 :]
    filler = size - len(good) - 4
    extensions += struct.pack("!HH", FILLER_EXTENSION, filler) + bytes(filler)
    # Together they must fit in a length of 16 bits.
    assert len(extensions) <= 0xFFFF, len(extensions)
    body = body[:extensions_at] + struct.pack("!H", len(extensions)) + extensions
    return records(good[:1] + len(body).to_bytes(3, "big") + body)


def _extensions(body: bytes) -> int:
    """Where the length of the extensions stands, in a ClientHello without its header."""
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    return at + 1 + body[at]


def connect_and_reset(port: int, count: int, say: bytes = b"") -> int:
    """Connections that are reset at once, or as soon as something was said."""
    for _ in range(count):
        with connect(port) as peer:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if say:
                peer.sendall(say)
    return count


@contextmanager
def half_open(port: int, count: int, begun: bytes) -> Iterator[None]:
    """Clients that say what they have begun and then nothing more."""
    allow_files(count + 100)
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(connect(port)).sendall(begun)
        yield


def allow_files(count: int) -> None:
    """Lets this process, and those that it starts from here on, have so many files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))
