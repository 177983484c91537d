# SPDX-License-Identifier: Apache-2.0 OR MIT
"""TLS with a thread per connection that answers each request with two bytes: as many as an alert has.

usage: short_server.py CERT KEY
"""

import socket
import ssl
import sys
import threading

ANSWER = b"ok"
CLIENT_TIMEOUT_SECONDS = 20


def serve(context: ssl.SSLContext, connection: socket.socket) -> None:
    connection.settimeout(CLIENT_TIMEOUT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        with context.wrap_socket(connection, server_side=True) as tls:
            while tls.recv(4096):
                tls.sendall(ANSWER)
            tls.unwrap()
    except OSError:
        pass  # a client that went away without close_notify
    finally:
        connection.close()


def main() -> None:
    cert, key = sys.argv[1:3]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(f"port {listener.getsockname()[1]}", flush=True)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(context, connection), daemon=True).start()


main()
