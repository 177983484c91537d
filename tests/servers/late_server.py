# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A server that accepts when it is told to: late_server.py HOST BACKLOG

Prints `port N`. A line `N` on standard input lets it accept N connections and say
`accepted N`; it reads a byte of each, answers with one, and closes. It ends with its
standard input.
"""

import socket
import sys

host, backlog = sys.argv[1], int(sys.argv[2])
family = socket.AF_INET6 if ":" in host else socket.AF_INET

with socket.socket(family) as listener:
    listener.bind((host, 0))
    listener.listen(backlog)
    print(f"port {listener.getsockname()[1]}", flush=True)
    for line in sys.stdin:
        accepted = [listener.accept()[0] for _ in range(int(line))]
        print(f"accepted {len(accepted)}", flush=True)
        for connection in accepted:
            with connection:
                if connection.recv(1):
                    connection.sendall(b"!")
