"""The floor: SQLite by itself, WAL and synchronous=FULL, through the library that we use ourselves.

full: a commit a message. full-es: our shape, an event, a check of its version and a row in each
commit. full-turn: a commit a turn. full-jit: SQLite doesn't wait for the lock; we do, 0.2 to 2 ms.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from onrecord.transcript.storage import dbapi
from store import Store
from workload import SaidTurn

TABLES = """
CREATE TABLE IF NOT EXISTS message (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, role TEXT NOT NULL,
    content TEXT, calls TEXT, call TEXT, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS message_session ON message (session, id);
CREATE TABLE IF NOT EXISTS event (
    position INTEGER PRIMARY KEY, session TEXT NOT NULL, version INTEGER NOT NULL,
    type TEXT NOT NULL, data TEXT NOT NULL, at REAL NOT NULL, UNIQUE (session, version));
CREATE TABLE IF NOT EXISTS chunk (
    session TEXT NOT NULL, number INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (session, number)) WITHOUT ROWID;
"""
INSERT = "INSERT INTO message (session, role, content, calls, call, at) VALUES (?, ?, ?, ?, ?, ?)"
SELECT = "SELECT role, content, calls, call FROM message WHERE session = ? ORDER BY id"


class Message(NamedTuple):
    role: str
    content: str | None
    calls: str | None = None
    call: str | None = None


class Floor(Store):
    def __init__(self, folder: Path, variant: str) -> None:
        super().__init__(folder, variant)
        self._retries = variant == "full-jit"
        self._events = variant == "full-es"
        self._connection = dbapi.connect(
            str(folder / "floor.db"), isolation_level=None, timeout=0 if self._retries else 30
        )
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        with self._transaction():
            for statement in TABLES.split(";")[:-1]:
                self._connection.execute(statement)

    def close(self) -> None:
        self._connection.close()

    def append(self, session: str, turn: SaidTurn) -> None:
        if self.variant == "full-turn":
            self.seed(session, [turn])
            return
        for message in messages_of(turn):
            with self._transaction():
                self._insert(session, message)

    def seed(self, session: str, turns: Iterable[SaidTurn]) -> None:
        with self._transaction():
            for turn in turns:
                for message in messages_of(turn):
                    self._insert(session, message)

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        with self._transaction():
            self._insert(session, Message("user", question))
        said: list[str] = []
        for number, chunk in enumerate(chunks):
            with self._transaction():
                row = (session, number, chunk)
                self._connection.execute("INSERT INTO chunk VALUES (?, ?, ?)", row)
            said.append(chunk)
        with self._transaction():
            self._insert(session, Message("assistant", "".join(said)))

    def load(self, session: str) -> list[dict[str, Any]]:
        found = [chat(*row) for row in self._connection.execute(SELECT, (session,))]
        if not found or found[-1]["role"] != "assistant":
            query = "SELECT text FROM chunk WHERE session = ? ORDER BY number"
            chunks = [text for (text,) in self._connection.execute(query, (session,))]
            if chunks:
                found.append({"role": "assistant", "content": "".join(chunks)})
        return found

    def tail(self, session: str, count: int) -> list[dict[str, Any]]:
        rows = self._connection.execute(f"{SELECT} DESC LIMIT ?", (session, count)).fetchall()
        return [chat(*row) for row in reversed(rows)]

    def _insert(self, session: str, message: Message) -> None:
        now = time.time()
        if self._events:
            query = "SELECT max(version) FROM event WHERE session = ?"
            version = (self._connection.execute(query, (session,)).fetchone()[0] or 0) + 1
            data = json.dumps(message._asdict())
            self._connection.execute(
                "INSERT INTO event (session, version, type, data, at) VALUES (?, ?, ?, ?, ?)",
                (session, version, message.role, data, now),
            )
        self._connection.execute(INSERT, (session, *message, now))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                break
            except dbapi.Error as error:
                if not self._retries or dbapi.code(error) != dbapi.BUSY:
                    raise
                time.sleep(random.uniform(0.000_2, 0.002))
        yield
        self._connection.execute("COMMIT")


def open_store(folder: Path, variant: str) -> Store:
    return Floor(folder, variant)


def messages_of(turn: SaidTurn) -> tuple[Message, ...]:
    function = {"name": turn.tool, "arguments": turn.arguments}
    calls = json.dumps([{"id": turn.call, "type": "function", "function": function}])
    return (
        Message("user", turn.question),
        Message("assistant", None, calls),
        Message("tool", turn.result, None, turn.call),
        Message("assistant", turn.answer),
    )


def chat(role: str, content: str | None, calls: str | None, call: str | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": content}
    if calls:
        message["tool_calls"] = json.loads(calls)
    if call:
        message["tool_call_id"] = call
    return message
