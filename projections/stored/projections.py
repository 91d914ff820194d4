"""The projections of a log that are kept: transcripts, deliveries and findings, as far as the log."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from onrecord.projections.deliveries import DeliveryHistory, deliveries
from onrecord.projections.findings import Finding, findings, in_order, set_aside
from onrecord.projections.rows import Row
from onrecord.projections.stored import builds, tables
from onrecord.projections.stored.catching_up import Projector, Superseded
from onrecord.projections.stored.tables import Damaged, Standing, StoredTurn
from onrecord.projections.transcript import Transcript, build
from onrecord.transcript.bulk import uncollected
from onrecord.transcript.errors import OnRecordError, StorageError, StorageFailed
from onrecord.transcript.log import TranscriptLog

if TYPE_CHECKING:
    from onrecord.projections.stored.check import Fault
    from onrecord.projections.stored.rebuild import Progress

T = TypeVar("T")

logger = logging.getLogger("onrecord.projections")

CODE = 2
"""The version of the rules. Raise it when the same events may give other rows, deliveries or
findings: then everything is projected anew instead of mixed."""
TRIES = 3
"""How often a session whose stored rows are damaged is projected anew before its log is read."""


class RecordsSetAside(OnRecordError):
    """Records of a session can't be read or folded in, so its transcript may lack what was delivered.

    `session`, `versions` (of the records) and `rows`: all that could be built, for a caller who must
    go on talking.
    """

    session: str
    versions: tuple[int, ...]
    rows: list[Row]


class StoredProjections:
    """The stored projections of a log. Safe for threads; several processes may have the same.

    What was appended before a call is in what it returns. Rows that were damaged in the store are
    projected anew from the log, and a warning is logged; where nothing can be stored or read from the
    store, what is asked for is made from the log alone. What is erased leaves the store when its session
    is projected next, by whoever reads it or by `onrecord project`.
    """

    def __init__(self, log: TranscriptLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._projector: Projector | None = None

    # --- reading ---------------------------------------------------------------------------------

    def transcript(
        self, session: str, *, full: bool = False, last: int | None = None
    ) -> Transcript:
        """Return a session's transcript, as the model is to see it, up to its newest record.

        `full`: with what compaction and rewind took out of the model's view. `last`: only the last
        turns that have this many rows together; all of them where nothing can be stored. Raise
        DeliveredNotProjected if what was delivered isn't in the rows, RecordsSetAside if nobody can
        know, because a record can't be read.
        """

        def run(connection: Any, there: Standing) -> Transcript:
            turns = tables.turns(connection, there, full=full, last=last)
            return Transcript(session, there.version, _rows(there, turns, full=full))

        asked = self._ask(session, "transcript", run)
        if asked is None:
            return build(self._log, session, full=full)
        there, found = asked
        if there.state.aside:
            versions = tuple(sorted(there.state.aside))
            told = ", ".join(map(str, versions[:3]))
            raise RecordsSetAside(
                f"session {session!r}: what stands at version {told}"
                f"{' …' if versions[3:] else ''} can't be projected; `onrecord verify` says what is "
                "damaged, and `onrecord rebuild` takes in what can be read again",
                session=session, versions=versions, rows=found.rows,
            )  # fmt: skip
        return found

    def deliveries(self, session: str) -> list[DeliveryHistory]:
        """Return what was sent in a session, by first attempt."""
        asked = self._ask(session, "deliveries", lambda c, at: tables.deliveries(c, at.number))
        if asked is None:
            told = deliveries(self._log.read(session))
            return sorted(told, key=lambda history: history.versions[0])
        return asked[1]

    def sent(self, session: str) -> tuple[dict[int, str], Iterator[DeliveryHistory]] | None:
        """Return why which records were left out, and what was sent, in the order of the turns; it is
        read some turns at a time, so that a long session needs no more memory than a short one.

        None if nothing can be stored or read from the store. Raise StorageFailed, while it is read, if
        the store is made anew meanwhile.
        """
        asked = self._ask(session, "deliveries", lambda _, there: there)
        return None if asked is None else (asked[0].state.aside, self._sent(session, asked[0]))

    def _sent(self, session: str, there: Standing) -> Iterator[DeliveryHistory]:
        at = tables.turn_id(there.number)
        while True:
            at, some = self._log.database.read(
                f"reading the deliveries of session {session!r}",
                lambda c: tables.deliveries_from(c, there, at),  # noqa: B023 - run at once
            )
            if not some:
                return
            yield from some

    def findings(self, session: str) -> list[Finding]:
        """Return what an audit finds in a session."""
        asked = self._ask(session, "findings", lambda c, at: tables.findings(c, at.number))
        if asked is None:
            return findings(session, self._log.read(session))
        return _with_aside(session, *asked)

    def sealed_findings(self, session: str) -> list[Finding] | None:
        """Return what was found in a session where all its stored rows are those that were held
        against the promise; None if nothing can be stored or read from the store.

        Raise DeliveredNotProjected.
        """

        def run(connection: Any, there: Standing) -> list[Finding]:
            tables.check_seals(connection, there)
            return tables.findings(connection, there.number)

        asked = self._ask(session, "findings", run)
        return None if asked is None else _with_aside(session, *asked)

    def _ask(
        self, session: str, what: str, run: Callable[[Any, Standing], T]
    ) -> tuple[Standing, T] | None:
        """Bring the session up to the log; return where it stands and what `run` finds in the store.

        None if there is nothing stored: no such session, or the store fails, which is logged.
        """
        doing = f"reading the {what} of session {session!r}"
        try:
            for _ in range(TRIES):
                projector, there = self._caught_up(session)
                if there is None:
                    return None
                try:
                    found = self._log.database.read(
                        doing,
                        lambda c: tables.within(c, projector.build, session, run),  # noqa: B023
                    )
                except Damaged as damaged:
                    logger.warning("session %r: %s; it is projected anew", session, damaged)
                    projector.drop(session)
                    continue
                if found is not None:
                    return found
        except StorageError as error:
            logger.warning("the %s of session %r is made from the log: %s", what, session, error)
        return None

    # --- keeping up ------------------------------------------------------------------------------

    def catch_up(self, session: str) -> int:
        """Bring the projections of a session up to the log; return the version that they stand at.

        Raise DeliveredNotProjected, StorageError.
        """
        _, there = self._caught_up(session)
        return 0 if there is None else there.version

    def _caught_up(self, session: str) -> tuple[Projector, Standing | None]:
        for _ in range(TRIES):
            projector = self._projecting()
            try:
                return projector, projector.catch_up(session)
            except Superseded:
                self._forget(projector)  # another build took its place
        raise StorageFailed("the projections are being rebuilt again and again; try again later")

    def behind(self) -> list[str]:
        """Return the sessions that have records which aren't projected."""
        build = self._projecting().build
        found = self._log.database.read("listing sessions", lambda c: tables.behind(c, build))
        return [name for name, _ in found]

    def rebuild(self, progress: Progress | None = None, jobs: int = 1) -> int:
        """Project the whole log anew, beside what is read meanwhile; return how many records.

        `progress(done, total)` is told of records; `jobs`: processes that share the work. Raise
        DeliveredNotProjected, StorageError: then what was there stays.
        """
        from onrecord.projections.stored.rebuild import rebuild

        done = rebuild(self._log, CODE, progress or _untold, jobs)
        self._forget(None)
        return done

    def check(self, sessions: Iterable[str] | None = None) -> Iterator[Fault]:
        """Compare what is stored with the log, and tell what doesn't follow from it."""
        from onrecord.projections.stored import check

        build = self._projecting().build
        if sessions is None:
            sessions = [head.name for head in self._log.sessions()]
        for session in sessions:
            found = self._log.database.read(
                f"reading what is stored of session {session!r}",
                lambda c: tables.within(c, build, session, check.read),  # noqa: B023 - run at once
            )
            if found is not None:
                yield from check.check(self._log, session, found[1])

    def _projecting(self) -> Projector:
        with self._lock:
            if self._projector is None:
                self._projector = Projector(self._log, self._live())
            return self._projector

    def _forget(self, projector: Projector | None) -> None:
        """Look for the live build anew, unless another thread did already."""
        with self._lock:
            if projector is None or self._projector is projector:
                self._projector = None

    def _live(self) -> int:
        """Return the build of these rules that is live; make one where there is none."""
        database = self._log.database
        build = database.read("finding the build", lambda c: builds.live_build(c, CODE))
        if build == 0:
            build = database.transact(
                lambda c: builds.first_build(c, CODE), durable=False, doing="beginning a build"
            )
        return build


def _with_aside(session: str, there: Standing, found: list[Finding]) -> list[Finding]:
    """Add the records that the projection goes on without."""
    aside = there.state.aside.items()
    return in_order(found + [set_aside(session, version, why) for version, why in aside])


def _rows(there: Standing, turns: list[StoredTurn], *, full: bool) -> list[Row]:
    """Return the rows of stored turns; raise Damaged unless they are those that were stored."""
    rows: list[Row] = []
    if there.state.summary is not None and not full:
        rows.append(there.state.summary)
    with uncollected():
        for place, blob, sealed in turns:
            if tables.seal(there.key, place, blob) != sealed:
                raise Damaged(f"the stored rows of turn {place} were changed")
            rows += tables.decode_rows(blob)
    return rows


def _untold(done: int, total: int) -> None:
    """Keep progress to oneself."""
