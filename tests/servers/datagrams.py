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
    sender = socket.socket(family, socket.SOCK_DGRAM)
    sender.connect(receiver.getsockname())
    return sender, receiver


def main() -> None:
    pairs = [pair(family, address) for family, address in FAMILIES.items()]
    left = int(sys.argv[1])
    while left > 0:
        for sender, receiver in pairs:
            for _ in range(BATCH):
                sender.send(PAYLOAD)
            for _ in range(BATCH):
                receiver.recv(len(PAYLOAD))
            left -= BATCH


if __name__ == "__main__":
    main()
