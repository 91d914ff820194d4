"""The projections of a log that are kept: transcripts, deliveries and findings, as far as the log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from onrecord.projections.bulk import uncollected
from onrecord.projections.deliveries import DeliveryHistory
from onrecord.projections.findings import Finding, in_order
from onrecord.projections.rows import Row
from onrecord.projections.stored import tables
from onrecord.projections.stored.catching_up import Projector, Superseded
from onrecord.projections.stored.tables import Standing, StoredTurn
from onrecord.projections.transcript import Transcript, build
from onrecord.transcript.errors import OnRecordError, StorageError, StorageFailed
from onrecord.transcript.log import TranscriptLog

if TYPE_CHECKING:
    from onrecord.projections.stored.check import Fault
    from onrecord.projections.stored.rebuild import Progress

logger = logging.getLogger("onrecord.projections")

CODE = 1
"""The version of the rules. Raise it when the same events may give other rows, deliveries or
findings: then everything is projected anew instead of mixed."""
TRIES = 3
"""How often a session whose stored rows are damaged is projected anew before its log is read."""


class Damaged(OnRecordError):
    """Stored rows aren't those that were stored: somebody changed them, or the disk did."""


class StoredProjections:
    """The stored projections of a log. Safe for threads; several processes may have the same.

    What was appended before a call is in what it returns. Rows that were damaged in the store are
    projected anew from the log, and a warning is logged; where nothing can be stored, a transcript is
    made from the log alone.
    """

    def __init__(self, log: TranscriptLog) -> None:
        self._log = log
        self._lock = threading.RLock()
        self._projector: Projector | None = None

    # --- reading ---------------------------------------------------------------------------------

    def transcript(
        self, session: str, *, full: bool = False, last: int | None = None
    ) -> Transcript:
        """Return a session's transcript, as the model is to see it, up to its newest record.

        `full`: with what compaction and rewind took out of the model's view. `last`: only the last
        turns that have this many rows together; all of them where nothing can be stored. A record
        that can't be read or folded in is left out, and `findings` says so. Raise
        DeliveredNotProjected if what was delivered isn't in the rows.
        """
        try:
            for _ in range(TRIES):
                there = self.catch_up(session)
                if there is None:
                    return Transcript(session, 0, [])
                try:
                    found = self._log.database.read(
                        f"reading the transcript of session {session!r}",
                        lambda connection: self._stored(connection, session, full, last),
                    )
                    if found is not None:
                        standing, turns = found
                        rows = _rows(session, standing, turns, full=full, last=last)
                        return Transcript(session, standing.version, rows)
                except Damaged as error:
                    logger.warning("%s; it is projected anew", error)
                    self._drop(session)
        except StorageError as error:
            logger.warning("session %r is read from its log: %s", session, error)
        return build(self._log, session, full=full)

    def deliveries(self, session: str) -> list[DeliveryHistory]:
        """Return what was sent in a session, by first attempt."""
        there = self.catch_up(session)
        if there is None:
            return []
        return self._log.database.read(
            f"reading the deliveries of session {session!r}",
            lambda connection: tables.deliveries(connection, there.number),
        )

    def findings(self, session: str) -> list[Finding]:
        """Return what an audit finds in a session."""
        there = self.catch_up(session)
        if there is None:
            return []
        found = self._log.database.read(
            f"reading the findings of session {session!r}",
            lambda connection: tables.findings(connection, there.number),
        )
        for version, reason in there.state.aside.items():
            found.append(
                Finding(
                    code="record-set-aside", session=session, turn="", versions=(version,),
                    detail=f"the record can't be projected and was left out: {reason}",
                )
            )  # fmt: skip
        return in_order(found)

    def _stored(
        self, connection: Any, session: str, full: bool, last: int | None
    ) -> tuple[Standing, list[StoredTurn]] | None:
        """Return where the session stands and its turns, None if it isn't stored any more."""
        connection.execute(connection.dialect.snapshot)
        try:
            there = tables.standing(connection, self._build(), session)
            if there is None or there.number == 0:
                return None
            return there, tables.turns(connection, there, full=full, last=last)
        finally:
            connection.execute("ROLLBACK")

    # --- keeping up ------------------------------------------------------------------------------

    def catch_up(self, session: str) -> Standing | None:
        """Bring the projections of a session up to the log; None if there is no such session."""
        with self._lock:
            for _ in range(TRIES):
                try:
                    return self._projecting().catch_up(session)
                except Superseded:
                    self._projector = None  # another build took its place
        raise StorageFailed("the projections are being rebuilt again and again; try again later")

    def behind(self) -> list[str]:
        """Return the sessions that have records which aren't projected."""
        with self._lock:
            build = self._build()
        found = self._log.database.read("listing sessions", lambda c: tables.behind(c, build))
        return [name for name, _ in found]

    def rebuild(self, progress: Progress | None = None, jobs: int = 1) -> int:
        """Project the whole log anew, beside what is read meanwhile; return how many records.

        `progress(done, total)` is told of records; `jobs`: processes that share the work. Raise
        DeliveredNotProjected, StorageError: then what was there stays.
        """
        from onrecord.projections.stored.rebuild import rebuild

        done = rebuild(self._log, CODE, progress or _untold, jobs)
        with self._lock:
            self._projector = None
        return done

    def check(self, sessions: Iterable[str] | None = None) -> Iterator[Fault]:
        """Compare what is stored with the log, and tell what doesn't follow from it."""
        from onrecord.projections.stored import check

        with self._lock:
            build = self._build()
        if sessions is None:
            sessions = [head.name for head in self._log.sessions()]
        for session in sessions:
            found = self._log.database.read(
                f"reading what is stored of session {session!r}",
                lambda connection: check.read(connection, build, session),  # noqa: B023 - run at once
            )
            if found is not None:
                yield from check.check(self._log, session, found)

    def _projecting(self) -> Projector:
        if self._projector is None:
            self._projector = Projector(self._log, self._live())
        return self._projector

    def _build(self) -> int:
        return self._projecting().build

    def _live(self) -> int:
        """Return the build of these rules that is live; make one where there is none."""
        database = self._log.database
        build = database.read("finding the build", lambda c: tables.live_build(c, CODE))
        if build == 0:
            with database.write(durable=False, doing="beginning a build") as connection:
                build = tables.first_build(connection, CODE)
        return build

    def _drop(self, session: str) -> None:
        """Forget what is stored of a session."""
        with self._lock:
            projector = self._projecting()
            projector.forget(session)
            there = projector.standing(session)
            if there is None or there.number == 0:
                return
            doing = f"projecting session {session!r} anew"
            with self._log.database.write(durable=False, doing=doing) as connection:
                tables.drop_session(connection, there.number)


def _rows(
    session: str, there: Standing, turns: list[StoredTurn], *, full: bool, last: int | None
) -> list[Row]:
    """Return the rows of stored turns; raise Damaged unless they are those that were stored."""
    rows: list[Row] = []
    if there.state.summary is not None and not full:
        rows.append(there.state.summary)
    with uncollected():
        for place, blob, sealed in turns:
            if tables.seal(there.key, place, blob) != sealed:
                raise Damaged(f"the stored rows of session {session!r}, turn {place}, were changed")
            rows += tables.decode_rows(blob)
    if last is None:
        found = (len(turns), sum(place for place, _, _ in turns))
        whole = (there.turns, there.turns * (there.turns - 1) // 2)
        if found != (whole if full else (there.shown, there.state.places)):
            raise Damaged(f"turns of session {session!r} are missing from the store")
    return rows


def _untold(done: int, total: int) -> None:
    """Keep progress to oneself."""
