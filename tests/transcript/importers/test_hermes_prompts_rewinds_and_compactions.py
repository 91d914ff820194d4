"""What Hermes writes in the user's name, takes back or summarises is not what somebody said."""

from __future__ import annotations

from pathlib import Path

import pytest
from hermes_databases import SUMMARY, HermesHome, imported

from onrecord.transcript.importers.hermes.compaction import summary_of
from onrecord.transcript.importers.hermes.prompts import PROMPTS, kind_of, without_notes

MERGED = (
    "[PRIOR CONTEXT — for reference only; not a new message]\n{}\n\n"
    "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]\n\n" + SUMMARY
)
SAID = "They spoke of a house."


@pytest.fixture
def home(tmp_path: Path) -> HermesHome:
    home = HermesHome(tmp_path / "home")
    home.session()
    return home


@pytest.mark.parametrize("start", [start for start, _ in PROMPTS])
def test_a_prompt_of_hermes_is_no_message_of_the_user(home: HermesHome, start: str) -> None:
    home.user("A poem, please")
    home.assistant("Roses are", finish_reason="length")
    home.user(start + "and so on")
    home.assistant(" red")

    told = imported(home.path)

    assert told.rows == [
        ("user", "A poem, please"), ("assistant", "Roses are"), ("assistant", " red"),
    ]  # fmt: skip
    assert told.found == [("synthetic-in-source", "messages 3")]


def test_what_only_looks_like_a_prompt_is_the_users() -> None:
    for text in (
        "",
        "[System] is broken",
        "You just executed",
        "Review the conversation above, Bob",
    ):
        assert kind_of(text) == ""


def test_a_note_before_the_users_words_is_taken_off(home: HermesHome) -> None:
    note = "[System note: Your previous turn in this session was interrupted.]"
    home.user(f"{note}\n\nGo on, please")
    home.assistant("I do")

    told = imported(home.path)

    assert told.rows == [("user", "Go on, please"), ("assistant", "I do")]
    assert told.found == [("synthetic-in-source", "messages 1")]
    assert without_notes(f"{note}{note} x") == ("x", True)


def test_an_empty_message_of_which_the_model_got_a_note_is_a_prompt(home: HermesHome) -> None:
    home.user("Go on")
    home.assistant("I do")
    home.user("", api_content="[System note: The previous turn was interrupted by a restart.]")
    home.assistant("I am back")

    told = imported(home.path)

    assert ("user", "") not in told.rows
    assert told.found == [("synthetic-in-source", "messages 3")]


def test_what_was_taken_back_was_said_and_isnt_shown(home: HermesHome) -> None:
    home.user("one")
    home.assistant("eins")
    home.user("two", active=0)
    home.assistant("zwei", active=0)
    home.user("three")
    home.assistant("drei")

    told = imported(home.path)

    assert [text for _, text in told.rows] == ["one", "eins", "two", "zwei", "three", "drei"]
    assert [text for _, text in told.view] == ["one", "eins", "three", "drei"]
    assert told.found == []


def test_a_question_that_was_taken_back_at_the_end_leaves_no_finding(home: HermesHome) -> None:
    home.user("one")
    home.assistant("eins")
    home.user("two", active=0)

    told = imported(home.path)

    assert [text for _, text in told.view] == ["one", "eins"]
    assert told.found == []


def talk(home: HermesHome, *texts: str) -> None:
    for n, text in enumerate(texts):
        home.row("assistant" if n % 2 else "user", text)


@pytest.mark.parametrize("times", [True, False])
def test_a_compaction_in_place_is_a_summary_and_its_copies_are_no_messages(
    home: HermesHome, times: bool
) -> None:
    talk(home, "one", "eins", "two", "zwei", "three", "drei", "one", "eins")
    home.compacts([1, 2], [6, 7, 8], role="user", times=times)  # from the middle of a turn on
    talk(home, "one", "fünf")  # not a copy, though it was said before

    told = imported(home.path)

    texts = ["one", "eins", "two", "zwei", "three", "drei", "one", "eins", "one", "fünf"]
    assert [text for _, text in told.rows] == texts
    assert told.view == [
        ("summary", SAID), ("user", "three"), ("assistant", "drei"), ("user", "one"),
        ("assistant", "eins"), ("user", "one"), ("assistant", "fünf"),
    ]  # fmt: skip
    assert told.found == []


def test_a_rewind_to_a_copy_takes_back_what_it_is_a_copy_of(home: HermesHome) -> None:
    talk(home, "one", "eins", "two", "zwei", "three", "drei")
    home.compacts([], [3, 4, 5, 6])
    home.run("UPDATE messages SET active = 0 WHERE id >= 10 AND active = 1")
    talk(home, "four", "vier")

    told = imported(home.path)

    assert [text for _, text in told.rows] == [
        "one", "eins", "two", "zwei", "three", "drei", "four", "vier",
    ]  # fmt: skip
    assert [text for _, text in told.view] == [SAID, "two", "zwei", "four", "vier"]
    assert told.found == []


def test_a_second_compaction_knows_the_copies_of_the_first(home: HermesHome) -> None:
    talk(home, "one", "eins", "two", "zwei")
    home.compacts([], [3, 4])  # rows 5 to 7
    talk(home, "three", "drei")  # rows 8 and 9
    home.compacts([], [7, 8, 9], SUMMARY.replace("a house", "two houses"))
    home.user("four")

    told = imported(home.path)

    assert [text for _, text in told.rows] == [
        "one",
        "eins",
        "two",
        "zwei",
        "three",
        "drei",
        "four",
    ]
    assert told.view == [
        ("summary", "They spoke of two houses."), ("user", "two"), ("assistant", "zwei"),
        ("user", "three"), ("assistant", "drei"), ("user", "four"),
    ]  # fmt: skip
    assert told.found == []


def test_a_compaction_in_the_middle_of_a_turn_keeps_the_turn(home: HermesHome) -> None:
    talk(home, "one", "eins", "look")
    home.assistant("", "c1")
    home.tool("c1", "a very long result")
    home.compacts([], [3, 4, 5])
    home.run("UPDATE messages SET content = '[shortened]' WHERE role = 'tool' AND active = 1")
    home.user("[Your active task list was preserved across context compression]\n- one")
    home.assistant("A house")

    told = imported(home.path)

    assert told.view == [
        ("summary", SAID), ("user", "look"), ("assistant", ""), ("tool", "a very long result"),
        ("assistant", "A house"),
    ]  # fmt: skip
    assert told.found == [("synthetic-in-source", "messages 10")]


def test_a_summary_that_was_merged_into_a_message_is_taken_out_of_it(home: HermesHome) -> None:
    talk(home, "one", "eins", "two", "zwei")
    home.compacts([], [3, 4], "")
    home.run("UPDATE messages SET content = ? WHERE id = 5", MERGED.format("two"))
    home.user("three")

    told = imported(home.path)

    assert [text for _, text in told.rows] == ["one", "eins", "two", "zwei", "three"]
    assert told.view[:2] == [("summary", SAID), ("user", "two")]
    assert told.found == []


def test_a_session_that_goes_on_from_a_compacted_one_begins_with_the_summary(
    home: HermesHome,
) -> None:
    rows = [("user", "one", 5.0), ("assistant", "eins", 6.0), ("user", "two", 7.0)]
    for role, text, at in rows:
        home.row(role, text, timestamp=at)
    home.run("UPDATE sessions SET ended_at = 8, end_reason = 'compression'")
    home.session("child", parent_session_id="s")
    home.row("user", "one", session="child", timestamp=5.0)
    home.user(SUMMARY, session="child")
    home.row("user", "two", session="child", timestamp=7.0)
    home.assistant("zwei", session="child")
    home.user("three", session="child", platform_message_id="m4")

    told = imported(home.path, session="child")

    assert told.view == [("summary", SAID), ("assistant", "zwei"), ("user", "three")]
    assert told.of("UserMessageReceived")[0].source.message == "m4"


def test_a_child_of_a_session_that_is_gone_keeps_the_copies(home: HermesHome) -> None:
    home.session("child", parent_session_id="gone")
    home.row("user", "one", session="child", timestamp=5.0, platform_message_id="m1")
    home.user(SUMMARY, session="child")
    home.assistant("zwei", session="child")

    told = imported(home.path, session="child")

    assert told.view == [("summary", SAID), ("user", "one"), ("assistant", "zwei")]
    assert told.of("UserMessageReceived")[0].source is None  # the message itself was the parent's


def test_rows_that_are_stored_again_before_a_compaction_are_one_fault(home: HermesHome) -> None:
    rows = [
        ("user", "one", 5.0),
        ("assistant", "eins", 6.0),
        ("user", "two", 7.0),
        ("assistant", "zwei", 7.5),
    ]
    for role, text, at in (*rows, *rows):
        home.row(role, text, timestamp=at)
    home.run("UPDATE sessions SET ended_at = 8, end_reason = 'compression'")

    told = imported(home.path)

    assert [text for _, text in told.rows] == ["one", "eins", "two", "zwei"]
    assert told.found == [("duplicate-in-source", "messages 5")]


def test_what_hermes_says_in_the_models_name_is_no_answer(home: HermesHome) -> None:
    home.user("Look")
    home.assistant("", "c1")
    home.tool("c1", "[Command interrupted]")
    home.assistant("Operation interrupted.")
    home.user("And now?")
    home.assistant("(empty)", finish_reason="stop")

    told = imported(home.path)

    assert "Operation interrupted." not in [text for _, text in told.rows]
    assert "(empty)" not in [text for _, text in told.rows]
    assert told.of("TurnFinalized")[0].outcome == "interrupted"


@pytest.mark.parametrize("text", [SUMMARY, MERGED.format("x"), f"[CONTEXT SUMMARY]: {SAID}"])
def test_a_summary_is_read_without_what_is_wrapped_around_it(text: str) -> None:
    assert summary_of(text) == SAID
