"""A foreign database is read in whatever state it is, and no byte of it or beside it changes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import foreign

# Another program, with its own SQLite: makes a database, says so, and waits.
PROGRAM = """
import os, sqlite3, sys
path, mode, how = sys.argv[1:]
db = sqlite3.connect(path, isolation_level=None)
db.execute(f"PRAGMA journal_mode={mode}")
db.execute("CREATE TABLE IF NOT EXISTS said (id INTEGER PRIMARY KEY, text TEXT)")
db.execute("INSERT INTO said (text) VALUES ('one')")
if how == "hot":
    db.execute("PRAGMA cache_size=1"); db.execute("BEGIN")
    for _ in range(2000):
        db.execute("INSERT INTO said (text) VALUES (?)", ("x" * 500,))
elif how == "closed":
    db.close()
print("ready", flush=True)
for line in sys.stdin:
    db.execute("INSERT INTO said (text) VALUES (?)", (line.strip(),))
    print("done", flush=True)
"""
SECONDS = 30


@contextmanager
def program(path: Path, mode: str, how: str) -> Iterator[subprocess.Popen[str]]:
    arguments = [sys.executable, "-c", PROGRAM, str(path), mode, how]
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child
        child.kill()


def say(child: subprocess.Popen[str], text: str) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(text + "\n")
    child.stdin.flush()
    assert child.stdout.readline() == "done\n"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def texts(path: Path) -> list[str]:
    with foreign.open_database(path) as connection:
        return [row[0] for row in connection.execute("SELECT text FROM said ORDER BY id")]


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_closed_database_is_read(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a b?c.db"
    with program(path, mode, "closed"):
        pass
    before = files(tmp_path)

    assert texts(path) == ["one"]
    assert files(tmp_path) == before


@pytest.mark.parametrize("shm", ["kept", "lost"])
def test_what_a_killed_program_left_in_its_wal_is_read(tmp_path: Path, shm: str) -> None:
    path = tmp_path / "state.db"
    with program(path, "wal", "open") as child:
        say(child, "two")
        child.kill()
    if shm == "lost":
        (tmp_path / "state.db-shm").unlink()
    before = files(tmp_path)

    assert "state.db-wal" in before
    assert texts(path) == ["one", "two"]
    assert files(tmp_path) == before


def test_a_transaction_that_a_kill_cut_off_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with program(path, "delete", "hot") as child:
        child.kill()
    before = files(tmp_path)

    assert before["state.db-journal"]
    assert texts(path) == ["one"]
    assert files(tmp_path) == before


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_program_that_runs_goes_on_meanwhile(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "state.db"
    with program(path, mode, "open") as child:
        with foreign.open_database(path) as connection:
            first = connection.execute("SELECT count(*) FROM said").fetchone()
            say(child, "two")
            second = connection.execute("SELECT count(*) FROM said").fetchone()
        say(child, "three")

        assert (first, second) == ((1,), (2,))
        assert texts(path) == ["one", "two", "three"]


def test_a_program_that_starts_while_its_file_is_read_has_it_read_again(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with program(path, "wal", "closed"):
        pass

    def read_while_it_starts() -> None:
        with foreign.open_database(path) as connection:
            connection.execute("SELECT count(*) FROM said").fetchone()
            with program(path, "wal", "open") as child:
                say(child, "two")

    with pytest.raises(foreign.Changed):
        read_while_it_starts()
    assert texts(path) == ["one", "one", "two"]


def test_nothing_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with program(path, "wal", "open") as child:
        child.kill()

    with pytest.raises(ImportRefused, match="readonly"), foreign.open_database(path) as connection:
        connection.execute("DELETE FROM said")

    assert texts(path) == ["one"]


def test_what_is_no_database_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"SQLite format 3\0" + b"\1" * 500)

    with pytest.raises(ImportRefused, match=r"state\.db"):
        texts(path)


def test_the_version_to_read_by_tells_whether_there_is_a_wal(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with program(path, "wal", "closed"):
        pass
    data = bytearray(path.read_bytes())
    data[18] = 1
    path.write_bytes(data)
    before = files(tmp_path)

    assert texts(path) == ["one"]
    assert files(tmp_path) == before
