"""Small databases with the schema of LangGraph's SqliteSaver, and values as it stores them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from onrecord.transcript.storage import dbapi

_SCHEMA = """
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    type TEXT,
    checkpoint BLOB,
    metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE TABLE writes (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    task_path TEXT NOT NULL DEFAULT '',
    idx INTEGER NOT NULL,
    channel TEXT NOT NULL,
    type TEXT,
    value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
"""
PARENT = object()
"""Stands for: the checkpoint before."""


def extension(code: int, *values: Any) -> msgspec.msgpack.Ext:
    """Return a value that names what LangGraph would import and call."""
    return msgspec.msgpack.Ext(code, msgspec.msgpack.encode(list(values)))


def message(kind: str, name: str, **fields: Any) -> msgspec.msgpack.Ext:
    return extension(5, f"langchain_core.messages.{kind}", name, fields, "model_validate_json")


def human(id: str | None, text: Any, **fields: Any) -> msgspec.msgpack.Ext:
    return message("human", "HumanMessage", id=id, content=text, **fields)


def ai(id: str | None, text: Any, *calls: str, **fields: Any) -> msgspec.msgpack.Ext:
    asked = [{"id": call, "name": "look", "args": {"at": 1}, "type": "tool_call"} for call in calls]
    return message("ai", "AIMessage", id=id, content=text, tool_calls=asked, **fields)


def tool(id: str | None, call: str, text: str, **fields: Any) -> msgspec.msgpack.Ext:
    return message("tool", "ToolMessage", id=id, content=text, tool_call_id=call, **fields)


def system(id: str, text: str) -> msgspec.msgpack.Ext:
    return message("system", "SystemMessage", id=id, content=text)


def remove(id: str) -> msgspec.msgpack.Ext:
    return message("modifier", "RemoveMessage", id=id, content="")


class Checkpoints:
    """A file of SqliteSaver, with one thread `t` unless another is named."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database: Any = dbapi.connect(str(path), isolation_level=None)
        self.database.executescript(_SCHEMA)
        self.last: str | None = None
        self.count = 0

    def add(
        self,
        *messages: Any,
        parent: Any = PARENT,
        source: str = "loop",
        thread: str = "t",
        namespace: str = "",
        **channels: Any,
    ) -> str:
        """Add a checkpoint whose list of messages is this. Return its id."""
        values = {"messages": list(messages), **channels}
        stored = msgspec.msgpack.encode(
            {
                "v": 4, "id": "any", "ts": "2026-11-30T01:00:00+00:00", "channel_values": values,
                "channel_versions": dict.fromkeys(values, "1"), "versions_seen": {},
            }
        )  # fmt: skip
        return self.store(
            "msgpack", stored, parent=parent, source=source, thread=thread, namespace=namespace
        )

    def store(
        self,
        type: str,
        stored: bytes,
        *,
        parent: Any = PARENT,
        source: str = "loop",
        thread: str = "t",
        namespace: str = "",
    ) -> str:
        """Add a checkpoint as it is stored."""
        self.count += 1
        id = f"c{self.count:04}"
        self.run(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)",
            thread, namespace, id, self.last if parent is PARENT else parent, type, stored,
            json.dumps({"source": source, "step": self.count}).encode(),
        )  # fmt: skip
        self.last = id
        return id

    def write(
        self, checkpoint: str, value: Any, channel: str = "messages", type: str = "msgpack"
    ) -> None:
        """Add what a task wrote after a checkpoint."""
        stored = value if type == "pickle" else msgspec.msgpack.encode(value)
        self.run(
            "INSERT INTO writes VALUES ('t', '', ?, 'task', '', (SELECT count(*) FROM writes), ?, ?, ?)",
            checkpoint, channel, type, stored,
        )  # fmt: skip

    def run(self, sql: str, *values: Any) -> Any:
        return self.database.execute(sql, values)
