"""The floor on PostgreSQL: an INSERT and a COMMIT a message by psycopg, at the server's defaults."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module  # psycopg is optional
from pathlib import Path
from typing import Any

from store import Store
from stores.floor import Message, chat, messages_of
from workload import SaidTurn

TABLES = """
CREATE TABLE IF NOT EXISTS message (
    id bigserial PRIMARY KEY, session text NOT NULL, role text NOT NULL, content text, calls text,
    call text, at timestamptz NOT NULL DEFAULT now());
CREATE INDEX IF NOT EXISTS message_session ON message (session, id);
"""
INSERT = "INSERT INTO message (session, role, content, calls, call) VALUES (%s, %s, %s, %s, %s)"
SELECT = "SELECT role, content, calls, call FROM message WHERE session = %s ORDER BY id"


class FloorPostgreSQL(Store):
    def __init__(self, folder: Path, variant: str) -> None:
        super().__init__(folder, variant)
        psycopg = import_module("psycopg")
        self._connection: Any = psycopg.connect(os.environ["DATABASE_URL"])

    def close(self) -> None:
        self._connection.close()

    def prepare(self, session: str) -> None:
        del session
        self._connection.execute(TABLES)
        self._connection.commit()

    def append(self, session: str, turn: SaidTurn) -> None:
        for message in messages_of(turn):
            self._insert(session, message)

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        self._insert(session, Message("user", question))
        self._insert(session, Message("assistant", "".join(chunks)))

    def load(self, session: str) -> list[dict[str, Any]]:
        rows = self._connection.execute(SELECT, (session,)).fetchall()
        return [chat(*row) for row in rows]

    def _insert(self, session: str, message: Message) -> None:
        self._connection.execute(INSERT, (session, *message))
        self._connection.commit()


def open_store(folder: Path, variant: str) -> Store:
    return FloorPostgreSQL(folder, variant)
