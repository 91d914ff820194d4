"""The tables of a state.db, of whatever version: a column that isn't there has its default."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from onrecord.transcript.importers import foreign
from onrecord.transcript.importers.hermes.cells import microseconds

PAGE = 500
"""Rows that are read at once."""

MESSAGES: dict[str, str] = {
    "id": "NULL",
    "role": "''",
    "content": "NULL",
    "tool_call_id": "NULL",
    "tool_calls": "NULL",
    "timestamp": "NULL",
    "finish_reason": "NULL",
    "reasoning": "NULL",
    "reasoning_content": "NULL",
    "platform_message_id": "NULL",
    "observed": "0",
    "active": "1",
    "compacted": "0",
    "api_content": "NULL",
    "effect_disposition": "NULL",
}
"""Columns that are read of a message, each with what it is in a version that doesn't have it."""
SESSIONS: dict[str, str] = dict.fromkeys(
    (
        "id", "source", "user_id", "chat_id", "chat_type", "session_key", "title",
        "parent_session_id", "started_at", "ended_at", "end_reason",
    ),
    "NULL",
)  # fmt: skip
OBLIGATIONS: dict[str, str] = dict.fromkeys(
    (
        "obligation_id", "session_key", "platform", "chat_id", "thread_id", "content", "state",
        "attempts", "created_at", "updated_at", "last_error",
    ),
    "NULL",
)  # fmt: skip

NEEDED = {"sessions": {"id"}, "messages": {"id", "session_id", "role"}}
"""Tables and columns without which a database isn't Hermes's."""

Row = tuple[Any, ...]


class Tables:
    """Reads one database. Whatever can't be read raises the driver's `foreign.Error`."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.columns = foreign.tables(connection)
        names = self.columns.get("messages", set())
        self._messages = f"SELECT {_list(MESSAGES, names)} FROM messages WHERE "
        raw = _list(MESSAGES, names, raw=True)
        self._raw = f"SELECT {raw} FROM messages WHERE id = ?"

    def missing(self) -> list[str]:
        """Return what a database of Hermes has and this one hasn't."""
        return [
            f"{table}.{column}"
            for table, columns in NEEDED.items()
            for column in sorted(columns - self.columns.get(table, set()))
        ]

    def count(self) -> int:
        """Return how many messages there are."""
        found: int = self.connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0]
        return found

    def sessions(self) -> Iterator[Row]:
        """Iterate over the sessions, in the order in which they were made."""
        names = _list(SESSIONS, self.columns["sessions"], raw=True)
        sql = f"SELECT rowid, {names} FROM sessions WHERE rowid > ? ORDER BY rowid LIMIT {PAGE}"
        last = -1 << 63
        while page := self.connection.execute(sql, (last,)).fetchall():
            yield from (tuple(_readable(cell) for cell in row[1:]) for row in page)
            last = page[-1][0]

    def strays(self) -> list[str]:
        """Return the sessions that have messages, and no row of their own."""
        found = self.connection.execute(
            "SELECT DISTINCT session_id FROM messages WHERE session_id <> ''"
            " AND session_id NOT IN (SELECT id FROM sessions WHERE id IS NOT NULL) ORDER BY session_id"
        )
        return [str(session) for (session,) in found]

    def ids(self, session: str) -> array[int]:
        """Return the ids of a session's messages in their order, 8 bytes each."""
        sql = "SELECT id FROM messages{} WHERE session_id = ?"
        try:
            found = array(
                "q", (id for (id,) in self.connection.execute(sql.format(""), (session,)))
            )
        except foreign.Error:  # the index is broken: the table may not be
            rows = self.connection.execute(sql.format(" NOT INDEXED"), (session,))
            found = array("q", (id for (id,) in rows))
        return array("q", sorted(found))

    def messages(self, ids: Sequence[int]) -> list[Row]:
        """Return the messages of these ids, in order."""
        marks = ",".join("?" * len(ids))
        sql = f"{self._messages}id IN ({marks}) ORDER BY id"
        return list(self.connection.execute(sql, list(ids)))

    def message(self, id: int) -> Row | None:
        """Return one message, whatever bytes its texts are: those that are no UTF-8 are given as bytes."""
        row = self.connection.execute(self._raw, (id,)).fetchone()
        return None if row is None else tuple(map(_text, row))

    def said(self, session: str, since: float, until: float, most: int) -> list[Row]:
        """Return the latest rows of a span of time, in their order.

        Each is id, role, content, observed, time and whether the row is a whole response: has a
        finish_reason or calls.
        """
        there = self.columns["messages"]
        observed = "observed" if "observed" in there else "0"
        ends = [name for name in ("finish_reason", "tool_calls") if name in there]
        whole = " OR ".join(f"{name} IS NOT NULL" for name in ends) or "1"
        rows = self.connection.execute(
            f"SELECT id, role, content, {observed}, timestamp, {whole} FROM messages"
            " WHERE session_id = ? AND timestamp BETWEEN ? AND ? AND role IN ('user', 'assistant')"
            " ORDER BY timestamp DESC LIMIT ?",
            (session, since, until, most),
        ).fetchall()
        return sorted(rows)

    def sessions_where(self, condition: str, *values: str) -> list[tuple[str, int, int | None]]:
        """Return sessions: name, when they began and ended (µs), in that order."""
        if not self.has("sessions", "source", "chat_id", "session_key", "started_at"):
            return []
        wanted = {"id": "NULL", "started_at": "NULL", "ended_at": "NULL"}
        rows = self.select("sessions", wanted, f"WHERE {condition}", *values)
        found = [(str(id), microseconds(began), microseconds(end)) for id, began, end in rows]
        return sorted(
            ((id, began, end) for id, began, end in found if began is not None),
            key=lambda session: session[1],
        )

    def summaries(self, session: str, starts: Sequence[str]) -> list[int]:
        """Return the rows that begin so, of a session that was compacted in place."""
        if not self.has("messages", "compacted", "active", "tool_calls", "tool_call_id"):
            return []
        archived = "session_id = ? AND active = 0 AND compacted = 1"
        if not self._has_row(archived, session):
            return []
        begins = " OR ".join(["instr(content, ?) = 1"] * len(starts))
        rows = self.connection.execute(
            f"SELECT id FROM messages WHERE session_id = ? AND ({begins}) ORDER BY id",
            (session, *starts),
        )
        return [id for (id,) in rows]

    def stored_again(self, session: str, before: str) -> dict[int, int]:
        """Return rows that are stored in a session, with their time, in `before` it or earlier in it.

        Each with the row that it is again.
        """
        if not self.has("messages", "tool_calls", "tool_call_id"):
            return {}
        earlier = "AND first.id < again.id" if session == before else ""
        rows = self.connection.execute(
            "SELECT again.id, MIN(first.id) FROM messages AS again JOIN messages AS first"
            f" ON first.session_id = ? AND first.timestamp = again.timestamp {earlier}"
            " AND first.role = again.role AND first.content IS again.content"
            " AND first.tool_calls IS again.tool_calls AND first.tool_call_id IS again.tool_call_id"
            " WHERE again.session_id = ? GROUP BY again.id",
            (before, session),
        )
        return dict(rows.fetchall())

    def was_compacted_away(self, session: str | None) -> bool:
        """Tell whether a session ended in a compaction, and another goes on from it."""
        if session is None or not self.has("sessions", "end_reason"):
            return False
        sql = "SELECT 1 FROM sessions WHERE id = ? AND end_reason = 'compression'"
        return self.connection.execute(sql, (session,)).fetchone() is not None

    def view(self, ids: Sequence[int], *, archived: bool) -> list[Row]:
        """Return id, role, content, tool calls, call and time of messages; `archived`: by a compaction."""
        marks = ",".join("?" * len(ids))
        found: list[Row] = self.connection.execute(
            "SELECT id, role, content, tool_calls, tool_call_id, timestamp FROM messages"
            f" WHERE id IN ({marks}) AND compacted >= {int(archived)}"
            " AND role IN ('user', 'assistant', 'tool') ORDER BY id",
            list(ids),
        ).fetchall()
        return found

    def _has_row(self, condition: str, *values: str) -> bool:
        sql = f"SELECT 1 FROM messages WHERE {condition} LIMIT 1"
        return self.connection.execute(sql, values).fetchone() is not None

    def has(self, table: str, *columns: str) -> bool:
        """Tell whether a table has these columns."""
        return set(columns) <= self.columns.get(table, set())

    def select(self, table: str, wanted: dict[str, str], rest: str, *values: Any) -> list[Row]:
        """Return rows of a table with the wanted columns."""
        names = _list(wanted, self.columns.get(table, set()), raw=True)
        rows = self.connection.execute(f"SELECT {names} FROM {table} {rest}", values)
        return [tuple(map(_readable, row)) for row in rows]


def _list(wanted: dict[str, str], there: set[str], *, raw: bool = False) -> str:
    """Return the list of a SELECT; `raw`: texts as bytes, which always can be read."""
    have = "CASE typeof({0}) WHEN 'text' THEN CAST({0} AS BLOB) ELSE {0} END" if raw else "{0}"
    return ", ".join(
        (have.format(name) if name in there else default) for name, default in wanted.items()
    )


def _text(cell: Any) -> Any:
    if not isinstance(cell, bytes):
        return cell
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return cell


def _readable(cell: Any) -> Any:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
