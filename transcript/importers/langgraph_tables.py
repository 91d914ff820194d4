"""The tables of LangGraph's SqliteSaver: checkpoints, and the writes that lead from one to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

VALUE_LIMIT = 64 << 20
"""Bytes that a stored value may have; a larger one is not read."""

CHECKPOINTS = {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint"}

_BLOB = "CASE WHEN length({0}) <= ? THEN CAST({0} AS BLOB) END, length({0})"
_PLACE = "thread_id = CAST(? AS TEXT) AND checkpoint_ns = ? AND checkpoint_id = ?"


class Stored(NamedTuple):
    """A stored value: its type, its bytes (None where there are too many), how many there are."""

    type: str | None
    data: bytes | None
    size: int | None


class Checkpoint(NamedTuple):
    """A row of `checkpoints`."""

    id: str
    parent: str | None
    value: Stored
    metadata: bytes | None


class Write(NamedTuple):
    """A row of `writes`: what a task wrote to a channel."""

    place: str
    channel: str
    value: Stored


class Tables:
    """One database. Threads are asked for by the bytes of their names: not all are text."""

    def __init__(self, connection: Any, tables: dict[str, set[str]]) -> None:
        self._connection = connection
        typed = "type" in tables["checkpoints"]
        self._type = "CAST(type AS TEXT)" if typed else "'json'"
        path = "task_path, " if "task_path" in tables.get("writes", ()) else ""
        self._written = "writes" in tables
        self._order = f"{path}task_id, idx"

    def namespaces(self) -> Iterator[tuple[bytes | None, str]]:
        """Iterate over the threads, and the graphs within each; a thread's own graph has no name.

        A damaged file has rows without a thread.
        """
        found = self._connection.execute(
            "SELECT DISTINCT CAST(thread_id AS BLOB), checkpoint_ns FROM checkpoints ORDER BY 1, 2"
        )
        for thread, namespace in found:
            yield thread, str(namespace)

    def checkpoints(self, thread: bytes, namespace: str) -> Iterator[Checkpoint]:
        """Iterate over checkpoints in the order of their ids, which is that of time."""
        found = self._connection.execute(
            f"SELECT checkpoint_id, parent_checkpoint_id, {self._type}, {_BLOB.format('checkpoint')},"
            " CASE WHEN length(metadata) <= ? THEN CAST(metadata AS BLOB) END"
            " FROM checkpoints WHERE thread_id = CAST(? AS TEXT) AND checkpoint_ns = ?"
            " ORDER BY checkpoint_id",
            (VALUE_LIMIT, VALUE_LIMIT, thread, namespace),
        )
        for id, parent, type, data, size, metadata in found:
            yield Checkpoint(str(id), parent and str(parent), Stored(type, data, size), metadata)

    def checkpoint(self, thread: bytes, namespace: str, id: str) -> Checkpoint | None:
        """Return one checkpoint."""
        found = self._connection.execute(
            f"SELECT checkpoint_id, parent_checkpoint_id, {self._type}, {_BLOB.format('checkpoint')}"
            f" FROM checkpoints WHERE {_PLACE}",
            (VALUE_LIMIT, thread, namespace, id),
        ).fetchone()
        if found is None:
            return None
        return Checkpoint(found[0], found[1] and str(found[1]), Stored(*found[2:]), None)

    def has(self, thread: bytes, namespace: str, id: str) -> bool:
        """Tell whether there is such a checkpoint."""
        found = self._connection.execute(
            f"SELECT 1 FROM checkpoints WHERE {_PLACE}", (thread, namespace, id)
        )
        return found.fetchone() is not None

    def writes(
        self, thread: bytes, namespace: str, checkpoint: str, *channels: str
    ) -> Iterator[Write]:
        """Iterate over what was written after a checkpoint to some channels, in the order of its use."""
        if not self._written:
            return
        found = self._connection.execute(
            f"SELECT task_id, idx, channel, {self._type}, {_BLOB.format('value')} FROM writes"
            f" WHERE {_PLACE} AND channel IN ({', '.join('?' * len(channels))}) ORDER BY {self._order}",
            (VALUE_LIMIT, thread, namespace, checkpoint, *channels),
        )
        for task, index, channel, *value in found.fetchall():
            place = f"writes {checkpoint} {task} {index}"
            yield Write(place, str(channel), Stored(*value))
