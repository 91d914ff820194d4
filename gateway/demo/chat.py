"""The gateway's side of the demo's platform: the adapter, and the client under it."""

from __future__ import annotations

import http.client
import json
import select
import socket
from dataclasses import dataclass
from typing import Any

from onrecord.gateway.demo.platform import MARKDOWN, escape
from onrecord.gateway.outcomes import NotSent, SendInDoubt, from_status
from onrecord.gateway.platform import Abilities, Found, Platform, Request
from onrecord.transcript import failpoints

ANSWER_LIMIT_BYTES = 8 << 20


@dataclass(frozen=True)
class Client:
    """Makes requests of the demo's platform. `timeout`: seconds to wait for an answer."""

    port: int
    token: str
    timeout: float = 10.0

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer; raise SendError as `outcomes` says."""
        data = self._bytes(path, body)
        try:
            connection = socket.create_connection(("127.0.0.1", self.port), self.timeout)
        except OSError as error:
            raise NotSent(f"the platform can't be reached: {error}") from error
        try:
            with connection:
                half = len(data) // 2
                sends = path in ("/send", "/edit")
                connection.sendall(data[:half])
                if sends:
                    failpoints.hit("partly-written")
                connection.sendall(data[half:])
                ready = select.select([connection], [], [], self.timeout)[0]
                if not ready:
                    raise SendInDoubt(f"no answer within {self.timeout} s")
                if sends:
                    failpoints.hit("answer-unread")
                return self._read(connection)
        except (OSError, http.client.HTTPException) as error:
            raise SendInDoubt(f"{type(error).__name__}: {error}") from error

    def _bytes(self, path: str, body: dict[str, Any]) -> bytes:
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        return head.encode() + data

    @staticmethod
    def _read(connection: socket.socket) -> dict[str, Any]:
        response = http.client.HTTPResponse(connection, method="POST")
        response.begin()
        raw = response.read(ANSWER_LIMIT_BYTES)
        if response.status >= 300:
            after = response.getheader("Retry-After")
            raise from_status(
                response.status, raw.decode("utf-8", "replace"), float(after) if after else None
            )
        value = json.loads(raw)
        if not isinstance(value, dict):
            raise SendInDoubt("the platform's answer is no JSON object")
        return value


class DemoPlatform(Platform):
    """The demo's platform, as the gateway sees it."""

    def __init__(self, client: Client, abilities: Abilities | None = None) -> None:
        self.client = client
        self.abilities = abilities or Abilities(streaming="edit")

    def send(self, request: Request) -> str:
        """Post a message; return its id."""
        answer = self.client.post("/send", self._body(request))
        return str(answer.get("message", ""))

    def edit(self, request: Request) -> None:
        """Change a message."""
        self.client.post("/edit", {**self._body(request), "message": request.platform_message})

    def lookup(self, request: Request) -> Found | None:
        """Ask whether a request was taken."""
        answer = self.client.post("/lookup", {"chat": request.target.chat, "key": request.key})
        message = answer.get("message")
        return Found(message is not None, message)

    def render(self, text: str, format: str | None) -> str:  # noqa: A002  as inherited
        """Return `text` in the markup of `format`."""
        return escape(text) if format == MARKDOWN else text

    @staticmethod
    def _body(request: Request) -> dict[str, Any]:
        return {
            "chat": request.target.chat,
            "text": request.wire,
            "format": request.format,
            "key": request.key,
        }
