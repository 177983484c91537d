# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A plain HTTP server without TLS: answers and closes."""

import socketserver

ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


class Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        if self.request.recv(4096):
            self.request.sendall(ANSWER)


class Server(socketserver.ThreadingTCPServer):
    request_queue_size = 1024
    daemon_threads = True


with Server(("127.0.0.1", 0), Handler) as server:
    print(f"port {server.server_address[1]}", flush=True)
    server.serve_forever()
