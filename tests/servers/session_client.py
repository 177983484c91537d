"""Gets a session from one server and brings it to another, again and again.

usage: session_client.py GIVER TAKER CONNECTIONS VERSION CERTIFICATE [SECONDS|word]

GIVER and TAKER are ports of this host, VERSION is TLSv1_2 or TLSv1_3. Prints how many
connections resumed the session, as JSON. With SECONDS it stays away so long before it brings the
session, as a client does that comes back; with `word` it says that it has the session, and waits
for a line.
"""

import json
import socket
import ssl
import sys
import time
from typing import Optional, Tuple

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

Answer = Tuple[Optional[ssl.SSLSession], bool]


def ask(context: ssl.SSLContext, port: int, session: Optional[ssl.SSLSession]) -> Answer:
    """One request: its session, and whether it resumed one. TLS 1.3 sends tickets with the answer."""
    with socket.create_connection(("127.0.0.1", port), 60.0) as plain:
        # Else the kernel waits before it sends a request after the last message of a handshake.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(plain, server_hostname="localhost", session=session) as connection:
            connection.sendall(REQUEST)
            while connection.recv(65536):
                pass
            return connection.session, connection.session_reused


def main() -> None:
    giver, taker, connections, version, certificate, *away = sys.argv[1:]
    context = ssl.create_default_context(cafile=certificate)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    session, _ = ask(context, int(giver), None)
    assert session, "the server gave no session"
    if away == ["word"]:
        print("has a session", flush=True)
        sys.stdin.readline()
    else:
        time.sleep(float(*away))
    resumed = sum(ask(context, int(taker), session)[1] for _ in range(int(connections)))
    print(json.dumps({"connections": int(connections), "resumed": resumed}))


if __name__ == "__main__":
    main()
