"""Another program's SQLite database, read without changing a byte of it or beside it.

Reading a database in WAL mode writes: SQLite makes or recovers the file's `-shm`, and leaves it there.
So a database is read in one of four ways:

- one with a rollback journal, read-only: its readers write nothing;
- one in WAL mode without a WAL beside it, as an immutable file; if one appears meanwhile, what was
  read may be torn, and `Changed` says to read again;
- with a WAL and a process that holds it (a lock on the `-shm` tells), read-only beside that process,
  as its own readers do;
- with a WAL, or a journal to be rolled back, that nobody holds (a kill, or a copy): from a private copy.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.source import Entry
from onrecord.transcript.storage import dbapi

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

MAGIC = b"SQLite format 3\0"
_SHM_LOCK = 128
"""The byte of a -shm file on which each process that has the database open holds a lock."""
# struct flock (fcntl(2)): macOS and the BSDs have another order than Linux.
_FLOCK, _FLOCK_FIELDS = (
    ("hhqqi4x", ("l_type", "l_whence", "l_start", "l_len", "l_pid"))
    if sys.platform.startswith("linux")
    else ("qqihh8x", ("l_start", "l_len", "l_pid", "l_type", "l_whence"))
)

LOCK_SECONDS = 5.0
"""How long to wait for a program that writes without a WAL."""
_SETTINGS = (
    "PRAGMA query_only=ON",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
    "PRAGMA writable_schema=ON",  # a broken entry, say of a full text index, stops no other table
)

Error = dbapi.Error


class Changed(Exception):
    """The database was opened by its program while it was read as a file that nobody holds."""


def is_sqlite(head: bytes) -> bool:
    """Tell whether a file that begins so is an SQLite database."""
    return head.startswith(MAGIC)


@contextlib.contextmanager
def open_database(path: Path) -> Iterator[Any]:
    """Open a database for reading; give a connection of the driver.

    Raise ImportRefused if it can't be opened, Changed at the end if it has to be read again.
    """
    path = _followed(path)
    wal, journal = (path.with_name(path.name + end) for end in ("-wal", "-journal"))
    with contextlib.ExitStack() as stack:
        if _is_in_wal_mode(path) and not _has_content(wal):
            before = _state(path)
            try:
                yield stack.enter_context(_connected(path, "immutable=1"))
            finally:  # also where reading failed: it may be for that
                if _has_content(wal) or _state(path) != before:
                    raise Changed(str(path))
        elif not was_left_open(path):
            yield stack.enter_context(_connected(path, "mode=ro"))
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onrecord-")))
            for file in filter(_has_content, (wal, journal, path)):
                shutil.copyfile(file, folder / file.name)
            yield stack.enter_context(_connected(folder / path.name, "mode=rw"))


def was_left_open(path: Path) -> bool:
    """Tell whether a program ended with the database open, by a kill say: nobody holds what it left.

    A copy of the files of a program at work looks the same.
    """
    path = _followed(path)
    beside = (path.with_name(path.name + end) for end in ("-wal", "-journal"))
    return any(map(_has_content, beside)) and not _is_held(path)


def _followed(path: Path) -> Path:
    """Return what a link leads to: the WAL stands beside the file itself."""
    return path.resolve() if path.is_symlink() else path


def _is_in_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(20)[19:20] == b"\2"  # the version to read it by is what SQLite goes by


@contextlib.contextmanager
def _connected(path: Path, options: str) -> Iterator[Any]:
    uri = f"file:{quote(os.fspath(path.absolute()))}?{options}"
    with contextlib.ExitStack() as stack:
        try:
            connection = dbapi.connect(uri, uri=True, isolation_level=None, timeout=LOCK_SECONDS)
            stack.enter_context(contextlib.closing(connection))
            for setting in _SETTINGS:
                connection.execute(setting)
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except Error as error:
            raise _refused(path, f"{path.name} can't be opened as a database", error) from error
        try:
            yield connection
        except Error as error:
            raise _refused(path, f"{path.name} can't be read any further", error) from error


def _refused(path: Path, what: str, error: Exception) -> ImportRefused:
    return ImportRefused(
        f"{what}: {error}; check that {path} may be read and is whole, and import it again: what was "
        "read so far stays",
        file=str(path), line=0, expected="an SQLite database",
    )  # fmt: skip


def tables(connection: Any) -> dict[str, set[str]]:
    """Return the names of the tables, each with those of its columns; one that can't be read has none."""
    found: dict[str, set[str]] = {}
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        quoted = '"' + str(name).replace('"', '""') + '"'
        try:
            columns = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
        except Error:  # a virtual table whose module or content is broken: not one of those we read
            columns = []
        found[str(name)] = {str(column[1]) for column in columns}
    return found


def of_no_session(rows: SourceRows, place: str) -> tuple[str, Iterator[Entry]]:
    """Return the session that tells of rows without one, as a damaged file has where none may be."""
    rows.fault(codes.UNREADABLE, place, "rows that name no session: the file is cut off or damaged")
    return rows.session, iter(rows.take())


def read_through(entries: Iterator[Entry], rows: SourceRows, place: str) -> Iterator[Entry]:
    """Iterate over a session's entries; where the database is broken, say so, and that is its end."""
    try:
        yield from entries
    except Error as error:
        rows.fault(codes.UNREADABLE, place, f"from here on the table can't be read ({error})")
        yield from rows.take()


def has_table(path: Path, head: bytes, columns: set[str]) -> bool:
    """Tell whether a file that begins with `head` is a database with a table of these columns."""
    if not is_sqlite(head):
        return False
    with contextlib.suppress(Changed, ImportRefused, Error), open_database(path) as connection:
        return any(own >= columns for own in tables(connection).values())
    return False


def _has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _is_held(path: Path) -> bool:
    """Tell whether a process has the database open: asking for the lock takes none."""
    shm = path.with_name(path.name + "-shm")
    if fcntl is None or not shm.exists():
        return False
    lock = {
        "l_type": fcntl.F_WRLCK,
        "l_whence": os.SEEK_SET,
        "l_start": _SHM_LOCK,
        "l_len": 1,
        "l_pid": 0,
    }
    asked = struct.pack(_FLOCK, *(lock[name] for name in _FLOCK_FIELDS))
    with shm.open("rb") as file:
        answer = fcntl.fcntl(file, fcntl.F_GETLK, asked)
    found = dict(zip(_FLOCK_FIELDS, struct.unpack(_FLOCK, answer), strict=True))
    return bool(found["l_type"] != fcntl.F_UNLCK)
