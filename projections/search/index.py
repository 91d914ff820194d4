"""The search index: kept up with the stored projections when somebody searches, and never before.

Rows are written turn by turn, each turn when its stored digest is another than the one that was
indexed, a few turns a transaction. What is shown of a hit is read from the projections in the same
moment as the hit is found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from onrecord.projections.promise import DeliveredNotProjected
from onrecord.projections.rows import Row
from onrecord.projections.search.hits import Hit, said
from onrecord.projections.search.query import Query, fold
from onrecord.projections.search.scan import Tell, left_out
from onrecord.projections.stored import RecordsSetAside, StoredProjections, builds, tables
from onrecord.projections.stored.projections import CODE
from onrecord.projections.stored.tables import Damaged
from onrecord.transcript.errors import StorageFailed
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import word_index, word_tables
from onrecord.transcript.storage.journal import moment
from onrecord.transcript.storage.word_index import Entry, Place, Turn

T = TypeVar("T")

logger = logging.getLogger("onrecord.projections")

Progress = Callable[[int, int], None]
"""Is told how many records of how many are indexed."""

TURNS_AT_ONCE = 50
"""Turns that one transaction writes; appends wait for it."""
TRIES = 3
"""How often a session, or a search, is begun anew where the stored rows were damaged or replaced."""


class WordIndex:
    """The index of a log. Several processes may search at once."""

    def __init__(self, log: TranscriptLog, tell: Tell) -> None:
        self._log = log
        self._database = log.database
        self._stored = StoredProjections(log)
        self._tell = tell

    # --- keeping up ------------------------------------------------------------------------------

    def catch_up(self, session: str | None, progress: Progress) -> None:
        """Index what isn't yet, of one session or of all. Raise StorageError."""
        self._prepare()
        waiting = self._database.read(
            "looking for what isn't indexed",
            lambda c: word_index.behind(c, builds.live_build(c, CODE), session),
        )
        total, done = sum(count for _, count in waiting), 0
        for name, count in waiting:
            progress(done, total)
            self._index(name)
            done += count
        if session is None:
            self._remove_strays()
        self._merge()

    def drop(self) -> None:
        """Remove the index, whatever state it is in. Raise StorageError."""
        doing = "removing the search index"
        try:
            while self._database.transact(word_tables.empty_some, durable=False, doing=doing):
                pass
        except StorageFailed as error:
            logger.info("the search index is dropped as it is: %s", error)
        self._database.transact(word_tables.drop, durable=False, doing=doing)

    def _prepare(self) -> None:
        doing = "looking for the search index"
        found = self._database.read(doing, word_tables.format_of)
        if found not in (0, word_tables.FORMAT):
            self._tell("the search index is of another version of onrecord and is made anew")
            self.drop()
            found = 0
        if found == 0:
            self._database.transact(
                word_tables.create, durable=False, doing="making the search index"
            )

    def _index(self, session: str) -> None:
        for _ in range(TRIES):
            try:
                self._stored.catch_up(session)
            except DeliveredNotProjected as error:
                self._tell(f"session {session!r} isn't searched to its end: {error}")
                return
            try:
                if self._copy(session):
                    return
            except Damaged:
                self._mend(session)
        raise StorageFailed(
            f"session {session!r} can't be indexed: its stored rows don't stay whole"
        )

    def _mend(self, session: str) -> None:
        """Let stored rows that are damaged be projected anew."""
        with suppress(RecordsSetAside):  # is told where the session is copied
            self._stored.transcript(session, full=True)

    def _copy(self, session: str) -> bool:
        """Index the turns of a session that changed; return False if it was projected anew meanwhile.

        It counts as indexed up to where it stood at the beginning: what changed since is found again.
        """
        first, turns = self._read(session, -1)
        there = first
        while True:
            if there is None or first is None or there.number != first.number:
                return there is first
            is_last = len(turns) < TURNS_AT_ONCE
            self._write(session, first, turns, is_last=is_last)
            if is_last:
                return True
            there, turns = self._read(session, turns[-1].id)

    def _read(self, session: str, after: int) -> tuple[Place | None, list[Turn]]:
        def run(connection: Any) -> tuple[Place | None, list[Turn]]:
            build = builds.live_build(connection, CODE)
            there = word_index.place(connection, build, session)
            if there is None:
                return None, []
            start = max(after, tables.turn_id(there.number) - 1)
            found = word_index.changed(connection, there.number, start, TURNS_AT_ONCE)
            if after == -1:
                standing = tables.standing(connection, build, session)
                if standing is not None and standing.state.aside:
                    self._tell(left_out(session, standing.state.aside))
            return there, [_indexed(connection, there, *turn) for turn in found]

        return self._database.read(f"reading session {session!r}", lambda c: _at_once(c, run))

    def _write(self, session: str, first: Place, turns: list[Turn], *, is_last: bool) -> None:
        def run(connection: Any) -> None:
            word_index.store(connection, first.number, turns, first.version if is_last else 0)
            if first.erased:
                word_index.set_unmerged(connection)

        doing = f"indexing session {session!r}"
        self._database.transact(run, durable=False, doing=doing)

    def _remove_strays(self) -> None:
        """Remove sessions whose projections were replaced, or whose names were erased."""
        numbers = self._database.read(
            "reading the search index",
            lambda c: word_index.strays(c, builds.live_build(c, CODE)),
        )
        for number in numbers:
            while self._database.transact(
                lambda c: word_index.remove_some(c, number, TURNS_AT_ONCE),  # noqa: B023
                durable=False, doing="removing from the search index",
            ):  # fmt: skip
                pass

    def _merge(self) -> None:
        if not self._database.read("reading the search index", word_index.is_unmerged):
            return
        first = True
        while self._database.transact(
            lambda c: word_tables.merge(c, first=first),  # noqa: B023
            durable=False, doing="merging the search index",
        ):  # fmt: skip
            first = False

    # --- finding ---------------------------------------------------------------------------------

    def find(self, query: Query) -> list[Hit]:
        """Return the newest rows that have all words. Raise StorageError if the index is damaged."""
        for _ in range(TRIES):
            try:
                return self._database.read(
                    "searching", lambda c: _at_once(c, lambda c: _find(c, query))
                )
            except _DamagedIn as damaged:
                self._mend(damaged.session)
                self._index(damaged.session)
        raise StorageFailed("the stored rows that were found don't stay whole")


class _DamagedIn(Damaged):
    def __init__(self, session: str) -> None:
        super().__init__(session)
        self.session = session


def _at_once(connection: Any, run: Callable[[Any], T]) -> T:
    """Return what `run` reads, all at one moment."""
    connection.execute(connection.dialect.snapshot)
    try:
        return run(connection)
    finally:
        connection.execute("ROLLBACK")


def _find(connection: Any, query: Query) -> list[Hit]:
    if not word_tables.is_whole(connection):
        raise StorageFailed("searching: rows are missing from the search index")
    found = word_index.find(
        connection, builds.live_build(connection, CODE), query.words, session=query.session,
        role=query.role, since=query.since, limit=query.limit,
    )  # fmt: skip
    hits: list[Hit] = []
    for session, key, turn, n, at in found:
        stored = word_index.turn(connection, turn)
        if stored is None:
            continue  # projected anew since it was indexed
        blob, digest, shown = stored
        rows = _rows(session, key, turn, blob, digest)
        # Another process may have projected more: what the row says now is what counts.
        if n < len(rows) and all(word in fold(said(rows[n])) for word in query.words):
            hits.append(Hit(session=session, row=rows[n], at=moment(at), in_view=shown))
    return hits


def _indexed(connection: Any, there: Place, id: int, blob: bytes, digest: bytes) -> Turn:
    rows = _rows("", there.key, id, blob, digest)
    first = sorted({row.versions[0] for row in rows})
    times = word_index.times(connection, there.key, first)
    entries = [
        Entry(n, row.role, times[row.versions[0]], text)
        for n, row in enumerate(rows)
        if (text := fold(said(row))).strip()
    ]
    return Turn(id, digest, entries)


def _rows(session: str, key: bytes, id: int, blob: bytes, digest: bytes) -> list[Row]:
    """Return a turn's stored rows. Raise Damaged unless they are those that were stored."""
    if tables.seal(key, id - tables.turn_id(id >> tables.PLACE_BITS), blob) != digest:
        raise _DamagedIn(session)
    try:
        return tables.decode_rows(blob)
    except msgspec.MsgspecError as error:
        raise _DamagedIn(session) from error
