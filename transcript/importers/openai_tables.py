"""The tables of the OpenAI Agents SDK: messages, and which of them stand in which branch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ITEM_LIMIT = 64 << 20
"""Bytes that an item may have; a larger one is not read."""
MAIN = "main"
"""The branch that every session has."""

MESSAGES = {"id", "session_id", "message_data", "created_at"}
_STRUCTURE = {"session_id", "message_id", "branch_id", "sequence_number", "user_turn_number"}
_USAGE: tuple[str, ...] = ("requests", "input_tokens", "output_tokens", "total_tokens")


@dataclass
class Row:
    """A message as it stands in the file; `data` is None where there is none that can be read."""

    id: int
    data: bytes | None
    size: int | None
    at: str | None
    follows: bool
    """Whether the message with the id before is there."""
    structure: int | None = None
    usage: dict[str, Any] | None = None


@dataclass
class Table:
    """A table of messages. Sessions are asked for by the bytes of their names: not all are text."""

    connection: Any
    name: str
    structured: bool
    """Whether `message_structure` is of this table."""
    once: bool
    """Whether an id is never given again."""

    @property
    def sql(self) -> str:
        return _quoted(self.name)

    def count(self) -> int:
        (count,) = self.connection.execute(f"SELECT count(*) FROM {self.sql}").fetchone()
        return int(count)

    def session_names(self) -> Iterator[bytes | None]:
        """Iterate over the names; a damaged file has rows without one."""
        found = self.connection.execute(
            f"SELECT DISTINCT CAST(session_id AS BLOB) FROM {self.sql} ORDER BY 1"
        )
        for (name,) in found:
            yield name

    def branches(self, session: bytes) -> list[str]:
        """Return the branches in the order in which they began; one without a name where there are none."""
        if not self.structured:
            return [""]
        found = self.connection.execute(
            "SELECT branch_id FROM message_structure WHERE session_id = CAST(? AS TEXT)"
            " GROUP BY branch_id ORDER BY min(id)",
            (session,),
        )
        return [str(branch) for (branch,) in found] or [""]

    @property
    def _read(self) -> str:
        """Return the columns of a Row, without its id."""
        return (
            "CASE WHEN length(CAST(m.message_data AS BLOB)) <= ? THEN CAST(m.message_data AS BLOB) END,"
            " length(CAST(m.message_data AS BLOB)), m.created_at,"
            f" m.id <= 1 OR EXISTS (SELECT 1 FROM {self.sql} p WHERE p.id = m.id - 1)"
        )

    def rows(self, session: bytes, branch: str) -> Iterator[Row]:
        """Iterate over what is in a branch, in its order; over all messages where there are none."""
        if not branch:
            found = self.connection.execute(
                f"SELECT m.id, {self._read} FROM {self.sql} m"
                " WHERE m.session_id = CAST(? AS TEXT) ORDER BY m.id",
                (ITEM_LIMIT, session),
            )
            for row in found:
                yield Row(*row)
            return
        found = self.connection.execute(
            f"SELECT s.message_id, {self._read}, s.id, {', '.join(f'u.{name}' for name in _USAGE)}"
            f" FROM message_structure s LEFT JOIN {self.sql} m ON m.id = s.message_id"
            " LEFT JOIN turn_usage u ON u.session_id = s.session_id"
            " AND u.branch_id = s.branch_id AND u.user_turn_number = s.user_turn_number"
            " WHERE s.session_id = CAST(? AS TEXT) AND s.branch_id = ? ORDER BY s.sequence_number, s.id",
            (ITEM_LIMIT, session, branch),
        )
        for id, data, size, at, follows, structure, *used in found:
            usage = dict(zip(_USAGE, used, strict=True)) if used[0] is not None else None
            yield Row(id, data, size, at, follows, structure, usage)

    def half_written(self, session: bytes) -> Iterator[Row]:
        """Iterate over the messages that no branch holds."""
        found = self.connection.execute(
            f"SELECT m.id, {self._read} FROM {self.sql} m"
            " WHERE m.session_id = CAST(? AS TEXT) AND m.id NOT IN"
            " (SELECT message_id FROM message_structure WHERE session_id = CAST(? AS TEXT))"
            " ORDER BY m.id",
            (ITEM_LIMIT, session, session),
        )
        for row in found:
            yield Row(*row)

    def before(self, id: int) -> int:
        """Return the id of the message before, of whatever session; 0 where there is none."""
        (found,) = self.connection.execute(
            f"SELECT max(id) FROM {self.sql} WHERE id < ?", (id,)
        ).fetchone()
        return int(found or 0)

    def gone_at_the_end(self, session: bytes, branch: str) -> tuple[int, int] | None:
        """Return the first and last id that were given after the last message, if that is this session's."""
        if not self.once:
            return None
        last = self.connection.execute(
            f"SELECT id, CAST(session_id AS BLOB) FROM {self.sql} ORDER BY id DESC LIMIT 1"
        ).fetchone()
        given = self.connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = ?", (self.name,)
        ).fetchone()
        if last is None or given is None or last[1] != session or branch not in ("", MAIN):
            return None
        return (int(last[0]) + 1, int(given[0])) if int(given[0]) > int(last[0]) else None


def table_of(connection: Any, name: str, found: dict[str, set[str]]) -> Table:
    """Find out what a table of messages is like."""
    structured = found.get("message_structure", set()) >= _STRUCTURE and "turn_usage" in found
    if structured:
        keys = connection.execute("PRAGMA foreign_key_list(message_structure)").fetchall()
        owners = [str(key[2]) for key in keys if key[3] == "message_id"]
        structured = not owners or name in owners
    (made,) = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)
    ).fetchone()
    return Table(connection, name, structured, once="AUTOINCREMENT" in str(made).upper())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
