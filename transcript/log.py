"""The log: open, append, read, follow."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sized
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Self
from uuid import UUID

from onrecord.transcript import codec
from onrecord.transcript.append import ANY, Append, Draft, Outcome, wrong_version
from onrecord.transcript.batch import Batches
from onrecord.transcript.errors import BadEvent, StorageError
from onrecord.transcript.events import Event
from onrecord.transcript.leases import Lease, Leases, LeaseState
from onrecord.transcript.mending import storable
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage import journal, leasing
from onrecord.transcript.storage.database import BUSY_TIMEOUT, Database
from onrecord.transcript.storage.journal import SessionHead
from onrecord.transcript.storage.opening import open_database
from onrecord.transcript.subscription import BATCH, Subscription
from onrecord.transcript.writer import BATCH_EVENTS, Writer

if TYPE_CHECKING:
    from onrecord.transcript.aio import AsyncTranscriptLog

__all__ = ["ANY", "SessionHead", "Subscription", "TranscriptLog"]

DEFAULT_URL = "sqlite:///onrecord.db"


class TranscriptLog:
    """A log of sessions in one database. Safe for threads and for processes that fork.

    Every append is all or nothing; appends that wait at the same time share a transaction. Versions,
    positions and times come from the log.
    """

    def __init__(self, database: Database, *, text_limit: int = codec.TEXT_LIMIT) -> None:
        self._database = database
        self.text_limit = text_limit
        self._batches = Batches(database, text_limit)
        self.writer = Writer(self._batches, database.busy_timeout)
        self._aio: AsyncTranscriptLog | None = None
        self.leases = Leases(_LeaseStore(database))

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str] = DEFAULT_URL,
        *,
        create: bool = True,
        text_limit: int = codec.TEXT_LIMIT,
        busy_timeout: float = BUSY_TIMEOUT,
        migrate: bool = False,
    ) -> TranscriptLog:
        """Open the log at a URL (`sqlite:///file`, `sqlite://` for memory, `postgresql://host/name`)
        or a path.

        `text_limit`: bytes of UTF-8 a text may have; `busy_timeout`: seconds to wait for another
        process's write; `migrate`: bring a log of an older schema up to date, which is refused
        without it. Raise NotALog (the file is something else, or with `create=False` isn't there),
        SchemaVersionMismatch, StorageBusy, StorageFailed.
        """
        database = open_database(url, create=create, busy_timeout=busy_timeout, migrate=migrate)
        return cls(database, text_limit=text_limit)

    @property
    def database(self) -> Database:
        """The database that the log stands in."""
        return self._database

    # --- writing ---------------------------------------------------------------------------------

    def append(
        self,
        session: str,
        *events: Event,
        expected_version: int = ANY,
        durable: bool = True,
        lease: Lease | None = None,
    ) -> tuple[Recorded, ...]:
        """Append events, all or nothing; return where each stands.

        An event whose id is there with the same content is returned where it stands. One with other
        content raises KeyConflict if it is an intent, and is stored under an id of its own with
        `conflicts_with` if it is a fact. A chunk of a delivery may stand in a part with others that
        waited with it. Durable: on the disk when this returns; else committed, in
        order, and carried by the next durable append. Under a lease that was lost or expired intents
        raise LeaseLost, facts are stored under its generation. Also raised: BadEvent, EventTooLarge,
        OffsetMismatch, WrongExpectedVersion, StorageError.
        """
        if not events:
            self._nothing(checked(session), expected_version)
            return ()
        given = self.appending(session, events, expected_version, durable=durable, lease=lease)
        return tuple(self.writer.append(given).records)

    def append_drafts(
        self,
        session: str,
        drafts: Iterable[Draft],
        *,
        expected_version: int = ANY,
        durable: bool = True,
        lease: Lease | None = None,
    ) -> Outcome:
        """Append prepared events, those of an import with the time at which they were recorded.

        Many, or those of an iterator, are a transaction of their own.
        """
        given = Append(
            checked(session, lease), drafts=drafts, expected_version=expected_version,
            durable=durable, lease=lease,
        )  # fmt: skip
        if isinstance(drafts, Sized) and len(drafts) <= BATCH_EVENTS:
            given.drafts = list(drafts)
            return self.writer.append(given)
        self.writer.call(lambda: self._batches.commit((given,)))
        return given.answer()

    def append_sessions(self, given: Mapping[str, list[Draft]]) -> dict[str, Append]:
        """Append prepared events to several sessions in one transaction; return what became of each.

        What is refused of one session leaves the others as they are. Raise StorageError.
        """
        appends = {checked(name): Append(name, drafts=drafts) for name, drafts in given.items()}
        self.writer.call(lambda: self._batches.commit(list(appends.values())))
        for append in appends.values():
            if isinstance(append.error, StorageError):
                raise append.error
        return appends

    def appending(
        self,
        session: str,
        events: tuple[Event, ...],
        expected_version: int,
        *,
        durable: bool,
        lease: Lease | None,
    ) -> Append:
        """Return what `append` hands to the writer."""
        return Append(
            checked(session, lease), events, expected_version=expected_version, durable=durable,
            lease=lease,
        )  # fmt: skip

    def _nothing(self, session: str, expected_version: int) -> None:
        actual = self.version(session)
        if expected_version not in (ANY, actual):
            raise wrong_version(session, expected_version, actual)

    # --- reading ---------------------------------------------------------------------------------

    def read(self, session: str, *, after: int = 0, limit: int | None = None) -> Iterator[Recorded]:
        """Iterate over a session's records after a version. Each batch is a short read of its own."""
        session = checked(session)
        left = limit
        while left is None or left > 0:
            count = BATCH if left is None else min(BATCH, left)
            batch = self._database.read(
                f"reading session {session!r}",
                lambda connection: journal.of_session(connection, session, after, count),  # noqa: B023
            )
            yield from batch
            if len(batch) < count:
                return
            after = batch[-1].version
            left = None if left is None else left - len(batch)

    def read_all(self, *, after: int = 0, limit: int | None = None) -> Iterator[Recorded]:
        """Iterate over the records of all sessions after a position."""
        left = limit
        while left is None or left > 0:
            count = BATCH if left is None else min(BATCH, left)
            batch = self._fetch(after, count)
            yield from batch
            if len(batch) < count:
                return
            after = batch[-1].position
            left = None if left is None else left - len(batch)

    def _fetch(self, after: int, count: int) -> list[Recorded]:
        return self._database.read(
            "reading the log", lambda connection: journal.of_all(connection, after, count)
        )

    def subscribe(self, *, after: int = 0, stop: threading.Event | None = None) -> Subscription:
        """Follow the log after a position, through what other processes write too."""
        return Subscription(
            self._fetch,
            self._database.data_version,
            self._database.signal,
            after=after,
            stop=stop,
        )

    def sessions(self) -> list[SessionHead]:
        """Return all sessions with at least one record, the first begun first."""
        return self._database.read("listing sessions", journal.sessions)

    def version(self, session: str) -> int:
        """Return the number of records of a session, 0 if there is none."""
        session = checked(session)
        head = self._database.read(
            f"reading session {session!r}",
            lambda connection: journal.head(connection, session, create=False),
        )
        return 0 if head is None else head.version

    def last_position(self) -> int:
        """Return the position of the newest record, 0 if there is none."""
        return self._database.read("reading the log", journal.last_position)

    def find(self, id: UUID) -> Recorded | None:
        """Return the record of an event's id."""
        return self._database.read("looking an id up", lambda c: journal.find(c, id))

    # --- the rest --------------------------------------------------------------------------------

    @property
    def aio(self) -> AsyncTranscriptLog:
        """The same verbs for an event loop."""
        if self._aio is None:
            # By name: the module is loaded only where a loop runs, and imports this one.
            self._aio = import_module("onrecord.transcript.aio").AsyncTranscriptLog(self)
        assert self._aio is not None
        return self._aio

    def close(self) -> None:
        """Close the log. Idempotent."""
        self.writer.close()
        if self._aio is not None:
            self._aio.shutdown()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _LeaseStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    def acquire_lease(self, session: str, owner: str, ttl: float) -> Lease:
        session = checked(session)
        return self._database.transact(
            lambda connection: leasing.acquire(connection, session, owner, ttl),
            doing=f"taking session {session!r}", sessions=(session,),
        )  # fmt: skip

    def renew_lease(self, lease: Lease, ttl: float) -> Lease:
        return self._database.transact(
            lambda connection: leasing.renew(connection, lease, ttl),
            doing=f"keeping session {lease.session!r}", sessions=(lease.session,),
        )  # fmt: skip

    def release_lease(self, lease: Lease) -> None:
        self._database.transact(
            lambda connection: leasing.release(connection, lease),
            doing=f"releasing session {lease.session!r}", sessions=(lease.session,),
        )  # fmt: skip

    def check_lease(self, lease: Lease) -> None:
        self._database.read(
            f"checking the lease of session {lease.session!r}",
            lambda connection: leasing.check(connection, lease),
        )

    def lease_state(self, session: str) -> LeaseState | None:
        session = checked(session)
        return self._database.read(
            f"reading the lease of session {session!r}",
            lambda connection: leasing.state(connection, session),
        )


def checked(session: str, lease: Lease | None = None) -> str:
    """Return the name of a session as it is stored. Raise BadEvent if there can be no such name."""
    if not isinstance(session, str) or not session:
        raise BadEvent(f"the session is {session!r}; give a non-empty string")
    if len(session) > codec.ID_LIMIT:
        raise BadEvent(
            f"the session's name has {len(session)} characters; {codec.ID_LIMIT} at most"
        )
    session = storable(session)
    if lease is not None and lease.session != session:
        raise BadEvent(f"a lease of session {lease.session!r} given for session {session!r}")
    return session
