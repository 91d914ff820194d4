"""Importing again after Hermes went on adds what is new: the same as importing it all at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hermes_databases import SUMMARY, HermesHome, imported

from onrecord.transcript.log import TranscriptLog

Step = Callable[[HermesHome], object]


def asks(text: str) -> Step:
    return lambda home: home.user(text)


def answers(text: str, *calls: str) -> Step:
    return lambda home: home.assistant(text, *calls)


def takes_back(first: int) -> Step:
    sql = "UPDATE messages SET active = 0 WHERE session_id = 's' AND id >= ? AND active = 1"
    return lambda home: home.run(sql, first)


def compacts(*texts: str) -> Step:
    def step(home: HermesHome) -> None:
        home.run("UPDATE messages SET active = 0, compacted = 1 WHERE active = 1")
        home.assistant(SUMMARY)
        for n, text in enumerate(texts):
            home.row("assistant" if n % 2 else "user", text)

    return step


def changes(sql: str) -> Step:
    return lambda home: home.run(sql)


TALK = [asks("one"), answers("eins"), asks("two"), answers("zwei")]
STORIES: dict[str, list[Step]] = {
    "turns": [*TALK, asks("three"), answers("", "c1"), lambda home: home.tool("c1", "x"), answers("drei")],
    "rewind": [*TALK, takes_back(3), asks("three"), answers("drei")],
    "rewind and rewind": [*TALK, takes_back(3), asks("three"), answers("drei"), takes_back(1), asks("four")],
    "rewind of a rewind": [*TALK, takes_back(3), asks("three"), takes_back(5), asks("four"), answers("vier")],
    "compaction": [
        *TALK, asks("three"), answers("drei"), compacts("three", "drei"), asks("four"), answers("vier"),
    ],
    "rewind and compaction": [
        *TALK, takes_back(3), asks("three"), answers("drei"), compacts("three", "drei"),
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
