"""Bringing what is stored of a session up to the log: fold the records that came, check, store.

The fold goes on from where it stood, in memory while the session is one of those used last, else from
the latest cut. Rows and checkpoint are one transaction; it isn't synced, since all of it follows from
the log, and what a crash takes is folded again.
"""

from __future__ import annotations

import copy
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from onrecord.projections.conversation import Compaction
from onrecord.projections.stored import builds, tables
from onrecord.projections.stored.names import sought_by
from onrecord.projections.stored.tables import Standing
from onrecord.projections.stored.tail import Before, Cut, Tail, Touched, Turn
from onrecord.transcript.errors import OnRecordError, RecordDamaged, StorageFailed
from onrecord.transcript.events import UnknownEvent
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Step
from onrecord.transcript.storage import journal

logger = logging.getLogger("onrecord.projections")

BATCH = 2_000
"""Records that are folded in before they are stored."""
TAIL_TURNS = 16
"""Turns that a fold may hold before the latest at which it could begin; a longer one is let go."""
FOLDED_AT_ONCE = 256
"""Locks that sessions share by their names."""
TAILS = 2048
"""Sessions whose folds are kept in memory, each with its last turns."""
ATTEMPTS = 100
"""How often a session is tried again while other processes move it on at the same time."""


class Superseded(Exception):
    """The build was replaced by another."""


class Poisoned(Exception):
    """A record that can't be read or folded in."""

    def __init__(self, version: int, why: BaseException) -> None:
        super().__init__(version)
        self.version = version
        self.reason = f"{type(why).__name__}: {why}"


class Overtaken(Exception):
    """Another process stored something of the session in the meantime."""


class News(msgspec.Struct, frozen=True):
    """Records that came, and which of the names that they say were said before the tail."""

    records: list[Step]
    before: Mapping[str, int]


class Projector:
    """Brings sessions up to the log, in one build. Safe for threads: each session is folded by one at
    a time, and others aren't kept waiting.
    """

    def __init__(self, log: TranscriptLog, build: int) -> None:
        self.build = build
        self._log = log
        self._database = log.database
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._folding = [threading.RLock() for _ in range(FOLDED_AT_ONCE)]
        self._keeping = threading.Lock()

    def standing(self, session: str) -> Standing | None:
        """Return where the session stands, None if the log has none of that name."""
        return self._database.read(
            f"asking how far session {session!r} is projected",
            lambda connection: tables.standing(connection, self.build, session),
        )

    def catch_up(self, session: str) -> Standing | None:
        """Bring the session up to the log; return where it stands then, None if there is none.

        A record that can't be read or folded in is set aside: the session goes on without it, and its
        findings say so. Raise DeliveredNotProjected, StorageError, Superseded.
        """
        with self._lock(session):
            return self._catch_up(session)

    def _lock(self, session: str) -> threading.RLock:
        return self._folding[hash(session) % FOLDED_AT_ONCE]

    def _catch_up(self, session: str) -> Standing | None:
        for _ in range(ATTEMPTS):
            tail = self._tails.get(session)
            there: Standing | None = None
            try:
                there, news = self._database.read(
                    f"asking how far session {session!r} is projected",
                    lambda c: self._look(c, session, tail),  # noqa: B023 - run at once
                )
                if there is not None and there.version < there.log_version:
                    self._advance(session, there, tail, news)
                return there
            except Overtaken:
                self.forget(session)
            except Touched as touched:
                assert there is not None, "a fold was under way"
                self.forget(session)
                self._soil(session, there, touched.place)
            except Poisoned as poisoned:
                self.forget(session)
                self._set_aside(session, poisoned)
            except BaseException:
                self.forget(session)
                raise
        raise StorageFailed(
            f"session {session!r} was moved on by others {ATTEMPTS} times in a row; try again"
        )

    def _look(
        self, connection: Any, session: str, tail: Tail | None
    ) -> tuple[Standing | None, News | None]:
        """Return where the session stands and, if its fold is at hand, what came since."""
        there = tables.standing(connection, self.build, session)
        if there is None or there.version >= there.log_version:
            return there, None
        if tail is None or tail.version != there.version or there.number == 0:
            return there, None
        return there, _news(connection, tail, there)

    def forget(self, session: str) -> None:
        """Drop the fold of a session: the next one begins at what is stored."""
        with self._keeping:
            self._tails.pop(session, None)

    def drop(self, session: str) -> None:
        """Remove what is stored of a session, so that it is projected anew."""
        with self._lock(session):
            self.forget(session)
            there = self.standing(session)
            if there is None or there.number == 0:
                return
            doing = f"projecting session {session!r} anew"
            number = there.number
            self._database.transact(
                lambda connection: tables.drop_session(connection, number),
                durable=False, doing=doing,
            )  # fmt: skip

    def _soil(self, session: str, there: Standing, place: int) -> None:
        doing = f"projecting session {session!r} anew from an earlier turn"
        self._database.transact(
            lambda connection: tables.soil(connection, there.number, place),
            durable=False, doing=doing,
        )  # fmt: skip

    # --- one session -----------------------------------------------------------------------------

    def _advance(self, session: str, there: Standing, tail: Tail | None, news: News | None) -> None:
        self.forget(session)
        if tail is None or news is None:
            tail = self._resume(session, there)
        while tail.version < there.log_version:
            if news is None:
                if _is_long(tail):
                    tail = self._resume(session, there)
                news = self._coming(tail, there)
            if not news.records:
                break
            self._fold(tail, there, news)
            tail.check()
            self._store(tail, there)
            news = None
        if not _is_long(tail):
            self._keep(session, tail)

    def _coming(self, tail: Tail, there: Standing) -> News:
        return self._database.read(
            f"reading session {tail.session!r}", lambda c: _news(c, tail, there)
        )

    def _keep(self, session: str, tail: Tail) -> None:
        with self._keeping:
            self._tails[session] = tail
            while len(self._tails) > TAILS:
                self._tails.popitem(last=False)

    def _resume(self, session: str, there: Standing) -> Tail:
        """Fold what is stored again, from the latest cut on."""
        cut = Cut()
        if there.number:
            cut = self._database.read("finding a cut", lambda c: tables.cut(c, there))
        tail = Tail(session, cut)
        while tail.version < there.version:
            limit = min(BATCH, there.version - tail.version)
            records = self._database.read(
                f"reading session {session!r}",
                lambda c: _read(c, tail, there, limit),  # noqa: B023 - run at once
            )
            self._fold(tail, there, News(records, {}))
        tail.resume()
        return tail

    def _fold(self, tail: Tail, there: Standing, news: News) -> None:
        before = Before(news.before, lambda name: self._place(there, name))
        for recorded in news.records:
            if recorded.version in there.state.aside:
                tail.skip(recorded.version)
                continue
            try:
                tail.take(recorded, before)
            except (OnRecordError, Touched):
                raise
            except Exception as error:
                raise Poisoned(recorded.version, error) from error

    def _place(self, there: Standing, name: str) -> int | None:
        """Return where a name was first said, as far as that is stored."""
        return self._database.read(
            "looking a name up", lambda c: tables.places(c, there.number, [name]).get(name)
        )

    def _store(self, tail: Tail, there: Standing) -> None:
        turns = list(tail.changed())
        compaction = tail.compaction
        moved = self._database.transact(
            lambda connection: self._write(connection, tail, there, turns, compaction),
            durable=False,
            doing=f"storing the projection of session {tail.session!r}",
        )
        there.number, there.version, there.turns = moved.number, moved.version, moved.turns
        there.shown, there.state = moved.shown, moved.state
        tail.settle(turns)

    def _write(
        self,
        connection: Any,
        tail: Tail,
        there: Standing,
        turns: list[Turn],
        compaction: Compaction | None,
    ) -> Standing:
        """Write what changed and where the session stands then; return that. May run twice."""
        moved = copy.copy(there)
        moved.state = state = copy.copy(there.state)
        state.tracked = tail.conversation.tracked
        state.last = max(state.last, tail.last_counted)
        if moved.number == 0:
            self._begin(connection, moved)
        elif not tables.hold(connection, moved):
            raise Overtaken
        tables.store_turns(connection, moved, turns)
        tables.store_names(connection, moved.number, tail.fresh)
        if compaction is not None:
            state.summary = compaction.row()
            tables.hide_before(connection, moved.number, tail.cut.place)
            tables.count_shown(connection, moved)
        else:
            if tail.cut.place == 0:
                state.summary = None
            count, places = tail.newly_shown(turns)
            moved.shown += count
            state.places += places
        moved.version, moved.turns = tail.version, tail.turns
        tables.move(connection, moved)
        return moved

    def _begin(self, connection: Any, there: Standing) -> None:
        if not builds.is_there(connection, self.build):
            raise Superseded
        if not tables.begin(connection, self.build, there):
            raise Overtaken

    def _set_aside(self, session: str, poisoned: Poisoned) -> None:
        version, reason = poisoned.version, poisoned.reason
        logger.error("session %r, version %d is set aside: %s", session, version, reason)
        doing = f"setting a record of session {session!r} aside"

        def run(connection: Any) -> None:
            found = tables.standing(connection, self.build, session)
            assert found is not None, "sessions are never deleted"
            if found.number == 0:
                self._begin(connection, found)
            found.state.aside = {**found.state.aside, version: reason}
            tables.move(connection, found)

        self._database.transact(run, durable=False, doing=doing)


def _is_long(tail: Tail) -> bool:
    """Tell whether a fold that begins at a later turn would do as well."""
    return tail.next_cut - tail.cut.place > TAIL_TURNS


def _read(connection: Any, tail: Tail, there: Standing, limit: int) -> list[Step]:
    """Return the next records; those that are set aside without their content."""
    try:
        return journal.steps(connection, there.key, tail.version, limit)
    except RecordDamaged:
        return list(_one_by_one(connection, tail, there, limit))


def _one_by_one(connection: Any, tail: Tail, there: Standing, limit: int) -> Iterator[Step]:
    for after in range(tail.version, tail.version + limit):
        version = after + 1
        try:
            records = journal.steps(connection, there.key, after, 1)
        except RecordDamaged as error:
            if version not in there.state.aside:
                if version == tail.version + 1:
                    raise Poisoned(version, error) from error
                return  # what comes before it is folded first
            yield Step(version, UnknownEvent(name="?"), 0, 0)
            continue
        if not records:
            return
        yield records[0]


def _news(connection: Any, tail: Tail, there: Standing) -> News:
    records = _read(connection, tail, there, BATCH)
    before: Mapping[str, int] = {}
    if tail.cut.place:
        names = {name for recorded in records for name in sought_by(recorded.event)}
        before = tables.places(connection, there.number, names - tail.names.keys())
    return News(records, before)
