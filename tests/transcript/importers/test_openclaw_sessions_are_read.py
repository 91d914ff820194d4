"""What OpenClaw itself left behind becomes sessions: its database, and the files of older versions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from foreign_imports import Log, digests, imported
from session_lines import FIXTURES, OpenClawFile, settled

from onrecord.transcript import importers
from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import openclaw
from onrecord.transcript.importers.running import importer_of
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import dbapi

REAL = FIXTURES / "openclaw"
SESSION = "76420a73-d7da-454c-802e-0458b67a2f81"
OLDER = "01a22a0a-7918-7765-b352-00b40f85520f"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    path.parent.mkdir(parents=True)
    run(path, REAL.joinpath("openclaw-2026.9.6.sql").read_text())
    return path


def run(path: Path, script: str) -> None:
    connection: Any = dbapi.connect(str(path))
    connection.executescript(script)
    connection.close()


def test_an_agents_database_is_known_and_read(database: Path) -> None:
    before = dict(digests(database.parent))

    session = imported(openclaw, database, SESSION)

    assert importer_of(database) is openclaw
    assert [role for role, _ in session.rows] == [
        "user", "assistant", "user", "assistant", "user", "assistant",
        "user", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert session.rows[0] == ("user", "Hello there")
    assert session.rows[-2:] == [("tool", "one"), ("assistant", "The tool answered (20).")]
    assert session.found == []
    assert dict(digests(database.parent)) == before


def test_a_packed_entry_is_unpacked(database: Path) -> None:
    session = imported(openclaw, database, SESSION)

    assert session.rows[4] == ("user", "Read this long text of many words. " * 400)
    assert session.of("UserMessageReceived")[2].imported_from == "transcript_events 10"


def test_without_the_extra_packed_entries_are_refused_in_a_sentence(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "onrecord.transcript.importers.zstd", raising=False)
    monkeypatch.delattr(importers, "zstd", raising=False)
    monkeypatch.setitem(sys.modules, "zstandard", None)

    with pytest.raises(
        ImportRefused,
        match=r"packed with Zstandard; to read it: pip install 'onrecord\[zstandard\]'",
    ):
        imported(openclaw, database, SESSION)
    run(database, "DELETE FROM transcript_events WHERE event_zstd IS NOT NULL")

    assert len(imported(openclaw, database, SESSION).rows) == 9


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("event_zstd = x'28b52ffd00'", "can't be read"),
        ("event_zstd = NULL, event_json = '{'", "can't be read"),
        ("event_zstd = NULL, event_json = '[1]'", "a list where an object belongs"),
    ],
)
def test_an_entry_that_is_damaged_is_told_and_the_rest_is_read(
    database: Path, change: str, told: str
) -> None:
    run(database, f"UPDATE transcript_events SET {change} WHERE seq = 10")

    session = imported(openclaw, database, SESSION)

    assert ("unreadable-in-source", "transcript_events 10") in session.faults
    assert told in session.of("SourceFaultFound")[0].detail
    assert session.rows[-1] == ("assistant", "The tool answered (20).")


def test_older_databases_have_neither_packed_entries_nor_windows(tmp_path: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    run(
        path,
        "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER)",
    )
    run(
        path,
        """INSERT INTO transcript_events VALUES ('s', 0, '{"type":"session","id":"s","version":3}', 1),
        ('s', 1, '{"type":"message","id":"a","message":{"role":"user","content":"Hi"}}', 2)""",
    )

    assert imported(openclaw, path, "s").rows == [("user", "Hi")]


def test_a_session_that_is_packed_away_is_told(database: Path) -> None:
    run(
        database,
        f"""DELETE FROM transcript_events;
        INSERT INTO session_transcript_cold_archives VALUES (
            '{SESSION}', 'g', 'a.zst', '{"0" * 64}', 3, 9, 9, 3, 1, 'file', NULL)""",
    )

    session = imported(openclaw, database, SESSION)

    assert session.faults == [
        ("content-unrecoverable", f"session_transcript_cold_archives {SESSION}")
    ]


def test_a_subagent_names_the_session_that_stood_there_when_it_began(database: Path) -> None:
    columns = "session_id, session_key, created_at, updated_at, spawned_by"
    run(
        database,
        f"""
        INSERT INTO session_windows ({columns}) VALUES ('later', 'agent:main:main', 1796009999999, 1, NULL);
        INSERT INTO session_nodes (session_key, current_session_id, entry_json, updated_at)
            VALUES ('agent:main:subagent:x', 'sub', '{{}}', 1);
        INSERT INTO session_windows ({columns})
            VALUES ('sub', 'agent:main:subagent:x', 1796001600000, 1, 'agent:main:main');
        INSERT INTO transcript_events (session_id, seq, event_json, created_at)
            VALUES ('sub', 0, '{{"type": "session", "id": "sub", "version": 4}}', 1796001600000)""",
    )

    session = imported(openclaw, database, "sub")

    assert session.of("SessionStarted")[0].parent == SESSION


def test_a_file_of_an_older_version_is_known_and_read(tmp_path: Path) -> None:
    file = settled(next(REAL.glob("*.jsonl")), tmp_path)

    session = imported(openclaw, file, OLDER)

    assert importer_of(file) is openclaw
    assert session.rows[:4] == [
        ("user", "What is the weather?"), ("assistant", "I look."), ("tool", "sunny"),
        ("assistant", "It is sunny."),
    ]  # fmt: skip
    assert session.of("AssistantMessageProduced")[0].reasoning == "hm"


def test_a_folder_is_databases_and_files_and_a_session_that_moved_is_read_once(
    database: Path, tmp_path: Path
) -> None:
    sessions = tmp_path / "agents" / "main" / "sessions"
    for name in ("old", SESSION):
        file = OpenClawFile(sessions / f"{name}.jsonl")
        file.begin()
        file.user("u", "Hello")
    (sessions / "old.jsonl").rename(sessions / "old.jsonl.reset.2026-11-30T01-00-00.000Z")
    (tmp_path / "cron.jsonl").write_text('{"ts": 1, "jobId": "x"}\n')

    with TranscriptLog.open("sqlite://") as log:
        done = Log(log).take(openclaw, tmp_path)

    assert importer_of(tmp_path) is openclaw
    assert done.sessions == [SESSION, "old"]


def test_another_database_is_refused_in_a_sentence(tmp_path: Path) -> None:
    run(tmp_path / "openclaw-agent.sqlite", "CREATE TABLE t (x)")

    with pytest.raises(ImportRefused, match="has no table transcript_events"):
        imported(openclaw, tmp_path / "openclaw-agent.sqlite", "s")
