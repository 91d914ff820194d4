"""A chat platform over HTTP, as a server of its own thread, that does as it is told."""

from __future__ import annotations

import http.client
import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from onrecord.gateway.outcomes import from_status
from onrecord.gateway.platform import Abilities, AsyncPlatform, Found, Platform, Request
from onrecord.projections.conversation import project
from onrecord.projections.promise import check
from onrecord.projections.rows import Row
from onrecord.transcript.events import Target
from onrecord.transcript.log import TranscriptLog

CHAT = Target(platform="local", chat="c1")


@dataclass
class Book:
    """What the platform holds. `script`: what to do with the next requests; then all are taken.

    take: as it should be. N: answer that status and take nothing. silent: take, answer never.
    cut: take, and close the connection. `times`: what to wait for in a silent answer.
    """

    messages: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    script: deque[str] = field(default_factory=deque)
    arrived: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def texts(self) -> list[str]:
        return list(self.messages.values())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        book: Book = self.server.book  # type: ignore[attr-defined]
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))
        book.requests.append(said)
        if said["op"] == "lookup":
            self.answer(200, {"id": book.keys.get(said["key"])})
            return
        do = book.script.popleft() if book.script else "take"
        if do.isdecimal():
            self.answer(int(do), {}, {"retry-after": "0.3"} if do == "429" else {})
            return
        name = said["id"] or book.keys.get(said["key"]) or f"p{len(book.messages) + 1}"
        book.messages[name] = said["text"]
        book.keys[said["key"]] = name
        book.arrived.set()
        if do == "silent":
            book.go_on.wait(10)
        if do == "cut":
            self.close_connection = True
            return
        self.answer(200, {"id": name})

    def answer(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(raw)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def post(port: int, timeout: float, **said: object) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", "/", json.dumps(said))
        answer = connection.getresponse()
        body = json.loads(answer.read())
    finally:
        connection.close()
    if answer.status >= 300:
        wait = answer.headers.get("retry-after")
        raise from_status(answer.status, retry_after=float(wait) if wait else None)
    return str(body["id"] or "")


class HttpPlatform(Platform):
    """The blocking adapter."""

    timeout = 5.0

    def __init__(self, book: Book, **abilities: Any) -> None:
        self.book = book
        self.abilities = Abilities(**abilities)

    def send(self, request: Request) -> str:
        return self._post(request)

    def edit(self, request: Request) -> None:
        self._post(request)

    def lookup(self, request: Request) -> Found | None:
        name = post(self.book.port, self.timeout, op="lookup", key=request.key)
        return Found(bool(name), name or None)

    def render(self, text: str, format: str | None) -> str:  # noqa: A002
        return f"<{format}>{text}</{format}>" if format else text

    def _post(self, request: Request) -> str:
        return post(
            self.book.port, self.timeout, op=request.op, text=request.wire, key=request.key,
            id=request.platform_message,
        )  # fmt: skip


class AsyncHttpPlatform(AsyncPlatform):
    """The same for an event loop, on asyncio's own streams."""

    def __init__(self, book: Book, **abilities: Any) -> None:
        self.book = book
        self.abilities = Abilities(**abilities)

    async def send(self, request: Request) -> str:
        return await self._post(request)

    async def edit(self, request: Request) -> None:
        await self._post(request)

    async def _post(self, request: Request) -> str:
        import asyncio

        raw = json.dumps(
            {
                "op": request.op,
                "text": request.wire,
                "key": request.key,
                "id": request.platform_message,
            }
        ).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.book.port)
        try:
            writer.write(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(raw) + raw)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split()[1])
            length = next(
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            )
            body = json.loads(await reader.readexactly(length))
        finally:
            writer.close()
        if status >= 300:
            raise from_status(status)
        return str(body["id"] or "")


@pytest.fixture
def book() -> Iterator[Book]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    book = Book(port=server.server_address[1])
    server.book = book  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield book
    book.go_on.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.db"


@pytest.fixture
def log(path: Path) -> Iterator[TranscriptLog]:
    with TranscriptLog.open(path) as opened:
        yield opened


@pytest.fixture
def chat() -> Target:
    return CHAT


@pytest.fixture
def platform(book: Book) -> Callable[..., HttpPlatform]:
    return lambda **abilities: HttpPlatform(book, **abilities)


@pytest.fixture
def async_platform(book: Book) -> Callable[..., AsyncHttpPlatform]:
    return lambda **abilities: AsyncHttpPlatform(book, **abilities)


@pytest.fixture
def rows(log: TranscriptLog) -> Callable[[str], list[Row]]:
    """Rows of a session, with the promise checked at every prefix of its events."""

    def build(session: str) -> list[Row]:
        records = list(log.read(session))
        found: list[Row] = []
        for end in range(1, len(records) + 1):
            found = project(records[:end], full=True)
            check(session, records[:end], found, full=True)
        return found

    return build


@pytest.fixture
def types(log: TranscriptLog) -> Callable[[str], list[str]]:
    return lambda session: [recorded.type for recorded in log.read(session)]
