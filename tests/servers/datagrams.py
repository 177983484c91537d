#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""datagrams.py COUNT: sends that many datagrams to itself over loopback, IPv4 and IPv6 in turn."""

import socket
import sys

FAMILIES = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
PAYLOAD = bytes(1000)
BATCH = 50
"""So many fit the buffer of the receiving socket."""


def pair(family: socket.AddressFamily, address: str) -> tuple[socket.socket, socket.socket]:
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    receiver.bind((address, 0))
    receiver.settimeout(1.0)
    sender = socket.socket(family, socket.SOCK_DGRAM)
    sender.connect(receiver.getsockname())
    return sender, receiver


def arrived(receiver: socket.socket) -> bool:
    """Not if the kernel had no room for it: then more are sent."""
    try:
        return bool(receiver.recv(len(PAYLOAD)))
    except TimeoutError:
        return False


def main() -> None:
    pairs = [pair(family, address) for family, address in FAMILIES.items()]
    left = int(sys.argv[1])
    while left > 0:
        for sender, receiver in pairs:
            for _ in range(BATCH):
                sender.send(PAYLOAD)
            left -= sum(1 for _ in range(BATCH) if arrived(receiver))


if __name__ == "__main__":
    main()
