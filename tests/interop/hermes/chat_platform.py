"""A chat platform on the loopback: what it writes down is what the user saw.

A bot sends and edits by POST and asks for what the user wrote by GET /updates. Every request is a line
of a file before it is answered, so that a bot that dies afterwards can't take it back.

    {"at": µs since 1970, "what": …, "message": id, "chat": id, "text": …}

`what` is `user` (the user wrote it), `send`, `edit`, `delete`, or `refused` (a send or an edit that the
platform didn't take).
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHAT = "chat-1"
POLL_SECONDS = 5.0


class ChatPlatform(ThreadingHTTPServer):
    """Serve one chat; `file` gets a line for whatever happens in it."""

    daemon_threads = True

    def __init__(self, file: Path) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.file = file
        self.unread: queue.Queue[dict[str, Any]] = queue.Queue()
        self.seen: list[dict[str, Any]] = []
        self.refusals = 0
        self.answer_seconds = 0.0  # between a line of the file and the answer to the bot
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def write(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        """Say what happened, under a message id of its own where it has none."""
        with self.lock:
            message = body.get("message") or f"m{len(self.seen) + 1}"
            line = {
                "at": time.time_ns() // 1_000,
                "what": what,
                "message": message,
                "chat": body.get("chat", CHAT),
                **{key: body[key] for key in ("text", "reply_to", "last") if body.get(key)},
            }
            self.seen.append(line)
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return line

    def user_writes(self, text: str) -> None:
        self.unread.put(self.write("user", {"text": text}))

    def refuse(self, times: int) -> None:
        """Take none of the next sends and edits."""
        with self.lock:
            self.refusals = times

    def takes(self) -> bool:
        with self.lock:
            refused = self.refusals > 0
            self.refusals -= refused
            return not refused

    def shown(self) -> list[str]:
        """Give the texts of the bot that stand in the chat, in order."""
        texts: dict[str, str] = {}
        with self.lock:
            for line in self.seen:
                if line["what"] in ("send", "edit"):
                    texts[line["message"]] = line.get("text", "")
                elif line["what"] == "delete":
                    texts.pop(line["message"], None)
        return list(texts.values())


class Request(BaseHTTPRequestHandler):
    """Answer one request of the bot; each has a connection of its own."""

    def do_GET(self) -> None:
        assert isinstance(self.server, ChatPlatform)
        self._json(200, list(_unread(self.server.unread)))

    def do_POST(self) -> None:
        assert isinstance(self.server, ChatPlatform)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        what = self.path.removeprefix("/")
        if what != "delete" and not self.server.takes():
            self.server.write("refused", body)
            self._json(403, {"error": "Forbidden: the chat takes no messages now"})
            return
        message = self.server.write(what, body)["message"]
        time.sleep(self.server.answer_seconds)
        self._json(200, {"message": message})

    def _json(self, status: int, body: Any) -> None:
        said = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
        except (BrokenPipeError, ConnectionResetError):
            return  # the bot was killed: what it sent is written down already

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as inherited
        """Say nothing: the file says it all."""


def _unread(messages: queue.Queue[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give what the user wrote, waiting for a first message for a while."""
    try:
        yield messages.get(timeout=POLL_SECONDS)
        while True:
            yield messages.get_nowait()
    except queue.Empty:
        return
