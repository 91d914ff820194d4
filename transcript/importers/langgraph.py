"""Threads of LangGraph: the SQLite files of its SqliteSaver.

A thread becomes a session, and so does each graph within it that has checkpoints of its own:
`THREAD@NAMESPACE`. Its values are read as plain data; what names a class stays closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.events import SessionStarted
from onrecord.transcript.importers import foreign
from onrecord.transcript.importers.langgraph_tables import CHECKPOINTS, Tables
from onrecord.transcript.importers.langgraph_threads import Thread, ThreadRows
from onrecord.transcript.importers.source import Entry

FORMAT = "langgraph"


def looks_right(path: Path, head: bytes) -> bool:
    """Tell whether a file is a database with a table of checkpoints."""
    return foreign.has_table(path, head, CHECKPOINTS)


@contextmanager
def open_source(path: Path) -> Iterator[Threads]:
    """Open a database for reading. Raise ImportRefused if it has no such table."""
    with foreign.open_database(path) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            found = foreign.tables(connection)
            if not found.get("checkpoints", set()) >= CHECKPOINTS:
                raise _refused(path, f"no table checkpoints has {', '.join(sorted(CHECKPOINTS))}")
            yield Threads(Tables(connection, found), foreign.was_left_open(path))
        except foreign.Error as error:
            raise _refused(path, str(error)) from error


def _refused(path: Path, why: str) -> ImportRefused:
    return ImportRefused(
        f"{path} can't be read as a database of LangGraph: {why}; give the file that was named to "
        "SqliteSaver",
        file=str(path), line=0, expected="a database of LangGraph's SqliteSaver",
    )  # fmt: skip


class Threads:
    """The threads of one file. `left`: its program ended in mid-work."""

    def __init__(self, tables: Tables, left: bool) -> None:
        self._tables = tables
        self._left = left
        self.total: int | None = None  # how many messages there are shows only as they are read

    def sessions(self) -> Iterator[tuple[str, Iterator[Entry]]]:
        """Iterate over the threads and their graphs that hold messages."""
        for thread, namespace in self._tables.namespaces():
            if thread is None:
                yield foreign.of_no_session(ThreadRows(FORMAT, ""), "checkpoints")
                continue
            parent = thread.decode("utf-8", "replace")
            name = f"{parent}@{namespace}" if namespace else parent
            rows = ThreadRows(FORMAT, name)
            followed = Thread(self._tables, thread, namespace, rows).entries(self._left)
            entries = foreign.read_through(followed, rows, f"checkpoints of {name}")
            first = next(entries, None)
            if first is None:
                continue
            begun = _begun(name, parent, namespace, first[1]) if namespace else []
            yield name, chain(begun, [first], entries)


def _begun(name: str, thread: str, namespace: str, at: int | None) -> list[Entry]:
    """Say of which thread a graph is a part."""
    rows = ThreadRows(FORMAT, name)
    started = SessionStarted(parent=thread, title=namespace)
    rows.add(started, at, f"checkpoints of {namespace}")
    return rows.take()
