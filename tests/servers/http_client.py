"""Makes HTTP requests one after another, on as few connections as the server allows.

usage: http_client.py PORT REQUESTS [CERTIFICATE]

With a certificate it speaks TLS. Prints how many connections it took, as JSON.
"""

import json
import os
import re
import select
import socket
import ssl
import sys

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def read_answer(connection: socket.socket) -> bytes:
    """Head and body of one answer; the head has a Content-Length."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += received(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)^content-length: (\d+)", head, re.MULTILINE)[1])
    while len(body) < length:
        body += received(connection)
    return head


def received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the server closed in the middle of an answer")
    return data


def own_address(number: int) -> str:
    """A loopback address for each connection. With one for all, a port that comes again within a
    minute would take the place of the server's TIME_WAIT socket."""
    return f"127.1.{number >> 8 & 255}.{number & 255}"


def connect(port: int, certificate: str, number: int) -> socket.socket:
    source = (own_address(number), 0)
    connection = socket.create_connection(("127.0.0.1", port), 10.0, source_address=source)
    if not certificate:
        return connection
    context = ssl.create_default_context(cafile=certificate)
    return context.wrap_socket(connection, server_hostname="localhost")


def use_up(port: int, wanted: int, certificate: str, number: int) -> int:
    """Makes requests on one connection until enough or the server wants no more."""
    with connect(port, certificate, number) as connection:
        for done in range(1, wanted + 1):
            connection.sendall(REQUEST)
            if b"connection: close" in read_answer(connection).lower():
                # The server closes first.
                assert connection.recv(1) == b""
                if certificate:
                    # That was the end of TLS; the FIN comes after it.
                    assert select.select([connection.fileno()], [], [], 10.0)[0]
                    assert os.read(connection.fileno(), 1) == b""
                return done
    return wanted


def main(port: int, requests: int, certificate: str = "") -> None:
    connections = made = 0
    while made < requests:
        made += use_up(port, requests - made, certificate, connections)
        connections += 1
    print(json.dumps({"connections": connections, "requests": made}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
