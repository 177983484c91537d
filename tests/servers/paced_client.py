"""Makes TLS handshakes at an exact rate until it is told to stop, and keeps a log of them.

usage: paced_client.py PORT RATE LOG

One connection at a time, without a request; the next begins when its time has come, however long
the last one took. LOG gets a line with the monotonic clock at the beginning of each.
"""

import socket
import ssl
import sys
import time


def shake_hands(context: ssl.SSLContext, port: int) -> None:
    """A handshake, a request, and what the server answers until it closes."""
    with socket.create_connection(("127.0.0.1", port), 10.0) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(plain) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while connection.recv(65536):
                pass


def main() -> None:
    port, rate, log = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    next_one = time.monotonic()
    with open(log, "a", buffering=1) as lines:
        print("begins", flush=True)
        while True:
            time.sleep(max(0.0, next_one - time.monotonic()))
            next_one += 1.0 / rate
            lines.write(f"{time.monotonic():.6f}\n")
            shake_hands(context, port)


if __name__ == "__main__":
    main()
