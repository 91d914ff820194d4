"""Importing again after Hermes went on adds what is new: the same as importing it all at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hermes_databases import HermesHome, imported

from onrecord.transcript.log import TranscriptLog

Step = Callable[[HermesHome], object]


def asks(text: str) -> Step:
    return lambda home: home.user(text)


def answers(text: str, *calls: str) -> Step:
    return lambda home: home.assistant(text, *calls)


def takes_back(first: int) -> Step:
    sql = "UPDATE messages SET active = 0 WHERE session_id = 's' AND id >= ? AND active = 1"
    return lambda home: home.run(sql, first)


def compacts(*kept: int) -> Step:
    return lambda home: home.compacts([], kept)


def changes(sql: str) -> Step:
    return lambda home: home.run(sql)


TALK = [asks("one"), answers("eins"), asks("two"), answers("zwei")]
STORIES: dict[str, list[Step]] = {
    "turns": [*TALK, asks("three"), answers("", "c1"), lambda home: home.tool("c1", "x"), answers("drei")],
    "rewind": [*TALK, takes_back(3), asks("three"), answers("drei")],
    "rewind and rewind": [*TALK, takes_back(3), asks("three"), answers("drei"), takes_back(1), asks("four")],
    "rewind of a rewind": [*TALK, takes_back(3), asks("three"), takes_back(5), asks("four"), answers("vier")],
    "compaction": [
        *TALK, asks("three"), answers("drei"), compacts(5, 6), asks("four"), answers("vier"),
    ],
    "rewind and compaction": [
        *TALK, takes_back(3), asks("three"), answers("drei"), compacts(5, 6),
        asks("four"), answers("vier"), takes_back(10), asks("five"),
    ],
    "ledger": [
        asks("one"), answers("eins"), lambda home: home.owes("eins", "pending", obligation_id="o"),
        changes("UPDATE delivery_obligations SET state = 'attempting'"),
        changes("UPDATE delivery_obligations SET state = 'delivered'"), asks("two"),
    ],
    "failed twice": [
        asks("one"), answers("eins"),
        lambda home: home.owes("eins", "failed", obligation_id="o", last_error="Forbidden"),
        changes("UPDATE delivery_obligations SET attempts = 1, last_error = 'Not found'"), asks("two"),
    ],
    "log": [
        lambda home: home.came_in("one"), asks("one"), answers("eins"),
        lambda home: home.ready(4, took=3.0), lambda home: home.sending(4),
        lambda home: home.came_in("lost"), lambda home: home.ready(70), lambda home: home.came_in("two"),
        asks("two"), answers("zwei"), lambda home: home.ready(4, took=3.0), lambda home: home.started(),
    ],
    "end": [
        *TALK, changes("UPDATE sessions SET ended_at = 1796000100, end_reason = 'idle'"),
        changes("UPDATE sessions SET ended_at = NULL, end_reason = NULL"), asks("three"), answers("drei"),
    ],
    "title": [*TALK, changes("UPDATE sessions SET title = 'A talk'"), asks("three"), answers("drei")],
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_import_after_each_step_equals_one_import(tmp_path: Path, story: list[Step]) -> None:
    home = HermesHome(tmp_path / "home")
    home.session(chat_id="c", session_key="key")
    with TranscriptLog.open("sqlite://") as log:
        for step in story:
            step(home)
            home.run("PRAGMA wal_checkpoint(TRUNCATE)")  # what is left in a WAL tells of a kill
            imported(home.path, log)
        told = imported(home.path, log)

    whole = imported(home.path)

    assert told.imported.added == 0
    assert told.rows == whole.rows
    assert told.view == whole.view
    assert told.deliveries == whole.deliveries
    assert sorted(told.found) == sorted(whole.found)


# Hermes beside us, with a SQLite of its own: a turn for each line that it is given.
WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
insert = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', ?, ?, 5)"
for line in sys.stdin:
    db.execute(insert, ("user", "question " + line.strip()))
    db.execute(insert, ("assistant", "answer " + line.strip()))
    print("done", flush=True)
"""


def test_a_database_is_read_while_hermes_writes_to_it(tmp_path: Path) -> None:
    home = HermesHome(tmp_path / "home")
    home.session()
    home.database.close()
    command = [sys.executable, "-c", WRITER, str(home.path / "state.db")]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as hermes,
        TranscriptLog.open("sqlite://") as log,
    ):
        assert hermes.stdin is not None
        assert hermes.stdout is not None
        for turn in range(20):
            hermes.stdin.write(f"{turn}\n")
            hermes.stdin.flush()
            assert hermes.stdout.readline() == "done\n"
            files = [home.path / name for name in ("state.db", "state.db-wal")]
            before = [file.read_bytes() for file in files]
            told = imported(home.path, log)

            assert len(told.rows) == 2 * (turn + 1)
            assert [file.read_bytes() for file in files] == before
        hermes.stdin.close()
        assert imported(home.path, log).rows == imported(home.path).rows
