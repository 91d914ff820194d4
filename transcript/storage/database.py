"""What a database does for the log: transactions, short reads, and finding out after a failure."""

from __future__ import annotations

import os
import random
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from onrecord.transcript.errors import (
    AppendInDoubt,
    StorageError,
    StorageFailed,
    StorageFull,
    Stored,
)
from onrecord.transcript.storage.dialect import Dialect
from onrecord.transcript.storage.signal import Signal

T = TypeVar("T")

BUSY_TIMEOUT = 10.0
"""Seconds to wait for another writer's lock."""
LONGEST_PAUSE = 0.01
"""Seconds before a transaction is tried again, at most."""

_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_abandoned: list[Any] = []
"""Connections of the parent process: a child must neither use nor close them."""


class CommitUnclear(StorageError):
    """A commit failed in a way that leaves open whether it happened; `cause` is the driver's error.

    Database.transact finds out or does the same again, and so does an append: neither raises it.
    """

    stored: Stored = "unknown"
    may_retry = True

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


class WriteAgain(StorageError):
    """Another transaction came in between, or the connection ended before the commit: nothing is stored.

    The same write, done again, may go through; `told` is the error once no time is left for that.
    """

    may_retry = True

    def __init__(self, told: StorageError) -> None:
        super().__init__(str(told))
        self.told = told


class Database(ABC):
    """One database. Safe for threads; a forked child opens connections of its own.

    The driver's connections that it gives have `dialect` and `next_position` besides what drivers
    have (`onrecord.transcript.storage.dialect.Connection`).
    """

    dialect: Dialect
    signal: Signal
    busy_timeout: float
    found_schema: int
    """The schema that it had when it was opened; 0 if there was no log."""
    integrity_error: type[Exception]
    """The driver's error for a key that is taken."""
    _closed = False

    @property
    @abstractmethod
    def url(self) -> str | None:
        """Return the URL that opens it again, None for one in memory. It may hold a password."""

    @property
    @abstractmethod
    def where(self) -> str:
        """Return where it is, for messages: no secrets."""

    @property
    @abstractmethod
    def engine(self) -> Engine:
        """Return SQLAlchemy's engine on the database."""

    @abstractmethod
    def write(
        self,
        *,
        durable: bool = True,
        doing: str = "writing",
        sessions: Sequence[str] = (),
        events: int = 0,
    ) -> AbstractContextManager[Any]:
        """Give the driver's connection in a write transaction; commit at the end.

        `sessions`: those that are written to, made where they aren't there and kept from other writers
        until the commit; `events`: how many records are written at most. Not durable: the commit isn't
        synced. It survives the process, in order, and a later durable commit carries it. Raise
        CommitUnclear if the commit itself failed, else a StorageError with nothing stored; WriteAgain
        says that it is worth being repeated.
        """

    def for_bulk(self) -> AbstractContextManager[None]:
        """Be ready for many records, one big transaction after another."""
        return nullcontext()

    def transact(
        self,
        run: Callable[[Any], T],
        *,
        durable: bool = True,
        doing: str = "writing",
        sessions: Sequence[str] = (),
        events: int = 0,
    ) -> T:
        """Return what `run` made of the driver's connection in a write transaction; see `write`.

        `run` is called again where another transaction came in between, or the connection ended, and
        once more where the commit itself failed: what it finds done already it must take so. Raise
        StorageError; AppendInDoubt if it may be done or not.
        """
        for last in (False, True):
            try:
                return self.repeat(
                    run, durable=durable, doing=doing, sessions=sessions, events=events
                )
            except CommitUnclear as unclear:
                told = self.translate(unclear.cause, doing)
                if isinstance(told, StorageFull):
                    raise told from unclear.cause
                try:
                    self.settle(unclear, sessions, _is_not_known, doing)
                except StorageError:
                    last = True  # noqa: PLW2901 - it can't be asked: the doubt stays
                if last:
                    raise AppendInDoubt(
                        f"{told}; it may be done or not: do the same again once it is back",
                        session=sessions[0] if sessions else "", ids=[],
                    ) from unclear.cause  # fmt: skip
        raise AssertionError("unreachable")

    def repeat(
        self,
        run: Callable[[Any], T],
        *,
        durable: bool,
        doing: str,
        sessions: Sequence[str],
        events: int,
        once: bool = False,
    ) -> T:
        """Write, and again (unless `once`) where another came in between, for busy_timeout at most.

        Raise CommitUnclear, or StorageError with nothing stored.
        """
        deadline = time.monotonic() + self.busy_timeout
        while True:
            try:
                with self.write(
                    durable=durable, doing=doing, sessions=sessions, events=events
                ) as connection:
                    return run(connection)
            except WriteAgain as again:
                if once or time.monotonic() >= deadline:
                    raise again.told from again.__cause__
                time.sleep(random.uniform(0.0, LONGEST_PAUSE))  # noqa: S311 - parts those who met

    @abstractmethod
    def flush(self, connection: Any) -> None:
        """Write something, so that the commit syncs whatever was committed before without a sync."""

    @abstractmethod
    def settle(
        self,
        unclear: CommitUnclear,
        sessions: Sequence[str],
        is_there: Callable[[Any], bool],
        doing: str,
    ) -> bool:
        """Find out whether a commit that failed happened, so that the answer stays true.

        `is_there` looks for what was written, on a driver's connection. Raise StorageError if the
        database can't be asked.
        """

    @abstractmethod
    def read(self, doing: str, run: Callable[[Any], T]) -> T:
        """Return what `run` makes of a driver's connection: a short read, fetched whole."""

    def damage(self) -> list[str]:
        """Return what the database itself finds wrong in its tables and indexes, in its words."""
        return []

    @abstractmethod
    def select(self, doing: str, run: Callable[[Connection], T]) -> T:
        """Return what `run` makes of a SQLAlchemy connection: a short read, fetched whole."""

    @abstractmethod
    def data_version(self) -> int:
        """Return a number that changes when another process commits (constant in memory)."""

    @abstractmethod
    def translate(self, error: BaseException, doing: str) -> Exception:
        """Return our error for one of the driver's, when nothing was stored."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections. Idempotent."""

    # --- for those below -------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise StorageFailed("the log is closed; open it again", may_retry=False)

    def _opened(self) -> None:
        _databases.add(self)

    @abstractmethod
    def _connections(self) -> Sequence[Any]:
        """Return what a forked child must neither use nor close."""

    @abstractmethod
    def _reset(self) -> None:
        """Begin without connections."""


def _is_not_known(_: Any) -> bool:
    return False


def _forked() -> None:
    for database in list(_databases):
        if not database._closed:
            _abandoned.extend(database._connections())
            database._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
