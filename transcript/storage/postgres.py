"""A PostgreSQL database: connections, transactions, and what is done when one is lost."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree
from sqlalchemy.pool import QueuePool

from onrecord.transcript.errors import StorageBusy, StorageError
from onrecord.transcript.storage import postgres_driver as driver
from onrecord.transcript.storage.database import (
    BUSY_TIMEOUT,
    CommitUnclear,
    Database,
    WriteAgain,
)
from onrecord.transcript.storage.postgres_listening import Listener
from onrecord.transcript.storage.postgres_preparing import prepare
from onrecord.transcript.storage.signal import Signal

T = TypeVar("T")

POOL_SIZE, POOL_OVERFLOW = 5, 15
"""Reading connections that are kept, and those beyond while many threads read at once."""
LONGEST_PAUSE = 0.25
"""Seconds between two tries to reach the server, at most; random, so that not all come at once."""


class _Unclear(CommitUnclear):
    def __init__(self, cause: BaseException, backend: tuple[int, str] | None) -> None:
        super().__init__(cause)
        self.backend = backend


class PostgresDatabase(Database):
    """A writing connection behind a lock, reading ones in a pool, one that listens for followers."""

    dialect = driver.POSTGRES
    integrity_error = driver.IntegrityError

    def __init__(
        self,
        url: URL,
        *,
        create: bool = True,
        busy_timeout: float = BUSY_TIMEOUT,
        migrate: bool = False,
    ) -> None:
        self._url = url
        self._where = driver.where(url)
        self._conninfo = driver.conninfo(url)
        self.busy_timeout = busy_timeout
        self._reset()
        doing = f"opening {self._where}"
        try:
            with self._lock:
                connection = self._write_connection()
                self.found_schema = prepare(connection, self._where, create=create, migrate=migrate)
        except BaseException as error:
            self.close()
            if isinstance(error, driver.Error):
                raise driver.translate(error, doing) from error
            raise
        self._opened()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self.signal = Signal()
        self._writer: driver.PostgresConnection | None = None
        self._listener = Listener(lambda: self._connect(writing=False), self.signal, self._is_own)
        self._engine = create_engine(
            "postgresql+psycopg://", creator=lambda: self._connect(writing=False).raw,
            poolclass=QueuePool, pool_size=POOL_SIZE, max_overflow=POOL_OVERFLOW,
            pool_timeout=self.busy_timeout, hide_parameters=True,
        )  # fmt: skip

    def _connect(self, *, writing: bool) -> driver.PostgresConnection:
        self._check_open()
        return driver.connect(self._conninfo, self.busy_timeout, writing=writing)

    def _is_own(self, pid: int) -> bool:
        writer = self._writer
        return writer is not None and writer.backend is not None and writer.backend[0] == pid

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine, on reading connections."""
        return self._engine

    @property
    def url(self) -> str:
        """Return the URL that opens it again. It may hold a password."""
        return self._url.render_as_string(hide_password=False)

    @property
    def where(self) -> str:
        """Return host and database, for messages."""
        return self._where

    # --- writing ---------------------------------------------------------------------------------

    @contextmanager
    def write(
        self,
        *,
        durable: bool = True,
        doing: str = "writing",
        sessions: Sequence[str] = (),
        events: int = 0,
    ) -> Iterator[Any]:
        """Give the connection in a write transaction; see Database.write.

        Raise WriteAgain where another transaction, or the end of the connection, came in between.
        """
        began = time.monotonic()
        lock = self._lock
        if not lock.acquire(timeout=self.busy_timeout):
            waited = time.monotonic() - began
            raise StorageBusy(f"{doing}: another thread wrote for {waited:.1f} s", waited=waited)
        try:
            connection = self._begin(durable, doing, sessions, events, began)
            try:
                yield connection
            except BaseException as error:
                self._rollback(connection)
                if isinstance(error, driver.Error):
                    raise self._before_commit(error, doing, began) from error
                raise
            try:
                # Notifying inside the transaction would make all commits of the server wait for
                # each other, syncs included.
                connection.several(f"COMMIT; NOTIFY {driver.CHANNEL}")
            except driver.Error as error:
                self.drop_writer()
                raise _Unclear(error, connection.backend) from error
        finally:
            lock.release()
        self.signal.ring()

    def _begin(
        self, durable: bool, doing: str, sessions: Sequence[str], events: int, began: float
    ) -> driver.PostgresConnection:
        def run() -> driver.PostgresConnection:
            connection = self._write_connection()
            try:
                connection.begin(sessions, events, durable=durable)
            except BaseException:
                self._rollback(connection)
                raise
            return connection

        return self._retry(run, doing, began)

    def _before_commit(self, error: Exception, doing: str, began: float) -> StorageError:
        told = self.translate(error, doing, time.monotonic() - began)
        if driver.is_race(error) or driver.is_lost(error):
            return WriteAgain(told)
        return told

    def _write_connection(self) -> driver.PostgresConnection:
        if self._writer is None:
            self._writer = self._connect(writing=True)
        return self._writer

    def _rollback(self, connection: driver.PostgresConnection) -> None:
        try:
            if connection.in_transaction:
                connection.several("ROLLBACK")
        except driver.Error:
            # A connection that can't roll back is closed, which rolls back.
            self.drop_writer()

    def drop_writer(self) -> None:
        """Close the writing connection; the next write opens another."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def flush(self, connection: Any) -> None:
        """Write into the log of the server, so that the commit syncs it up to there."""
        connection.execute("SELECT pg_logical_emit_message(true, 'onrecord', '')")

    def settle(
        self,
        unclear: CommitUnclear,
        sessions: Sequence[str],
        is_there: Callable[[Any], bool],
        doing: str,
    ) -> bool:
        """Find out whether a commit that failed happened.

        The old transaction is brought to its end first: its process is told to end, and has the
        sessions' locks until it has.
        """
        backend = unclear.backend if isinstance(unclear, _Unclear) else None
        deadline = time.monotonic() + self.busy_timeout
        while True:
            try:
                if backend is not None:
                    self._end(backend, doing)
                with self.write(doing=doing, sessions=sessions) as connection:
                    found = is_there(connection)
                    # What is there may wait for its sync, or for the standby: this waits for both.
                    self.flush(connection)
                return found
            except (CommitUnclear, WriteAgain):
                if time.monotonic() >= deadline:
                    raise

    def _end(self, backend: tuple[int, str], doing: str) -> None:
        self.read(
            doing,
            lambda connection: connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid = ? AND backend_start = ?::timestamptz",
                backend,
            ).fetchall(),
        )

    def translate(self, error: BaseException, doing: str, waited: float = 0.0) -> StorageError:
        """Return our error for one of the driver's, when nothing was stored."""
        return driver.translate(error, doing, waited)

    # --- reading ---------------------------------------------------------------------------------

    def read(self, doing: str, run: Callable[[Any], T]) -> T:
        """Return what `run` makes of a driver's connection: a short read, fetched whole."""

        def attempt() -> T:
            raw = self.engine.raw_connection()
            try:
                driven: Any = raw.driver_connection
                return run(driver.PostgresConnection(driven))
            except driver.Error as error:
                if driver.is_lost(error):
                    raw.invalidate()
                raise
            finally:
                raw.close()

        return self._retry(attempt, doing)

    def select(self, doing: str, run: Callable[[Connection], T]) -> T:
        """Return what `run` makes of a SQLAlchemy connection: a short read, fetched whole."""

        def attempt() -> T:
            with self.engine.connect() as connection:
                return run(connection)

        return self._retry(attempt, doing)

    def data_version(self) -> int:
        """Return a number that changes when another process commits, without asking the server."""
        self._check_open()
        return self._listener.count

    def _retry(self, run: Callable[[], T], doing: str, began: float | None = None) -> T:
        start = time.monotonic() if began is None else began
        pause = 0.001
        while True:
            self._check_open()
            try:
                return run()
            except (driver.Error, DBAPIError) as raised:
                error = (raised.orig if isinstance(raised, DBAPIError) else None) or raised
                waited = time.monotonic() - start
                if not driver.is_lost(error) or waited >= self.busy_timeout:
                    raise self.translate(error, doing, waited) from error
            except NoConnectionFree as error:
                waited = time.monotonic() - start
                raise StorageBusy(
                    f"{doing}: {POOL_SIZE + POOL_OVERFLOW} reads were under way for {waited:.1f} s; "
                    "try again",
                    waited=waited,
                ) from error
            time.sleep(random.uniform(0.0, pause))  # noqa: S311 - spreads those who come back
            pause = min(pause * 2, LONGEST_PAUSE)

    # --- closing ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close all connections. Idempotent."""
        if self._closed:
            return
        self._listener.close()  # first, so that it doesn't try to connect again
        self._closed = True
        with self._lock:
            self.drop_writer()
            self.engine.dispose()

    def _connections(self) -> Sequence[Any]:
        return (self._writer, self._listener, self.engine.pool, self.engine)
