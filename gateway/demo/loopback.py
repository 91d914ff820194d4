"""A small HTTP server for this machine alone: what the demo's model and platform stand on.

It listens on 127.0.0.1 at a port that the system picks, wants a bearer token, and bounds everything:
body size, idle time, connections. A server process says its port in one line on standard output and
ends when its standard input is closed, so that it never outlives whoever started it.
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN_VARIABLE = "ONRECORD_DEMO_TOKEN"  # noqa: S105  the name of a variable, not a token

BODY_LIMIT_BYTES = 8 << 20
IDLE_LIMIT_SECONDS = 60.0
CONNECTION_LIMIT = 64


class LoopbackServer(ThreadingHTTPServer):
    """An HTTP server on 127.0.0.1, a thread a connection, at most `CONNECTION_LIMIT` of them."""

    daemon_threads = True
    request_queue_size = CONNECTION_LIMIT

    def __init__(self, handler: type[LoopbackHandler], token: str) -> None:
        if not token:
            raise ValueError(f"the server needs a token: set {TOKEN_VARIABLE}")
        self.token = token
        self._slots = threading.BoundedSemaphore(CONNECTION_LIMIT)
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def port(self) -> int:
        """The port that the system picked."""
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread; wait while too many are open."""
        self._slots.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection and give its slot back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong; a client that was killed or gave up is nothing to speak of."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class LoopbackHandler(BaseHTTPRequestHandler):
    """JSON in, JSON out, a bearer token on every request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_LIMIT_SECONDS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as inherited
        """Keep quiet: the terminal belongs to the demo."""

    def body(self) -> dict[str, Any] | None:
        """Return the request's JSON object; None when the request was refused and answered."""
        assert isinstance(self.server, LoopbackServer)
        given = self.headers.get("Authorization", "")
        length = self.headers.get("Content-Length") or "0"
        if not hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode()):
            self._refuse(401, "wrong token")
            return None
        if not length.isdecimal() or int(length) > BODY_LIMIT_BYTES:
            self._refuse(413, f"over {BODY_LIMIT_BYTES} bytes")
            return None
        raw = self.rfile.read(int(length))
        if len(raw) < int(length):
            # The client died while it wrote: there is nobody to answer.
            self.close_connection = True
            return None
        try:
            value = json.loads(raw or b"{}")
        except ValueError:
            value = None
        if not isinstance(value, dict):
            self._refuse(400, "the body is a JSON object")
            return None
        return value

    def _refuse(self, status: int, message: str) -> None:
        """Answer, and read nothing more from the connection."""
        self.close_connection = True
        self.answer(status, {"error": {"message": message}})

    def answer(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        """Send `value` as JSON, in one write."""
        body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        # The header buffer is the library's; end_headers() would write it apart from the body.
        self._headers_buffer.append(b"\r\n" + body)  # type: ignore[attr-defined]
        self.flush_headers()

    def drop(self) -> None:
        """Cut the connection without another byte, as a server that dies does."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


def serve(server: LoopbackServer) -> None:
    """Serve until standard input is closed; say the port first."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    print(json.dumps({"port": server.port}), flush=True)
    while sys.stdin.buffer.read(4096):
        continue
    server.shutdown()
    server.server_close()


def token_from_environment() -> str:
    """Return the token that whoever started this process chose. ValueError if there is none."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise ValueError(f"the server needs a token: set {TOKEN_VARIABLE}")
    return token
