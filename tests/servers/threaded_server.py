# SPDX-License-Identifier: Apache-2.0 OR MIT
"""HTTPS with blocking Python sockets, a thread per connection.

With --late it imports the ssl module, which loads OpenSSL by dlopen, only when
a line comes on its standard input.

With --udp it also binds a UDP socket to its port, as servers of HTTP/3 do.

usage: threaded_server.py CERT KEY [--late] [--udp]
"""

import socket
import sys
import threading

ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
CLIENT_TIMEOUT_SECONDS = 20


def serve(context, connection: socket.socket) -> None:
    connection.settimeout(CLIENT_TIMEOUT_SECONDS)
    try:
        with context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(4096)
            tls.sendall(ANSWER)
            tls.unwrap()
    except OSError:
        pass  # a failed handshake, or a client that went away
    finally:
        connection.close()


def main() -> None:
    cert, key = sys.argv[1:3]
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    if "--udp" in sys.argv:
        beside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        beside.bind(listener.getsockname())
    print(f"port {listener.getsockname()[1]}", flush=True)
    if "--late" in sys.argv:
        sys.stdin.readline()
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(context, connection), daemon=True).start()


main()
