"""A file that isn't a log is left as it was; one that is has the right modes and settings."""

from __future__ import annotations

import hashlib
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onrecord.transcript.errors import NotALog, SchemaVersionMismatch, StorageFailed
from onrecord.transcript.events import SessionEnded, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import dbapi, files


def _foreign(path: Path) -> None:
    connection = dbapi.connect(str(path))
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()


def _foreign_wal(path: Path) -> None:
    connection = dbapi.connect(str(path))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA application_id=7")
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()


def _text(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 100)


def _short(path: Path) -> None:
    path.write_bytes(b"x")


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(4096))


@pytest.mark.parametrize("make", [_foreign, _foreign_wal, _text, _short, _zeros])
def test_foreign_file_is_untouched(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "theirs.db"
    make(path)
    before = (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns)

    with pytest.raises(NotALog):
        TranscriptLog.open(path)

    assert (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["theirs.db"]


@pytest.mark.parametrize("url", ["mysql://h/d", "sqlite:/odd://"])
def test_foreign_url_is_refused(url: str) -> None:
    with pytest.raises(NotALog):
        TranscriptLog.open(url)


def test_folder_and_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotALog):
        TranscriptLog.open(tmp_path)
    with pytest.raises(NotALog):
        TranscriptLog.open(tmp_path / "none.db", create=False)

    assert list(tmp_path.iterdir()) == []


def test_file_and_folders_are_their_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "log.db"
    with TranscriptLog.open(path) as log:
        log.append("s", UserMessageReceived(message="m", text="x"))
        modes = {p.name: p.stat().st_mode & 0o777 for p in tmp_path.rglob("*")}

    assert modes == {
        "a": 0o700, "b": 0o700, "log.db": 0o600, "log.db-wal": 0o600, "log.db-shm": 0o600
    }  # fmt: skip


def test_settings_are_the_safe_ones(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        settings = {
            name: log.database.read("asking", lambda c: c.execute(f"PRAGMA {name}").fetchone()[0])  # noqa: B023
            for name in ("journal_mode", "synchronous", "foreign_keys", "trusted_schema",
                         "secure_delete", "mmap_size", "busy_timeout")
        }  # fmt: skip

    assert settings == {
        "journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "trusted_schema": 0,
        "secure_delete": 1, "mmap_size": 0, "busy_timeout": 0,
    }  # fmt: skip


@pytest.mark.parametrize("schema", [0, 99])
def test_other_schema_is_refused(tmp_path: Path, schema: int) -> None:
    path = tmp_path / "log.db"
    TranscriptLog.open(path).close()
    connection = dbapi.connect(str(path))
    connection.execute(f"PRAGMA user_version={schema}")
    connection.close()

    with pytest.raises(SchemaVersionMismatch) as caught:
        TranscriptLog.open(path, create=False)

    assert caught.value.found == schema


def test_a_deleted_or_replaced_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    event = UserMessageReceived(message="m", text="x")
    with TranscriptLog.open(path) as log:
        log.append("s", event)
        path.rename(tmp_path / "moved.db")

        for run in (lambda: log.append("s", event), lambda: list(log.read("s"))):
            with pytest.raises(StorageFailed, match="deleted or replaced"):
                run()
        TranscriptLog.open(path).close()
        with pytest.raises(StorageFailed, match="deleted or replaced"):
            log.append("s", event)


def test_header_is_read_through_one_descriptor(tmp_path: Path) -> None:
    # Closing any descriptor of the file would drop the locks of the first log.
    path = tmp_path / "log.db"
    with TranscriptLog.open(path) as log:
        file = files.identity(str(path))
        assert file is not None
        descriptor = files._open[file][0]
        with TranscriptLog.open(path):
            assert files._open[file] == [descriptor, 2]
        with pytest.raises(SchemaVersionMismatch):
            _with_other_schema(path)
        assert files._open[file] == [descriptor, 1]
        log.append("s", UserMessageReceived(message="m", text="x"))

    assert file not in files._open


def _with_other_schema(path: Path) -> None:
    connection = dbapi.connect(str(path))
    connection.execute("PRAGMA user_version=99")
    try:
        TranscriptLog.open(path)
    finally:
        connection.execute("PRAGMA user_version=1")
        connection.close()


def test_a_closed_log_says_so(tmp_path: Path) -> None:
    log = TranscriptLog.open(tmp_path / "log.db")
    log.close()
    log.close()

    with pytest.raises(StorageFailed, match="closed"):
        log.append("s", UserMessageReceived(message="m", text="x"))
    with pytest.raises(StorageFailed, match="closed"):
        list(log.read("s"))


def test_another_program_sees_a_sound_database(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path) as log:
        log.append("s", UserMessageReceived(message="m", text="x"))
    look = (
        "import sys, sqlite3; c = sqlite3.connect(sys.argv[1]); "
        "print(c.execute('PRAGMA integrity_check').fetchone()[0], "
        "c.execute('PRAGMA application_id').fetchone()[0] == 0x6F6E7263)"
    )

    done = subprocess.run(
        [sys.executable, "-c", look, str(path)], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["ok", "True"]


def test_a_file_that_was_never_finished_is_made_anew(tmp_path: Path) -> None:
    # The power went while SQLite made the file: its journal says that nothing was committed.
    path = tmp_path / "log.db"
    path.write_bytes(bytes(8192))
    header = (
        bytes.fromhex("d9d505f920a163d7")
        + bytes(4)
        + b"nonc"
        + bytes(4)
        + b"\0\0\2\0"
        + b"\0\0\x10\0"
    )
    (tmp_path / "log.db-journal").write_bytes(header.ljust(512, b"\0"))

    with TranscriptLog.open(path) as log:
        log.append("s", UserMessageReceived(message="m", text="x"))

    assert [p.name for p in tmp_path.iterdir()] == ["log.db"]


@pytest.mark.parametrize(
    ("url", "mend"),
    [
        ("sqlite://bot.db", "sqlite:///"),
        ("sqlite:///bot.db?mode=ro", "leave out what follows ?"),
        ("telex://bot", "use sqlite:///path"),
    ],
)
def test_a_url_that_means_something_else_is_refused(url: str, mend: str) -> None:
    with pytest.raises(NotALog, match=re.escape(mend)):
        TranscriptLog.open(url)


def test_a_name_that_sqlite_takes_for_a_uri_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    TranscriptLog.open("file:z.db").close()

    assert [path.name for path in tmp_path.iterdir()] == ["file:z.db"]
    assert stat.S_IMODE((tmp_path / "file:z.db").stat().st_mode) == 0o600


def test_a_log_stays_where_it_is_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with TranscriptLog.open("sqlite:///bot.db") as log:
        monkeypatch.chdir(tmp_path / "elsewhere")
        log.append("s", SessionEnded(reason="moved"))

        assert log.version("s") == 1
    assert list((tmp_path / "elsewhere").iterdir()) == []
