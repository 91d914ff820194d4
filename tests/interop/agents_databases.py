"""Small databases with the schema of the OpenAI Agents SDK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onrecord.transcript.storage import dbapi

_SESSIONS = """
CREATE TABLE agent_sessions (
    session_id TEXT PRIMARY KEY,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE agent_messages (
    id INTEGER PRIMARY KEY {once},
    session_id TEXT NOT NULL,
    message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE
);
CREATE INDEX idx_agent_messages_session_id ON agent_messages (session_id, id);
"""
_STRUCTURE = """
CREATE TABLE message_structure (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_id INTEGER NOT NULL,
    branch_id TEXT NOT NULL DEFAULT 'main',
    message_type TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    user_turn_number INTEGER,
    branch_turn_number INTEGER,
    tool_name TEXT,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions(session_id) ON DELETE CASCADE,
    FOREIGN KEY (message_id) REFERENCES agent_messages(id) ON DELETE CASCADE
);
CREATE TABLE turn_usage (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    branch_id TEXT NOT NULL DEFAULT 'main',
    user_turn_number INTEGER NOT NULL,
    requests INTEGER DEFAULT 0,
    input_tokens INTEGER DEFAULT 0,
    output_tokens INTEGER DEFAULT 0,
    total_tokens INTEGER DEFAULT 0,
    input_tokens_details JSON,
    output_tokens_details JSON,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    UNIQUE(session_id, branch_id, user_turn_number)
);
"""
BEGAN = "2026-11-30 01:00:00"


class AgentsDatabase:
    """A file of SQLiteSession; `structured`: of AdvancedSQLiteSession; `once`: ids are never reused."""

    def __init__(self, path: Path, *, structured: bool = False, once: bool = True) -> None:
        self.path = path
        self.structured = structured
        self.database: Any = dbapi.connect(str(path), isolation_level=None)
        self.database.executescript(_SESSIONS.format(once="AUTOINCREMENT" if once else ""))
        if structured:
            self.database.executescript(_STRUCTURE)

    def add(self, item: Any, session: str = "s", branch: str = "main") -> int:
        """Add an item: bytes and texts as they are, anything else as JSON. Return its id."""
        data = item if isinstance(item, str | bytes) else json.dumps(item)
        self.run("INSERT OR IGNORE INTO agent_sessions (session_id) VALUES (?)", session)
        id = int(
            self.run(
                "INSERT INTO agent_messages (session_id, message_data, created_at) VALUES (?, ?, ?)",
                session, data, BEGAN,
            ).lastrowid
        )  # fmt: skip
        if self.structured:
            self.place(id, session, branch)
        return id

    def place(self, id: int, session: str = "s", branch: str = "main") -> None:
        """Put a message into a branch."""
        self.run(
            "INSERT INTO message_structure (session_id, message_id, branch_id, message_type,"
            " sequence_number, user_turn_number) SELECT ?, ?, ?, 'any',"
            " (SELECT coalesce(max(sequence_number), 0) + 1 FROM message_structure), 1",
            session, id, branch,
        )  # fmt: skip

    def user(self, text: str, **where: str) -> int:
        return self.add({"role": "user", "content": text}, **where)

    def assistant(self, text: str, **where: str) -> int:
        part = {"type": "output_text", "text": text, "annotations": []}
        said = {"type": "message", "role": "assistant", "id": "__fake_id__", "content": [part]}
        return self.add(said, **where)

    def call(self, id: str, **where: str) -> int:
        called = {"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"}
        return self.add(called, **where)

    def output(self, id: str, text: str = "seen", **where: str) -> int:
        return self.add({"type": "function_call_output", "call_id": id, "output": text}, **where)

    def pop(self, count: int = 1) -> None:
        """Take the newest messages back, as pop_item does."""
        for _ in range(count):
            self.run("DELETE FROM agent_messages WHERE id = (SELECT max(id) FROM agent_messages)")

    def run(self, sql: str, *values: Any) -> Any:
        return self.database.execute(sql, values)
