"""The rows of Hermes's messages are turns, in the order of their ids, whatever a cell holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hermes_databases import HermesHome, imported

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import hermes
from onrecord.transcript.importers.running import importer_of


@pytest.fixture
def home(tmp_path: Path) -> HermesHome:
    home = HermesHome(tmp_path / "home")
    home.session(chat_id="c", user_id="u", chat_type="dm", session_key="key", title="A house")
    return home


def test_a_turn_with_a_tool_is_whole_and_says_where_it_stood(home: HermesHome) -> None:
    home.user("Look", platform_message_id="m1")
    home.row("session_meta", None)
    home.assistant("Let me see", "c1", finish_reason="tool_calls", reasoning="hm")
    home.tool("c1", "a house")
    home.assistant("A house", finish_reason="stop")

    told = imported(home.path)

    expected = [
        ("user", "Look"), ("assistant", "Let me see"), ("tool", "a house"), ("assistant", "A house"),
    ]  # fmt: skip
    assert told.rows == expected
    assert told.found == []
    (started,) = told.of("SessionStarted")
    assert (started.platform, started.chat, started.user) == ("telegram", "c", "u")
    (asked,) = told.of("UserMessageReceived")
    assert (asked.message, asked.sender, asked.source.message) == ("1", "u", "m1")
    assert asked.imported_from == "messages 1"
    assert asked.writer == "import:hermes"
    first, _ = told.of("AssistantMessageProduced")
    assert (first.reasoning, first.finish_reason) == ("hm", "tool_calls")
    assert told.imported.messages == 4


def test_the_order_is_that_of_the_ids_whatever_the_clock_said(home: HermesHome) -> None:
    home.user("one", timestamp=9.0)
    home.assistant("two", timestamp=5.0)
    home.user("three", timestamp=5.0)
    home.assistant("four", timestamp=5.0)

    texts = [text for _, text in imported(home.path).rows]

    assert texts == ["one", "two", "three", "four"]


def test_sessions_are_read_apart_though_their_rows_are_mixed(home: HermesHome) -> None:
    home.session("other", parent_session_id="s")
    for n in range(1_200):  # more than are read at once
        home.user(f"q{n}", session="s" if n % 7 else "other")
        home.assistant(f"a{n}", session="s" if n % 7 else "other")

    one, other = imported(home.path), imported(home.path, session="other")

    assert len(one.rows) + len(other.rows) == 2_400
    assert other.rows[:3] == [("user", "q0"), ("assistant", "a0"), ("user", "q7")]
    assert other.of("SessionStarted")[0].parent == "s"


def test_content_of_several_parts_is_its_text(home: HermesHome) -> None:
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {}}]
    home.user("\0json:" + json.dumps(parts))
    home.assistant("A house")

    told = imported(home.path)

    assert told.rows[0] == ("user", "What is this?")
    assert told.of("UserMessageReceived")[0].parts == parts


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        (7, "7"),
        (b"caf\xc3\xa9", "café"),
        (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}"),
        ("\0json:[broken", "[broken"),
    ],
)
def test_content_that_is_no_text_is_read_as_far_as_it_can_be(
    home: HermesHome, content: object, text: str
) -> None:
    home.user("Go on")
    home.assistant(content)
    home.assistant("That's all")

    told = imported(home.path)

    said = [event.text for event in told.of("AssistantMessageProduced")]
    assert said == [text, "That's all"]
    faulty = ("malformed-in-source", "messages 2") in told.found
    assert faulty == (content in (b"caf\xe9", "\0json:[broken"))


def test_a_text_that_is_no_utf_8_is_told_with_its_place(home: HermesHome) -> None:
    home.user("Go on")
    home.run(
        "INSERT INTO messages (session_id, role, content, timestamp)"
        " VALUES ('s', 'assistant', CAST(x'636166e9' AS TEXT), 5)"
    )
    home.user("And?")
    home.assistant("That's all")

    told = imported(home.path)

    assert ("assistant", "caf\N{REPLACEMENT CHARACTER}") in told.rows
    assert told.rows[-1] == ("assistant", "That's all")
    assert ("malformed-in-source", "messages 2") in told.found


def test_broken_tool_calls_are_told_and_the_words_kept(home: HermesHome) -> None:
    home.user("Look")
    home.assistant("Let me see", tool_calls='[{"id": "c1", "func')

    told = imported(home.path)

    assert told.rows[1] == ("assistant", "Let me see")
    assert ("unreadable-in-source", "messages 2") in told.found


def test_calls_without_an_id_and_with_arguments_as_a_map_are_calls(home: HermesHome) -> None:
    home.user("Look")
    home.assistant("", tool_calls='[{"name": "look", "arguments": {"at": 1}}]')

    (produced,) = imported(home.path).of("AssistantMessageProduced")

    (call,) = produced.tool_calls
    assert (call.id, call.name, call.arguments) == ("call:messages 2", "look", '{"at":1}')


@pytest.mark.parametrize("disposition", ["none", "unknown"])
def test_a_tool_that_may_not_have_run_is_an_error(home: HermesHome, disposition: str) -> None:
    home.user("Look")
    home.assistant("", "c1")
    home.tool("c1", "[not run]", effect_disposition=disposition)

    (result,) = imported(home.path).of("ToolResultReceived")

    assert result.is_error


def test_a_row_without_a_time_and_one_of_an_unknown_role_are_told(home: HermesHome) -> None:
    home.user("Go on", timestamp="yesterday")
    home.row("oracle", "42")
    home.assistant("Well")

    told = imported(home.path)

    assert [text for _, text in told.rows] == ["Go on", "Well"]
    assert ("unreadable-in-source", "messages 1") in told.found
    assert ("unknown-in-source", "messages 2") in told.found


def test_what_was_only_observed_joins_the_turn(home: HermesHome) -> None:
    home.user("Look")
    home.user("[Bob] nice weather", observed=1)
    home.assistant("A house")

    told = imported(home.path)

    assert ("user", "[Bob] nice weather") in told.rows
    assert len({event.turn for event in told.of("UserMessageReceived")}) == 1
    assert told.found == []


def test_the_end_of_a_session_has_its_reason(home: HermesHome) -> None:
    home.user("Bye")
    home.assistant("Bye")
    home.run("UPDATE sessions SET ended_at = ?, end_reason = 'session_reset'", home.now)

    (ended,) = imported(home.path).of("SessionEnded")

    assert ended.reason == "session_reset"


def test_messages_of_a_session_without_a_row_are_read(home: HermesHome) -> None:
    home.user("Look", session="stray")
    home.assistant("A house", session="stray")

    told = imported(home.path, session="stray")

    assert told.rows == [("user", "Look"), ("assistant", "A house")]
    assert told.found == [("gap", "sessions stray")]


def test_a_message_of_the_platform_that_is_stored_twice_is_one(home: HermesHome) -> None:
    home.user("Look", platform_message_id="m1")
    home.assistant("A house")
    home.user("Look", platform_message_id="m1")

    told = imported(home.path)

    assert told.rows == [("user", "Look"), ("assistant", "A house")]
    assert ("duplicate-in-source", "messages 3") in told.found


def test_an_older_schema_is_read(tmp_path: Path) -> None:
    home = HermesHome(tmp_path / "old", "hermes-schema-6")
    home.session()
    home.user("Look")
    home.assistant("Let me see", "c1")
    home.tool("c1", "a house")
    home.assistant("A house")
    home.came_in("Look", at=home.now)

    told = imported(home.path)

    assert [text for _, text in told.rows] == ["Look", "Let me see", "a house", "A house"]
    assert told.found == []


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE messages_fts",
        "DROP TABLE delivery_obligations",
        "DELETE FROM sqlite_master WHERE name LIKE 'messages_fts%'",
        "UPDATE sqlite_master SET rootpage = 999999 WHERE name = 'messages_fts_data'",
        "INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE name = 'messages_fts'",
    ],
)
def test_tables_that_are_gone_or_broken_stop_nothing(home: HermesHome, damage: str) -> None:
    home.user("Look")
    home.assistant("A house")
    home.run("PRAGMA writable_schema=ON")
    home.run(damage)
    home.database.close()

    told = imported(home.path)

    assert told.rows == [("user", "Look"), ("assistant", "A house")]
    assert told.found == []


def test_it_is_found_by_looking_in_a_folder_or_under_another_name(home: HermesHome) -> None:
    home.database.close()
    copy = home.path / "backup.db"
    copy.write_bytes((home.path / "state.db").read_bytes())

    for path in (home.path, home.path / "state.db", copy):
        assert importer_of(path) is hermes


def test_a_database_of_something_else_is_refused_with_a_reason(tmp_path: Path) -> None:
    from onrecord.transcript.storage import dbapi

    other = tmp_path / "state.db"
    connection = dbapi.connect(str(other))
    connection.execute("CREATE TABLE sessions (id)")
    connection.close()

    with pytest.raises(ImportRefused, match=r"no messages\.id, messages\.role"):
        imported(tmp_path)


def test_rows_of_a_damaged_page_are_told_and_the_others_read(home: HermesHome) -> None:
    for trigger in ("messages_fts_insert", "messages_fts_trigram_insert"):
        home.run(f"DROP TRIGGER {trigger}")
    for n in range(200):
        home.user(f"question {n} " + "q" * 200)
        home.assistant(f"answer {n} " + "a" * 200)
    home.run("PRAGMA wal_checkpoint(TRUNCATE)")
    size = home.database.execute("PRAGMA page_size").fetchone()[0]
    home.database.close()
    path = home.path / "state.db"
    data = bytearray(path.read_bytes())
    at = data.index(b"answer 100 ") // size
    data[at * size : (at + 1) * size] = bytes(size)
    path.write_bytes(data)

    told = imported(home.path)

    lost = [place for code, place in told.found if code == "unreadable-in-source"]
    assert 0 < len(lost) < 40
    assert "messages 202" in lost
    assert {text.split(" q")[0] for role, text in told.rows if role == "user"} >= {
        "question 0", "question 199",
    }  # fmt: skip
