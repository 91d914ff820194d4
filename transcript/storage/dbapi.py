"""The one module that imports SQLite.

Two SQLite libraries on one file in one process corrupt it, so nobody else imports one. pysqlite3 (with
a SQLite without the WAL-reset fault of 3.7.0 to 3.51.2) is taken where it is installed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

try:
    import pysqlite3.dbapi2 as module  # type: ignore[import-not-found,import-untyped,unused-ignore]
except ImportError:  # no wheel for this platform: the standard library's
    import sqlite3.dbapi2 as module  # type: ignore[no-redef,unused-ignore]

try:
    import resource
except ImportError:  # not a POSIX system
    resource = None  # type: ignore[assignment]

from onrecord.transcript.errors import OnRecordError, StorageBusy, StorageFailed, StorageFull
from onrecord.transcript.storage.dialect import SQLITE

driver: Any = module
"""The driver's module, for SQLAlchemy."""
Error: type[Exception] = driver.Error
IntegrityError: type[Exception] = driver.IntegrityError
VERSION: tuple[int, ...] = tuple(int(part) for part in driver.sqlite_version.split("."))

WAL_KEPT = 64 << 20
"""Bytes that the WAL file keeps after a checkpoint."""
BULK_CACHE = 64 << 20
"""Bytes of pages that are held while many records are written."""
BULK_PAGES = 16_384
"""Pages of the WAL that are written into the file at once then."""

_SETTINGS = (
    "PRAGMA foreign_keys=ON",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA secure_delete=ON",
    "PRAGMA recursive_triggers=ON",
    "PRAGMA mmap_size=0",
    f"PRAGMA journal_size_limit={WAL_KEPT}",
    "PRAGMA synchronous=FULL",
)

BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANT_OPEN = 5, 6, 8, 10, 11, 13, 14
NOT_A_DATABASE = 26
_IOERR_WRITE = 778
_FIXED_BRANCHES = (((3, 44, 6), (3, 45)), ((3, 50, 7), (3, 51)))


class Connection(driver.Connection):  # type: ignore[misc,name-defined,unused-ignore]
    """The driver's connection, with what our statements ask for."""

    dialect = SQLITE

    def next_position(self) -> None:
        """Return None: AUTOINCREMENT gives the positions."""


def connect(database: str, **options: Any) -> Any:
    """Return a driver connection."""
    return driver.connect(database, factory=Connection, **options)


def connect_to_log(path: str | None) -> Any:
    """Return a connection to a log's file, or to one in memory, with the settings of all of ours."""
    connection = connect(
        path or ":memory:",
        timeout=0,  # who waits, and how long, is decided by us
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        for setting in _SETTINGS:
            connection.execute(setting)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def roomy(connection: Any) -> Iterator[None]:
    """Let a connection hold and log more pages: records come in the order of their random ids."""
    connection.execute(f"PRAGMA cache_size=-{BULK_CACHE >> 10}")
    connection.execute(f"PRAGMA wal_autocheckpoint={BULK_PAGES}")
    try:
        yield
    finally:
        with contextlib.suppress(driver.ProgrammingError):  # closed since, after a failure
            connection.execute("PRAGMA cache_size=-2000")
            connection.execute("PRAGMA wal_autocheckpoint=1000")


def has_wal_fault() -> bool:
    """Tell whether this SQLite can corrupt a log under two writers (sqlite.org/wal.html)."""
    backported = any(low <= VERSION < high for low, high in _FIXED_BRANCHES)
    return not (VERSION >= (3, 51, 3) or backported)


def code(error: BaseException) -> int:
    """Return SQLite's primary result code, 0 if there is none."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def wrote_nothing(error: BaseException) -> bool:
    """Tell whether a commit failed in a write: its last frame, which makes it one, isn't there."""
    extended = int(getattr(error, "sqlite_errorcode", None) or 0)
    return extended == _IOERR_WRITE or code(error) == FULL


def _size_limited() -> bool:
    """Tell whether this process may only write files up to some size (ulimit -f)."""
    if resource is None:
        return False
    return bool(resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY)


def translate(error: BaseException, doing: str, waited: float = 0.0) -> OnRecordError:
    """Return our error for one of the driver's, when nothing was stored. No text of an event in it."""
    found = code(error)
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    if found in (BUSY, LOCKED):
        return StorageBusy(
            f"{doing}: another process held the lock for {waited:.1f} s; try again, with the same "
            "events, or open the log with a longer busy_timeout",
            waited=waited,
        )
    if found == FULL or (found == IOERR and _size_limited()):
        return StorageFull(f"{doing}: no space is left ({name}); make room, then try again")
    if found == READONLY:
        return StorageFailed(
            f"{doing}: the file can't be written ({name}); check its owner and mode"
        )
    if found == CANT_OPEN:
        return StorageFailed(
            f"{doing}: the file, or one that belongs beside it, can't be opened ({name}); check the "
            "owner and mode of the file and of its folder"
        )
    if found in (CORRUPT, NOT_A_DATABASE):
        return damaged(doing, f"{name}: {error}")
    if found == 0 and "decode to UTF-8" in str(error):
        return damaged(doing, "a text isn't UTF-8")
    return StorageFailed(f"{doing}: {name}: {error}")


def damaged(doing: str, what: str) -> StorageFailed:
    """Return the error for a file that isn't as it was written."""
    return StorageFailed(
        f"{doing}: the file is damaged ({what}); run `onrecord verify` to see what holds, and go on "
        "from a copy"
    )
