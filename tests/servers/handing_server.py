# SPDX-License-Identifier: Apache-2.0 OR MIT
"""HTTPS with Python threads that hand connections over, and the CPU time of each handshake.

A thread reads each ClientHello. It answers every second one itself. Of the others it does nothing for a
while, as a thread that waits for a CPU; then
- `answered`: another thread does the handshake and answers;
- `offloaded`: another thread does the handshake, and a third one answers.
For each it says `seconds READ COMPUTED SENT`, the CPU time of its first answer.

usage: handing_server.py CERT KEY answered|offloaded
"""

import queue
import socket
import ssl
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
CLIENT_TIMEOUT_SECONDS = 20
PAUSE_SECONDS = 0.02


@dataclass
class Session:
    """A connection and its TLS, which does nothing by itself."""

    context: ssl.SSLContext
    connection: socket.socket
    incoming: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)
    outgoing: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)
    spent: list[float] = field(default_factory=list)

    def read(self) -> None:
        self.incoming.write(self.connection.recv(16384))

    def compute(self) -> None:
        began = time.thread_time()
        self.tls = self.context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        self.spent.append(time.thread_time() - began)

    def answer(self) -> None:
        began = time.thread_time()
        self.send()
        self.spent.append(time.thread_time() - began)
        self.finish()

    def send(self) -> None:
        if self.outgoing.pending:
            self.connection.sendall(self.outgoing.read())

    def finish(self) -> None:
        """All that comes after the server's first answer."""
        print("seconds", *self.spent, flush=True)
        with suppress(OSError):
            self.until_read(self.tls.do_handshake)
            self.send()
            self.until_read(lambda: self.tls.read(4096))
            self.tls.write(ANSWER)
            with suppress(ssl.SSLWantReadError):
                self.tls.unwrap()
            self.send()
        self.connection.close()

    def until_read(self, call) -> None:
        while True:
            try:
                return call()
            except ssl.SSLWantReadError:
                self.read()


def compute_and_answer(session: Session) -> None:
    session.compute()
    session.answer()


def thread_of(work) -> queue.SimpleQueue:
    """A thread that does that for whatever comes."""
    todo = queue.SimpleQueue()

    def run() -> None:
        while True:
            work(todo.get())

    threading.Thread(target=run, daemon=True).start()
    return todo


def computing_for(answering: queue.SimpleQueue):
    def work(session: Session) -> None:
        session.compute()
        answering.put(session)

    return work


def main() -> None:
    cert, key, way = sys.argv[1:4]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    others = thread_of(compute_and_answer if way == "answered" else computing_for(thread_of(Session.answer)))
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(f"port {listener.getsockname()[1]}", flush=True)
    own = True
    while True:
        connection, _ = listener.accept()
        connection.settimeout(CLIENT_TIMEOUT_SECONDS)
        began = time.thread_time()
        session = Session(context, connection)
        session.read()
        session.spent.append(time.thread_time() - began)
        if own:
            compute_and_answer(session)
        else:
            time.sleep(PAUSE_SECONDS)
            others.put(session)
        own = not own


main()
