"""What can't be read in a file of the OpenAI Agents SDK is told with its row, and the rest is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents_databases import AgentsDatabase
from foreign_imports import Log, imported

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import openai_agents, openai_tables
from onrecord.transcript.importers.running import importer_of
from onrecord.transcript.log import TranscriptLog


@pytest.fixture
def file(tmp_path: Path) -> AgentsDatabase:
    return AgentsDatabase(tmp_path / "sessions.db")


@pytest.mark.parametrize(
    ("stored", "code"),
    [
        ('{"role": "user", "cont', "unreadable-in-source"),
        (b'{"role": "user", "content": "caf\xe9"}', "unreadable-in-source"),
        ("[" * 100_000, "unreadable-in-source"),
        ('["a list"]', "unreadable-in-source"),
        ("", "unreadable-in-source"),
        ('{"type": "of the future", "role": "user", "content": "?"}', "unknown-in-source"),
        ('{"content": "of nobody"}', "unknown-in-source"),
        ('{"role": "narrator", "content": "?"}', "unknown-in-source"),
        ('{"__enc__": 1, "v": 1, "kid": "k", "payload": "x"}', "content-unrecoverable"),
        ('{"type": "compaction", "encrypted_content": "x"}', "content-unrecoverable"),
        ('{"type": "item_reference", "id": "msg_1"}', "content-unrecoverable"),
    ],
)  # fmt: skip
def test_a_message_that_cannot_be_read_is_a_fault_at_its_row(
    file: AgentsDatabase, stored: Any, code: str
) -> None:
    file.user("one")
    id = file.add(stored)
    file.assistant("two")

    session = imported(openai_agents, file.path, "s")

    assert session.rows == [("user", "one"), ("assistant", "two")]
    assert session.faults == [(code, f"agent_messages {id}")]
    assert code in session.found


def test_a_message_that_is_too_large_is_not_read(
    file: AgentsDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_tables, "ITEM_LIMIT", 1_000)
    file.user("one")
    file.user("x" * 1_000)
    file.assistant("two")

    session = imported(openai_agents, file.path, "s")

    assert session.faults == [("unreadable-in-source", "agent_messages 2")]
    assert session.rows == [("user", "one"), ("assistant", "two")]


def test_an_item_that_is_stored_twice_is_one_row(file: AgentsDatabase) -> None:
    part = {"type": "output_text", "text": "Yes."}
    said = {"type": "message", "role": "assistant", "id": "msg_1", "content": [part]}
    file.user("one")
    file.add(said)
    file.add(said)
    file.call("c1")
    file.call("c1")
    file.output("c1")
    file.output("c1")

    session = imported(openai_agents, file.path, "s")

    assert session.rows == [("user", "one"), ("assistant", "Yes."), ("tool", "seen")]
    assert [place for code, place in session.faults if code == "duplicate-in-source"] == [
        "agent_messages 3", "agent_messages 5", "agent_messages 7",
    ]  # fmt: skip


def test_a_result_without_its_call_is_told(file: AgentsDatabase) -> None:
    file.user("one")
    file.output("of nothing")
    file.assistant("two")

    session = imported(openai_agents, file.path, "s")

    assert ("alternation-broken-in-source", "agent_messages 2") in session.faults
    assert "orphan-tool-result" in session.found


def test_half_of_an_append_is_told_and_read(tmp_path: Path) -> None:
    file = AgentsDatabase(tmp_path / "sessions.db", structured=True)
    file.user("one")
    file.place(99)
    lost = file.assistant("without a place")
    file.run("DELETE FROM message_structure WHERE message_id = ?", lost)

    session = imported(openai_agents, file.path, "s")

    assert session.rows == [("user", "one"), ("assistant", "without a place")]
    assert session.faults == [
        ("content-unrecoverable", "message_structure 2"),
        ("hidden-in-source", f"agent_messages {lost}"),
    ]


def test_branches_are_sessions_and_share_what_came_before(tmp_path: Path) -> None:
    file = AgentsDatabase(tmp_path / "sessions.db", structured=True)
    shared = [file.user("one"), file.assistant("two")]
    file.user("by train")
    for id in shared:
        file.place(id, branch="car")
    file.user("by car", branch="car")
    file.assistant("so be it", branch="car")
    file.user("another", session="plain")

    main, car = (imported(openai_agents, file.path, name) for name in ("s", "s@car"))

    assert main.rows == [("user", "one"), ("assistant", "two"), ("user", "by train")]
    assert car.rows == [*main.rows[:2], ("user", "by car"), ("assistant", "so be it")]
    assert [event.parent for event in car.of("SessionStarted")] == ["s"]
    assert imported(openai_agents, file.path, "plain").rows == [("user", "another")]


def test_a_broken_page_ends_a_session_and_no_import(file: AgentsDatabase) -> None:
    for number in range(200):
        file.user(f"{number} " + "x" * 500)
        file.assistant(f"{number} " + "y" * 500)
    file.database.close()
    data = bytearray(file.path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = b"\xff" * 4096
    file.path.write_bytes(data)

    session = imported(openai_agents, file.path, "s")

    assert session.rows
    assert session.faults == [("unreadable-in-source", "agent_messages")]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\0" * 4096, b"no database"])
def test_a_file_that_is_none_of_these_gives_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a file.db"
    path.write_bytes(content)

    assert importer_of(path) is None
    with pytest.raises(ImportRefused, match=r"a file\.db"), openai_agents.open_source(path):
        pass


def test_tables_of_other_names_are_found_and_named(tmp_path: Path) -> None:
    file = AgentsDatabase(tmp_path / "sessions.db")
    file.user("one")
    file.run('ALTER TABLE agent_messages RENAME TO "it\'s ""mine"""')

    session = imported(openai_agents, file.path, "s")

    assert session.of("UserMessageReceived")[0].imported_from == 'it\'s "mine" 1'
    assert importer_of(file.path) is not None


def test_text_that_is_no_unicode_stays_what_it_is(file: AgentsDatabase) -> None:
    file.add('{"role": "user", "content": "\\ud800 and \\u0000"}')
    file.run(
        "UPDATE agent_messages SET created_at = 'yesterday', session_id = CAST(x'66ff' AS TEXT)"
    )

    session = imported(openai_agents, file.path, "f\N{REPLACEMENT CHARACTER}")

    assert session.rows == [("user", "\N{REPLACEMENT CHARACTER} and \0")]


def test_a_name_that_no_session_can_have_stops_no_other(file: AgentsDatabase) -> None:
    for session in ("a" * 5000, "a" * 4999 + "b", "", "s"):
        file.user(f"in {session[-1:]}", session=session)

    with TranscriptLog.open("sqlite://") as log:
        into = Log(log)
        names = into.take(openai_agents, file.path).sessions
        assert [into.session(name).rows for name in names] == [
            [("user", "in ")], [("user", "in a")], [("user", "in b")], [("user", "in s")],
        ]  # fmt: skip
        assert into.take(openai_agents, file.path).added == 0


def test_rows_of_no_session_stop_nothing(file: AgentsDatabase) -> None:
    file.user("one")
    file.run(
        "CREATE TABLE chat AS SELECT id, session_id, message_data, created_at FROM agent_messages"
    )
    file.run("INSERT INTO chat SELECT 9, NULL, message_data, created_at FROM agent_messages")

    assert imported(openai_agents, file.path, "chat/s").rows == [("user", "one")]
    unnamed = imported(openai_agents, file.path, "unnamed")
    assert unnamed.faults == [("unreadable-in-source", "chat")]
