"""Hermes's database and the gateway's log, as a source of events."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import foreign
from onrecord.transcript.importers.hermes import log
from onrecord.transcript.importers.hermes.exchanges import Exchanges
from onrecord.transcript.importers.hermes.ledger import Ledger
from onrecord.transcript.importers.hermes.tables import Tables
from onrecord.transcript.importers.hermes.transcript import FORMAT, Session, Transcript
from onrecord.transcript.importers.source import Entry, Source

__all__ = ["FORMAT", "looks_right", "open_source"]

NAME = "state.db"
_MARKS = (b"parent_session_id", b"tool_call_id")
"""Columns that a file of Hermes has and that stand among its first pages."""


def looks_right(path: Path, head: bytes) -> bool:
    """Tell whether a file is Hermes's database, or a folder its home."""
    if path.is_dir():
        return (path / NAME).is_file()
    return foreign.is_sqlite(head) and (path.name == NAME or all(mark in head for mark in _MARKS))


@contextlib.contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open a state.db, or the folder of one. Raise ImportRefused if it can't be read at all."""
    file = path / NAME if path.is_dir() else path
    # The log first: what it says was written before the database is read.
    exchanges = log.read(_log_beside(file), ended=foreign.was_left_open(file))
    with foreign.open_database(file) as connection:
        try:
            tables = Tables(connection)
            missing = tables.missing()
            if missing:
                raise _refused(file, f"it has no {', '.join(missing)}")
            yield HermesSource(tables, exchanges)
        except foreign.Error as error:
            raise _refused(file, str(error)) from error


def _log_beside(file: Path) -> list[Path]:
    """Return the files of the log; where the database is a link, also beside what it leads to."""
    return log.files_beside(file.parent) or log.files_beside(file.resolve().parent)


def _refused(file: Path, why: str) -> ImportRefused:
    return ImportRefused(
        f"{file} can't be read as a database of Hermes: {why}; give its state.db, or the folder "
        "that it stands in",
        file=str(file), line=0, expected="a state.db of Hermes",
    )  # fmt: skip


class HermesSource:
    """The sessions of one database."""

    def __init__(self, tables: Tables, exchanges: list[log.Exchange]) -> None:
        self.total: int | None = tables.count()
        self._tables = tables
        self._ledger = Ledger(tables)
        self._exchanges = Exchanges(tables, self._ledger, exchanges)

    def sessions(self) -> Iterator[tuple[str, Iterator[Entry]]]:
        """Iterate over the sessions, each with its entries in the order of its rows."""
        faults = list(self._ledger.faults)  # of no session: the first one tells them
        for row in self._tables.sessions():
            session = Session.of(row)
            if not session.id:
                continue
            told = self._exchanges.told(session.id)
            self._ledger.tell(session.id, session.key, told)
            told.lost_at_end += faults
            faults.clear()
            yield session.id, Transcript(self._tables, session, told=told).entries()
        for name in self._tables.strays():
            yield name, Transcript(self._tables, Session(name), stray=True).entries()
