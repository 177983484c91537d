"""Stands in for Grafana, which no package registry has: an HTTP server that takes what Grafana's
HTTP API documents for `POST /api/annotations`, refuses anything else, and records it. What a real
Grafana would make of the request beyond its documentation is not shown by it."""

import json
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterator, Optional

from .certificates import Certificate

TOKEN = "glsa_0123456789"

_FIELDS = {"dashboardUID": str, "panelId": int, "time": int, "timeEnd": int, "tags": list, "text": str}
_EARLIEST_MILLIS = 1_600_000_000_000
"""A time in seconds by mistake would be earlier."""


@dataclass
class Grafana:
    """A running one."""

    url: str
    annotations: list[dict[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def _complaint(handler: BaseHTTPRequestHandler, body: bytes) -> Optional[tuple[int, str]]:
    """Status and words with which Grafana's documentation has it refused; None if it is right."""
    if handler.path != "/api/annotations":
        return 404, "Not found"
    if handler.headers["Authorization"] != f"Bearer {TOKEN}":
        return 401, "Invalid API key"
    if handler.headers["Content-Type"] != "application/json":
        return 400, "bad request data"
    given = json.loads(body)
    wrong = [name for name, value in given.items() if not isinstance(value, _FIELDS.get(name, ()))]
    if wrong or not given.get("text") or not all(isinstance(tag, str) for tag in given["tags"]):
        return 400, f"bad request data: {wrong}"
    if not _EARLIEST_MILLIS < given["time"] <= given["timeEnd"]:
        return 400, f"not times in milliseconds: {given}"
    return None


def _handler(grafana: Grafana, lock: threading.Lock) -> type:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            complaint = _complaint(self, body)
            with lock:
                if complaint:
                    grafana.refused.append(complaint[1])
                    self._answer(complaint[0], {"message": complaint[1]})
                    return
                grafana.annotations.append(json.loads(body))
                number = len(grafana.annotations)
            self._answer(200, {"message": "Annotation added", "id": number})

        def _answer(self, status: int, answer: dict[str, Any]) -> None:
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_arguments) -> None:
            pass

    return Handler


@contextmanager
def grafana(certificate: Optional[Certificate] = None) -> Iterator[Grafana]:
    """Runs one on a free port of localhost, with TLS if there is a certificate."""
    scheme = "https" if certificate else "http"
    running = Grafana("")
    server = ThreadingHTTPServer(("localhost", 0), _handler(running, threading.Lock()))
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.cert, certificate.key)
        # The handshake is the connection's thread's: a client that breaks it off must not end the loop.
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    running.url = f"{scheme}://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
