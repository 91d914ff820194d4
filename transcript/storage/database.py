"""What a database does for the log: transactions, short reads, and finding out after a failure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from onrecord.transcript.errors import StorageError, Stored
from onrecord.transcript.storage.dialect import Dialect
from onrecord.transcript.storage.signal import Signal

T = TypeVar("T")

BUSY_TIMEOUT = 10.0
"""Seconds to wait for another writer's lock."""


class CommitUnclear(StorageError):
    """A commit failed in a way that leaves open whether it happened; `cause` is the driver's error.

    An append finds out and never raises it; for a lease: take it again.
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
    errors: type[Exception]
    """The root of the driver's errors."""
    integrity_error: type[Exception]
    """The driver's error for a key that is taken."""

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
