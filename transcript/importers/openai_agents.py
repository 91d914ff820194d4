"""Sessions of the OpenAI Agents SDK: the SQLite files of SQLiteSession and AdvancedSQLiteSession.

A session's items stand in `agent_messages` (or a table of another name with the same columns), an item
of JSON a row. AdvancedSQLiteSession adds `message_structure`, which says for each branch what is in it
and in which order; a branch other than `main` becomes a session of its own, `SESSION@BRANCH`. Its
`turn_usage` goes to the last response of each turn.

Row ids are never given twice, so an id that is missing is a message that was taken out: by pop_item,
clear_session or a compaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.events import SessionStarted, TranscriptRewound
from onrecord.transcript.importers import codes, foreign
from onrecord.transcript.importers.openai_items import Items
from onrecord.transcript.importers.openai_tables import (
    ITEM_LIMIT,
    MAIN,
    MESSAGES,
    Row,
    Table,
    table_of,
)
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.source import Entry
from onrecord.transcript.importers.times import microseconds

FORMAT = "openai-agents"
TRIED = 20
"""Messages of a gap inside a turn, of which one may have begun a turn that was taken back."""


def looks_right(path: Path, head: bytes) -> bool:
    """Tell whether a file is a database with a table of messages."""
    return foreign.has_table(path, head, MESSAGES)


@contextmanager
def open_source(path: Path) -> Iterator[Sessions]:
    """Open a database for reading. Raise ImportRefused if it has no such table."""
    with foreign.open_database(path) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            found = foreign.tables(connection)
            names = sorted(name for name, columns in found.items() if columns >= MESSAGES)
            if not names:
                raise _refused(path, f"no table has the columns {', '.join(sorted(MESSAGES))}")
            tables = [table_of(connection, name, found) for name in names]
            yield Sessions(tables, foreign.was_left_open(path))
        except foreign.Error as error:
            raise _refused(path, str(error)) from error


def _refused(path: Path, why: str) -> ImportRefused:
    return ImportRefused(
        f"{path} can't be read as a database of the OpenAI Agents SDK: {why}; give the file that "
        "was named to SQLiteSession",
        file=str(path), line=0, expected="a database of the OpenAI Agents SDK",
    )  # fmt: skip


class Sessions:
    """The sessions of one file. `left`: its program ended in mid-work."""

    def __init__(self, tables: list[Table], left: bool) -> None:
        self._tables = tables
        self._left = left
        self.total: int | None = sum(table.count() for table in tables)

    def sessions(self) -> Iterator[tuple[str, Iterator[Entry]]]:
        """Iterate over the sessions, and the branches of each."""
        for table in self._tables:
            for name in table.session_names():
                if name is None:
                    yield foreign.of_no_session(SourceRows(FORMAT, ""), table.name)
                    continue
                told = name.decode("utf-8", "replace")
                told = told if len(self._tables) == 1 else f"{table.name}/{told}"
                branches = table.branches(name)
                for branch in branches:
                    own = told if branch in ("", MAIN) else f"{told}@{branch}"
                    rows = SourceRows(FORMAT, own)
                    entries = self._entries(table, name, branch, rows, told)
                    yield own, foreign.read_through(entries, rows, table.name)

    def _entries(
        self, table: Table, session: bytes, branch: str, rows: SourceRows, parent: str
    ) -> Iterator[Entry]:
        """Iterate over the entries of one session, or of one branch of it."""
        items = Items(rows)
        reading = _Reading(table, rows, items)
        began = rows.session == parent
        for row in table.rows(session, branch):
            if not began:
                started, began = SessionStarted(parent=parent, title=branch), True
                rows.add(started, microseconds(row.at), f"message_structure {branch}")
            reading.take(row)
            yield from rows.take()
        for row in table.half_written(session) if branch == MAIN else ():
            reading.take_hidden(row)
            yield from rows.take()
        if gone := table.gone_at_the_end(session, branch):
            reading.tell_gone(*gone)
        items.finish()
        if self._left and not items.answered:
            rows.fault(
                codes.TORN, items.place,
                "the last message has no answer: the program ended while it worked on one",
            )  # fmt: skip
        yield from rows.take()


class _Reading:
    """Reads rows in order, and sees what is missing between them."""

    def __init__(self, table: Table, rows: SourceRows, items: Items) -> None:
        self._table, self._rows, self._items = table, rows, items

    def take(self, row: Row) -> None:
        place = f"{self._table.name} {row.id}"
        if row.size is None:
            if row.structure is not None:
                place = f"message_structure {row.structure}"
            self._rows.fault(codes.LOST, place, f"message {row.id} isn't in the file")
            return
        item, wrong = _item(row)
        if not row.follows:
            self.tell_gone(self._table.before(row.id) + 1, row.id - 1)
        if item is None:
            code = codes.LOST if wrong.startswith("encrypted") else codes.UNREADABLE
            self._rows.fault(code, place, wrong)
            return
        key = str(row.id)
        if not self._table.once:  # the id alone may have been another message's before
            key += "-" + blake2b(row.data or b"", digest_size=4).hexdigest()
        self._items.read(key, item, microseconds(row.at), place)
        self._items.usage = row.usage

    def tell_gone(self, first: int, last: int) -> None:
        """Say that messages were taken out, and take back the turns that began with them.

        Whoever never read those turns has none to take back. Where the gap begins inside a turn, its
        first messages may have been that turn's, and a later one may have begun the next.
        """
        count = last - first + 1
        place = f"{self._table.name} {first}" + (f"-{last}" if count > 1 else "")
        told = "1 message is" if count == 1 else f"{count} messages are"
        self._items.end_response()
        self._rows.fault(
            codes.GAP, place,
            f"{told} gone: taken back (pop_item), cleared (clear_session) or replaced by a compaction",
        )  # fmt: skip
        for id in range(first, min(last, first if self._items.answered else first + TRIED) + 1):
            event = TranscriptRewound(to_turn=str(id))
            self._rows.add(event, self._items.at, f"{self._table.name} {id}")

    def take_hidden(self, row: Row) -> None:
        """Take a message in that no branch holds: it was said, and half of its append is missing."""
        self._items.end_response()
        self._rows.fault(
            codes.HIDDEN, f"{self._table.name} {row.id}",
            "message_structure has no row of it: no branch holds it, and the SDK doesn't show it",
        )  # fmt: skip
        self.take(row)


def _item(row: Row) -> tuple[dict[str, Any] | None, str]:
    """Return a row's item, or what is wrong with it."""
    if row.data is None:
        return None, f"the item has {row.size} bytes, over {ITEM_LIMIT}, and was not read"
    try:
        found = json.loads(row.data.decode("utf-8"))
    except UnicodeDecodeError as error:
        return None, f"byte {error.start + 1} of the item isn't UTF-8"
    except (ValueError, RecursionError) as error:
        return None, f"the item is no JSON ({error})"
    if not isinstance(found, dict):
        return None, f"the item is a {type(found).__name__}, and no object"
    if "__enc__" in found:
        return None, "encrypted by EncryptedSession; the key isn't in the file"
    return found, ""
