"""A chat platform on this machine, a process of its own.

What it takes it writes to its own file, synced, before it answers: one JSON line for each message
sent or edited, and for each user's message said or acknowledged. A user's message is handed out until
it is acknowledged. Rules of a chat say what it refuses, when it wants to be left alone, and where it
keeps its answer back, so that a gateway can die between send and acknowledgement.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from onrecord.gateway.demo.loopback import (
    LoopbackHandler,
    LoopbackServer,
    serve,
    token_from_environment,
)

HOLD_LIMIT_SECONDS = 30.0
POLL_LIMIT_SECONDS = 10.0
CHAT_LIMIT = 100_000

MARKDOWN = "markdown"
_SPECIAL = "_*[]()~`>#+-=|{}.!\\"


def escape(text: str) -> str:
    """Return `text` so that the platform's markdown shows it as it is."""
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in text)


def shown(wire: str, markup: str | None) -> str:
    """Return what a reader sees of a message in `markup`."""
    if markup != MARKDOWN:
        return wire
    rest = iter(wire)
    return "".join(next(rest, "") if character == "\\" else character for character in rest)


class Rules(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """How a chat treats what is sent to it.

    `limit`: the longest message (code points). `refuse_markup`: only plain text is taken.
    `rate_limit`: how many requests are told to come back after `retry_after` seconds; while those run,
    all are. `hold_from`: from this message or edit on (from 1) the answer is kept back for
    `hold_seconds`, after the message was stored. `silent`: how many requests are stored and never
    answered. `first`: rules other than `limit` begin with this message or edit (from 1).
    """

    limit: int = 4096
    refuse_markup: bool = False
    rate_limit: int = 0
    retry_after: float = 0.2
    hold_from: int = 0
    hold_seconds: float = HOLD_LIMIT_SECONDS
    silent: int = 0
    first: int = 1


@dataclass
class Chat:
    """What the platform holds of a chat. `inbound`: users' messages that nobody acknowledged yet."""

    rules: Rules = field(default_factory=Rules)
    taken: int = 0
    not_before: float = 0.0
    messages: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    inbound: dict[str, dict[str, Any]] = field(default_factory=dict)


class Refused(Exception):
    """The platform takes no such request. `status` and `headers` as HTTP says it."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {name.replace("_", "-"): text for name, text in headers.items()}


class Book:
    """The platform's memory and its file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._chats: dict[str, Chat] = {}
        self._number = 0
        self._changed = threading.Condition()

    def rules(self, chat: str, rules: Rules) -> dict[str, Any]:
        """Set the rules of a chat."""
        with self._changed:
            self._chat(chat).rules = rules
        return {}

    def say(self, chat: str, text: str) -> dict[str, Any]:
        """Let the chat's user say something."""
        with self._changed:
            message = {"message": self._next("u"), "chat": chat, "text": text, "sender": "user"}
            self._write({"op": "say", **message})
            self._chat(chat).inbound[message["message"]] = message
            self._changed.notify_all()
        return {"message": message["message"]}

    def updates(self, chat: str, wait: float) -> dict[str, Any]:
        """Return what isn't acknowledged; wait up to `wait` seconds for something."""
        with self._changed:
            here = self._chat(chat)
            self._changed.wait_for(lambda: here.inbound, min(wait, POLL_LIMIT_SECONDS))
            return {"updates": list(here.inbound.values())}

    def acknowledge(self, chat: str, message: str) -> dict[str, Any]:
        """Hand a user's message out no more."""
        with self._changed:
            if self._chat(chat).inbound.pop(message, None) is not None:
                self._write({"op": "ack", "chat": chat, "message": message})
        return {}

    def lookup(self, chat: str, key: str) -> dict[str, Any]:
        """Return the message that was sent or edited under a key, null if none was."""
        with self._changed:
            return {"message": self._chat(chat).keys.get(key)}

    def take(self, body: dict[str, Any], message: str | None) -> tuple[dict[str, Any], float]:
        """Store a message, or an edit of `message`; return the answer and how long to keep it back."""
        wire, markup = _string(body, "text"), body.get("format")
        with self._changed:
            chat = self._chat(_string(body, "chat"))
            self._judge(chat, wire, markup)
            if message is not None and message not in chat.messages:
                raise Refused(404, f"no message {message}")
            text = shown(wire, markup)
            name = message or self._next("m")
            entry = {"op": "edit" if message else "send", "chat": body["chat"], "message": name}
            self._write({**entry, "text": text, "format": markup, "key": body.get("key")})
            chat.messages[name] = text
            if isinstance(body.get("key"), str):
                chat.keys[body["key"]] = name
            chat.taken += 1
            if chat.rules.silent and chat.taken >= chat.rules.first:
                chat.rules.silent -= 1
                return {}, -1.0
            held = chat.rules.hold_from and chat.taken >= chat.rules.hold_from
            return {"message": name}, chat.rules.hold_seconds if held else 0.0

    def _judge(self, chat: Chat, wire: str, markup: Any) -> None:
        rules, now = chat.rules, time.monotonic()
        if not shown(wire, markup).strip():
            raise Refused(400, "a message has text")
        if len(shown(wire, markup)) > rules.limit:
            raise Refused(400, f"over {rules.limit} characters")
        if chat.taken + 1 < rules.first:
            return
        if rules.rate_limit and now >= chat.not_before:
            rules.rate_limit -= 1
            chat.not_before = now + rules.retry_after
        if now < chat.not_before:
            raise Refused(429, "too many requests", Retry_After=f"{chat.not_before - now:.3f}")
        if markup and rules.refuse_markup:
            raise Refused(400, "this markup can't be read")

    def _chat(self, name: str) -> Chat:
        if name not in self._chats and len(self._chats) >= CHAT_LIMIT:
            raise Refused(507, f"over {CHAT_LIMIT} chats")
        return self._chats.setdefault(name, Chat())

    def _next(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        written = os.write(self._file, line)
        if written != len(line):
            raise OSError(f"the platform's file took {written} of {len(line)} bytes")
        os.fsync(self._file)


def _string(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise Refused(400, f"{name}: a string")
    return value


class PlatformHandler(LoopbackHandler):
    """The platform's requests, each a POST with a JSON object."""

    def do_POST(self) -> None:
        """Do what the path says."""
        body = self.body()
        if body is None:
            return
        try:
            value, held = self._do(body)
        except Refused as no:
            self.answer(no.status, {"error": {"message": str(no)}}, no.headers)
            return
        if held < 0:
            self.drop()
            return
        if held:
            time.sleep(min(held, HOLD_LIMIT_SECONDS))
        self.answer(200, value)

    def _do(self, body: dict[str, Any]) -> tuple[dict[str, Any], float]:
        assert isinstance(self.server, PlatformServer)
        book = self.server.book
        if self.path == "/send":
            return book.take(body, None)
        if self.path == "/edit":
            return book.take(body, _string(body, "message"))
        chat = _string(body, "chat")
        if self.path == "/updates":
            wait = body.get("wait", 0.0)
            return book.updates(chat, wait if isinstance(wait, int | float) else 0.0), 0.0
        if self.path == "/ack":
            return book.acknowledge(chat, _string(body, "message")), 0.0
        if self.path == "/lookup":
            return book.lookup(chat, _string(body, "key")), 0.0
        if self.path == "/say":
            return book.say(chat, _string(body, "text")), 0.0
        if self.path == "/rules":
            try:
                return book.rules(chat, msgspec.convert(body.get("rules"), Rules)), 0.0
            except msgspec.ValidationError as error:
                raise Refused(400, f"rules: {error}") from error
        raise Refused(404, f"no such path: {self.path}")


class PlatformServer(LoopbackServer):
    """The platform, with its book."""

    def __init__(self, book: Book, token: str) -> None:
        self.book = book
        super().__init__(PlatformHandler, token)


def main() -> None:
    """Serve, keeping what is received in the file that is named on the command line."""
    serve(PlatformServer(Book(Path(sys.argv[1])), token_from_environment()))


if __name__ == "__main__":
    main()
