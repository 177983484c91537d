# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Clients that begin to connect and wait: waiting_clients.py HOST PORT COUNT

Prints `connecting`; all go away with their standard input.
"""

import socket
import sys

host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
family = socket.AF_INET6 if ":" in host else socket.AF_INET

clients = []
for _ in range(count):
    client = socket.socket(family)
    client.setblocking(False)
    client.connect_ex((host, port))
    clients.append(client)
print("connecting", flush=True)
sys.stdin.read()
