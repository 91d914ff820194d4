"""A SQLite database: connections, transactions, and what is done when one fails."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import Pool, QueuePool, StaticPool

from onrecord.transcript.errors import StorageBusy, StorageFailed
from onrecord.transcript.storage import dbapi, files, integrity, preparing
from onrecord.transcript.storage.database import BUSY_TIMEOUT, CommitUnclear, Database
from onrecord.transcript.storage.dialect import SQLITE
from onrecord.transcript.storage.retrying import retry
from onrecord.transcript.storage.signal import Signal

T = TypeVar("T")

READERS, READERS_MORE = 5, 59
"""Reading connections that are kept, and those that the engine makes beyond while many select."""


class SQLiteDatabase(Database):
    """A file: a writing connection behind a lock, reading ones in a pool.

    In memory there is one connection for everything; a forked child goes on with its copy.
    """

    dialect = SQLITE
    integrity_error = dbapi.IntegrityError

    def __init__(
        self,
        path: str | None,
        *,
        create: bool = True,
        busy_timeout: float = BUSY_TIMEOUT,
        migrate: bool = False,
    ) -> None:
        if path is not None:
            # One file, wherever the process goes; and never a name that SQLite takes for a URI.
            path = str(Path(path).absolute())
        self.path = path
        self.busy_timeout = busy_timeout
        self._file: files.Identity | None = None
        if path is not None:
            self._file = files.claim(path, create=create)
        try:
            self._reset()
            self._retry(lambda: self._prepare(create, migrate), "opening the log")
        except BaseException as error:
            self.close()
            if isinstance(error, dbapi.Error):
                raise dbapi.translate(error, f"opening {path or 'a log in memory'}") from error
            raise
        self._opened()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._watching = threading.Lock()
        self.signal = Signal()
        self._folder = "" if self.path is None else str(Path(self.path).parent)
        self._seen: files.Stamp | None = None
        self._beside: tuple[files.Identity | None, ...] = ()
        self._writer: Any = None
        self._synchronous = "FULL"
        self._open: weakref.ref[_Transaction] | None = None
        self._watcher: Any = None
        self._engine: Engine | None = None
        self._idle: list[Any] = []
        if self.path is None:
            self._memory = getattr(self, "_memory", None) or self._connect()

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine, made when it is first used: loading its dialects takes a while."""
        if self._engine is None:
            if self.path is None:
                memory: Any = self._memory
                pool: Pool = StaticPool(lambda: memory)
            else:
                pool = QueuePool(
                    self._connect, pool_size=READERS, max_overflow=READERS_MORE,
                    timeout=self.busy_timeout,
                )  # fmt: skip
            self._engine = create_engine(
                "sqlite://", module=dbapi.driver, pool=pool, hide_parameters=True
            )
        return self._engine

    def _connect(self) -> Any:
        connection = dbapi.connect_to_log(self.path)
        try:
            if not self._beside:
                self._note_beside(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    # --- opening ---------------------------------------------------------------------------------

    def _prepare(self, create: bool, migrate: bool) -> None:
        connection = self._write_connection()
        self.found_schema = preparing.prepare(connection, self.path, create=create, migrate=migrate)
        self._note_beside(connection)

    # --- writing ---------------------------------------------------------------------------------

    def write(
        self,
        *,
        durable: bool = True,
        doing: str = "writing",
        sessions: Sequence[str] = (),  # noqa: ARG002 - one writer at a time
        events: int = 0,  # noqa: ARG002
    ) -> AbstractContextManager[Any]:
        """Give the driver's connection in a write transaction; see Database.write."""
        return _Transaction(self, doing, durable=durable)

    def for_bulk(self) -> AbstractContextManager[None]:
        """Make room for many records; see Database.for_bulk."""
        return dbapi.roomy(self._write_connection())

    def _enter(self, doing: str, *, durable: bool) -> Any:
        began = time.monotonic()
        if not self._lock.acquire(timeout=self.busy_timeout):
            waited = time.monotonic() - began
            raise StorageBusy(f"{doing}: another thread wrote for {waited:.1f} s", waited=waited)
        try:
            return self._begin(durable, doing, began)
        except BaseException:
            self._lock.release()
            raise

    def _leave(self, connection: Any, doing: str, error: BaseException | None) -> None:
        try:
            try:
                if error is not None:
                    raise error
                self.same_file(doing)
            except BaseException as raised:
                self._rollback(connection)
                if isinstance(raised, dbapi.Error):
                    raise dbapi.translate(raised, doing) from raised
                raise
            try:
                connection.execute("COMMIT")
            except dbapi.Error as failed:
                self.drop_writer()
                raise CommitUnclear(failed) from failed
            self.signal.ring()
        finally:
            self._lock.release()

    def _begin(self, durable: bool, doing: str, began: float) -> Any:
        connection = self._writer
        if connection is None:
            connection = self._retry(self._write_connection, doing, began)
        if connection.in_transaction:
            if self._open is not None and self._open() is not None:
                raise StorageFailed(f"{doing}: within another write of this thread; end that first")
            self._rollback(connection)  # left open by a write that was interrupted (Ctrl-C)
            connection = self._retry(self._write_connection, doing, began)
        wanted = "FULL" if durable else "NORMAL"
        if self._synchronous != wanted:
            self._retry(lambda: connection.execute(f"PRAGMA synchronous={wanted}"), doing, began)
            self._synchronous = wanted
        try:
            connection.execute("BEGIN IMMEDIATE")
        except dbapi.Error:
            self._retry(lambda: connection.execute("BEGIN IMMEDIATE"), doing, began)
        return connection

    def _write_connection(self) -> Any:
        self._check_open()
        if self._writer is None:
            if self.path is None:
                self._writer = self._memory
            else:
                self.same_file("opening")
                self._writer = self._connect()
                self._synchronous = "FULL"
        return self._writer

    def _note_beside(self, connection: Any) -> None:
        """Note which files the WAL and its index are: they stay as long as a connection is open."""
        if self.path is not None:
            connection.execute("PRAGMA schema_version").fetchone()  # opens them
            found = tuple(files.identity(self.path + ending) for ending in files.BESIDE)
            self._beside, self._seen = () if None in found else found, None

    def _rollback(self, connection: Any) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except dbapi.Error:
            # A connection that can't roll back is closed, which rolls back.
            self.drop_writer()

    def drop_writer(self) -> None:
        """Close the writing connection; the next write opens another."""
        writer, self._writer = self._writer, None
        self._beside = ()  # the last connection that is closed removes them
        if writer is not None and self.path is not None:
            writer.close()

    def flush(self, connection: Any) -> None:
        """Write a row, so that the commit syncs whatever was committed before without a sync."""
        connection.execute("UPDATE flushes SET count = count + 1")

    def settle(
        self,
        unclear: CommitUnclear,
        sessions: Sequence[str],  # noqa: ARG002
        is_there: Callable[[Any], bool],
        doing: str,
    ) -> bool:
        """Find out whether a commit that failed happened.

        A commit whose sync failed may be in the WAL and not in its index: it would come back after a
        crash. A write of our own takes its place there, and only then a "no" is final.
        """
        found = self.read(doing, is_there)
        if not found and not dbapi.wrote_nothing(unclear.cause):
            with self.write(doing=doing) as connection:
                found = is_there(connection)
                self.flush(connection)
        if found:
            self.checkpoint()
        return found

    def translate(self, error: BaseException, doing: str) -> Exception:
        """Return our error for one of the driver's, when nothing was stored."""
        return dbapi.translate(error, doing)

    @property
    def url(self) -> str | None:
        """Return the URL that opens it again."""
        return None if self.path is None else f"sqlite:///{self.path}"

    @property
    def where(self) -> str:
        """Return the path, for messages."""
        return self.path or "the log in memory"

    def checkpoint(self) -> None:
        """Move the WAL into the database file and sync both. Raise StorageError if it can't be done."""
        if self.path is None:
            return

        def run() -> None:
            connection = self._write_connection()
            busy = connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0]
            if busy:
                raise StorageBusy("checkpoint: a reader or writer is in the way", waited=0.0)

        with self._lock:
            self._retry(run, "checkpoint")

    def same_file(self, doing: str) -> None:
        """Raise StorageFailed if a file at the path, or beside it, isn't the one that was opened."""
        if self.path is not None:
            same, seen = files.unchanged_folder(self._folder, self._seen)
            if not same:
                self._seen = None
                files.check_same(self.path, self._file, self._beside, doing)
                self._seen = seen

    # --- reading ---------------------------------------------------------------------------------

    def read(self, doing: str, run: Callable[[Any], T]) -> T:
        """Return what `run` makes of a driver connection: a short read, fetched whole."""

        def attempt() -> T:
            if self.path is None:
                with self._lock:
                    return run(self._write_connection())
            self._check_open()
            self.same_file(doing)
            # A list, because SQLAlchemy's pool costs more than the read itself.
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            try:
                found = run(connection)
            except BaseException:
                connection.close()  # nobody knows in which state it is
                raise
            if len(self._idle) < READERS:
                self._idle.append(connection)
                if self._closed:
                    self._close_idle()
            else:
                connection.close()
            return found

        return self._retry(attempt, doing)

    def select(self, doing: str, run: Callable[[Connection], T]) -> T:
        """Return what `run` makes of a SQLAlchemy connection: a short read, fetched whole."""

        def attempt() -> T:
            self._check_open()
            if self.path is None:
                with self._lock, self.engine.connect() as connection:
                    return run(connection)
            self.same_file(doing)
            with self.engine.connect() as connection:
                return run(connection)

        return self._retry(attempt, doing)

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong in its tables and indexes, in its words."""
        return self.read("verifying", integrity.damage)

    def data_version(self) -> int:
        """Return a number that changes when another connection commits (constant in memory)."""
        if self.path is None:
            return 0

        def attempt() -> int:
            with self._watching:
                self.same_file("following the log")
                if self._watcher is None:
                    self._watcher = self._connect()
                return int(self._watcher.execute("PRAGMA data_version").fetchone()[0])

        return self._retry(attempt, "following the log")

    def _retry(self, run: Callable[[], T], doing: str, began: float | None = None) -> T:
        return retry(run, doing, self.busy_timeout, began)

    # --- closing ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close all connections. Idempotent."""
        if self._closed:
            return
        self._closed = True
        with self._lock, self._watching:
            for connection in (self._watcher, self._writer, getattr(self, "_memory", None)):
                if connection is not None:
                    connection.close()
            self._watcher = self._writer = self._memory = None
            self._close_idle()
            if self._engine is not None:
                self._engine.dispose()
        if self._file is not None:
            files.release(self._file)

    def _close_idle(self) -> None:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return
            connection.close()

    def _connections(self) -> Sequence[Any]:
        if self.path is None:
            return ()  # a copy of the memory is the child's own
        return (self._writer, self._watcher, *self._idle, self._engine)


class _Transaction:
    """A write transaction: a class, because a generator costs as much as a statement."""

    __slots__ = ("__weakref__", "_connection", "_database", "_doing", "_durable")

    def __init__(self, database: SQLiteDatabase, doing: str, *, durable: bool) -> None:
        self._database = database
        self._doing = doing
        self._durable = durable

    def __enter__(self) -> Any:
        self._connection = self._database._enter(self._doing, durable=self._durable)
        self._database._open = weakref.ref(self)
        return self._connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database._leave(self._connection, self._doing, error)
