"""The database file, before SQLite sees it: whose it is, and with which mode it is made.

What a file is, is decided from its header bytes, so that a file that isn't ours is left untouched. A
POSIX lock of a process goes when *any* descriptor of the file is closed, also one that SQLite doesn't
know of; so the descriptor that a header was read through stays open as long as a log on that file.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

from onrecord.transcript.errors import NotALog, StorageFailed
from onrecord.transcript.storage.schema import APPLICATION_ID

HEADER_BYTES = 100
_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_AT = 68
_JOURNAL_MAGIC = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_JOURNAL_BYTES = 28
_PAGES_BEFORE = slice(16, 20)

_lock = threading.Lock()
_open: dict[tuple[int, int], list[int]] = {}
"""(device, inode) → [descriptor, number of logs on it]."""


Identity = tuple[int, int]
Stamp = tuple[int, int, int]


def identity(path: str) -> Identity | None:
    """Return which file stands at the path now, None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - at each commit, and twice as fast
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


BESIDE = ("-wal", "-shm")
"""What SQLite calls the WAL and its index, after the database's path."""


def check_same(
    path: str, file: Identity | None, beside: tuple[Identity | None, ...], doing: str
) -> None:
    """Raise StorageFailed if a file at the path, or `beside` it, isn't the one that was opened."""
    if identity(path) != file:
        raise StorageFailed(
            f"{doing}: {path} was deleted or replaced while it was open; put it back, or open the "
            "log anew",
        )
    for ending, known in zip(BESIDE, beside, strict=False):
        if identity(path + ending) != known:
            raise StorageFailed(
                f"{doing}: {path}{ending} was deleted or replaced while it was open; close the log, "
                "which saves what stands in it, and open it anew",
            )


SETTLED = 1_000_000_000
"""Nanoseconds after which a folder's time of change tells later changes from the last one."""


def unchanged_folder(folder: str, seen: Stamp | None) -> tuple[bool, Stamp | None]:
    """Tell whether nothing was made, removed or renamed in a folder since `seen`.

    Return also what is `seen` now, to be given next time; None while the last change is too recent.
    """
    try:
        found = os.stat(folder)  # noqa: PTH116 - at each commit, and twice as fast
    except FileNotFoundError:
        return False, None
    stamp = (found.st_dev, found.st_ino, found.st_mtime_ns)
    settled = time.time_ns() - found.st_mtime_ns > SETTLED
    return stamp == seen, stamp if settled else None


def claim(path: str, *, create: bool) -> Identity:
    """Make or check the file at the path; return which it is. Give it back with `release`.

    A new file gets mode 0600, new folders 0700. Raise NotALog if the file is something else.
    """
    try:
        return _claim(path, create=create)
    except OSError as error:
        raise StorageFailed(f"{path} can't be opened: {error.strerror or error}") from error


def release(file: Identity) -> None:
    """Give a claimed file back, once all connections to it are closed."""
    with _lock:
        entry = _open[file]
        entry[1] -= 1
        if entry[1] == 0:
            os.close(entry[0])
            del _open[file]


def _claim(path: str, *, create: bool) -> Identity:
    with _lock:
        if create:
            _make(path)
        try:
            found = Path(path).stat()
        except FileNotFoundError:
            raise NotALog(f"there is no log at {path}; check the path", where=path) from None
        if not stat.S_ISREG(found.st_mode):
            raise NotALog(f"{path} isn't a file; give the path of a log", where=path)
        file = (found.st_dev, found.st_ino)
        entry = _open.get(file)
        fd = entry[0] if entry else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _check(fd, path, create=create)
        except BaseException:
            if entry is None:
                os.close(fd)
            raise
        if entry is None:
            _open[file] = entry = [fd, 0]
        entry[1] += 1
        return file


def _make(path: str) -> None:
    folder = Path(path).absolute().parent
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=0o700, exist_ok=True)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    os.close(fd)  # nothing can have locked a file that is just made
    sync_folder(path)


def _was_empty(path: str) -> bool:
    """Tell whether a rollback journal says that nothing was ever committed to the file.

    The power went while the file was made: SQLite takes such a file back to zero bytes.
    """
    try:
        with Path(f"{path}-journal").open("rb") as journal:
            head = journal.read(_JOURNAL_BYTES)
    except FileNotFoundError:
        return False
    return head.startswith(_JOURNAL_MAGIC) and head[_PAGES_BEFORE] == bytes(4)


def sync_folder(path: str) -> None:
    """Make the names in a file's folder durable: what was made is there, what was removed is gone.

    Raise StorageFailed.
    """
    folder = Path(path).absolute().parent
    try:
        directory = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StorageFailed(
            f"{folder} can't be synced: {error.strerror or error}; see to the disk, then open again"
        ) from error


def is_a_log(path: str | os.PathLike[str]) -> bool:
    """Tell whether a log stands in a file. Not while this process has it open: that drops its locks."""
    with open(path, "rb") as file:  # noqa: PTH123 (a path of any kind)
        return _is_ours(file.read(HEADER_BYTES))


def _is_ours(header: bytes) -> bool:
    mark = header[_APPLICATION_ID_AT : _APPLICATION_ID_AT + 4]
    return header.startswith(_MAGIC) and int.from_bytes(mark, "big") == APPLICATION_ID


def _check(fd: int, path: str, *, create: bool) -> None:
    header = os.pread(fd, HEADER_BYTES, 0)
    if not header.startswith(_MAGIC) and _was_empty(path):
        header = b""
    if not header and create:
        return
    if not header:
        raise NotALog(f"{path} is empty: there is no log in it", where=path)
    if not header.startswith(_MAGIC):
        raise NotALog(
            f"{path} is no SQLite file and was left untouched; give another path", where=path
        )
    if not _is_ours(header):
        raise NotALog(
            f"{path} is another application's database and was left untouched; give another path",
            where=path,
        )
