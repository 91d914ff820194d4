"""A thread's list of messages grows, is cut, edited and begun anew; the rows follow it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from checkpoint_databases import Checkpoints, ai, human, message, remove, system, tool
from foreign_imports import Log, imported

from onrecord.transcript.importers import langgraph
from onrecord.transcript.log import TranscriptLog

ONE, TWO, THREE, FOUR = human("1", "one"), ai("2", "two"), human("3", "three"), ai("4", "four")
FIVE, SIX = human("5", "five"), ai("6", "six")


@pytest.fixture
def file(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints.db")


@pytest.fixture
def log() -> Iterator[Log]:
    with TranscriptLog.open("sqlite://") as opened:
        yield Log(opened)


def view(file: Checkpoints) -> list[str]:
    return [text for _, text in imported(langgraph, file.path, "t").view]


def test_what_each_checkpoint_adds_is_said_once(file: Checkpoints) -> None:
    looking = ai("2", "let me look", "c1")
    for size in range(5):
        file.add(*[ONE, looking, tool("r", "c1", "seen"), FOUR][:size])

    session = imported(langgraph, file.path, "t")

    assert [text for _, text in session.rows] == ["one", "let me look", "seen", "four"]
    assert session.of("UserMessageReceived")[0].imported_from == "checkpoints c0002 messages[0]"
    assert session.of("AssistantMessageProduced")[0].tool_calls[0].arguments == '{"at": 1}'
    assert session.found == []


def test_fields_of_an_answer_are_kept(file: Checkpoints) -> None:
    said = ai(
        "2",
        [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "two"}],
        response_metadata={"finish_reason": "stop"},
        usage_metadata={"total_tokens": 3},
        invalid_tool_calls=[{"id": "c9", "name": "look", "args": "{broken", "error": "no JSON"}],
    )
    file.add(ONE, said, tool("r", "c9", "failed", status="error"), system("s", "Be brief."))

    session = imported(langgraph, file.path, "t")

    (event,) = session.of("AssistantMessageProduced")
    assert (event.text, event.reasoning, event.finish_reason) == ("two", "hm", "stop")
    assert event.usage == {"total_tokens": 3}
    assert event.tool_calls[0].arguments == "{broken"
    assert session.of("ToolResultReceived")[0].is_error
    assert session.of("RecoveryApplied")[0].prompt == "Be brief."


def test_a_front_that_was_dropped_is_compacted(file: Checkpoints) -> None:
    file.add(ONE, TWO, THREE, FOUR)
    file.add(THREE, FOUR, FIVE, summary="They counted.")
    file.add(THREE, FOUR, FIVE, SIX, summary="They counted.")

    session = imported(langgraph, file.path, "t")

    assert [text for _, text in session.rows] == ["one", "two", "three", "four", "five", "six"]
    assert [row[0] for row in session.view[:2]] == ["summary", "user"]
    assert session.view[0][1] == "They counted."
    assert [text for _, text in session.view[1:]] == ["three", "four", "five", "six"]


def test_a_system_message_in_the_place_of_the_front_is_its_summary(file: Checkpoints) -> None:
    rules = system("s", "Be brief.")
    file.add(rules, ONE, TWO, THREE, FOUR)
    file.add(rules, system("sum", "They counted to two."), THREE, FOUR)

    session = imported(langgraph, file.path, "t")

    assert session.view[0] == ("summary", "They counted to two.")
    assert [text for _, text in session.view[1:]] == ["three", "four"]


def test_a_front_that_was_dropped_without_a_summary_says_how_much(file: Checkpoints) -> None:
    file.add(ONE, TWO, THREE)
    file.add(THREE)
    file.add(THREE, FOUR)

    assert view(file) == ["[2 earlier messages were removed from the state]", "three", "four"]


def test_half_a_turn_that_was_dropped_stays(file: Checkpoints) -> None:
    file.add(ONE, TWO, THREE, FOUR)
    file.add(FOUR)

    assert view(file) == ["[3 earlier messages were removed from the state]", "three", "four"]


def test_a_system_message_that_is_put_in_front_takes_nothing_back(file: Checkpoints) -> None:
    file.add(ONE, TWO)
    file.add(system("s", "Be brief."), ONE, TWO, THREE)

    session = imported(langgraph, file.path, "t")

    assert [text for _, text in session.rows] == ["one", "two", "three"]
    assert session.of("TranscriptRewound") == session.of("TranscriptCompacted") == []
    assert len(session.of("RecoveryApplied")) == 1


def test_a_write_without_an_id_is_lost_beside_others_without(file: Checkpoints) -> None:
    id = file.add(human(None, "one"))
    file.write(id, [ai(None, "two")])

    assert imported(langgraph, file.path, "t").faults == [("torn-tail", f"writes {id} task 0")]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ([ONE, TWO, THREE, ai("4", "edited")], ["one", "two", "three", "edited"]),
        ([ONE, TWO, human("3", "edited"), FOUR], ["one", "two", "edited", "four"]),
        ([ONE, TWO, FOUR], ["one", "two", "four"]),
        ([ONE, THREE, FOUR], ["one", "three", "four"]),
        ([ONE, TWO], ["one", "two"]),
        ([ONE], ["one"]),
        ([FIVE, SIX], ["five", "six"]),
        ([TWO, ONE], ["two", "one"]),
        ([], []),
    ],
)
def test_the_model_sees_the_list_as_it_was_changed(
    file: Checkpoints, changed: list[object], expected: list[str]
) -> None:
    file.add(ONE, TWO, THREE, FOUR)
    file.add(*changed, source="update")

    session = imported(langgraph, file.path, "t")

    said = [text for _, text in session.view if not text.startswith("[no answer")]
    assert said == expected
    assert [text for _, text in session.rows][:4] == ["one", "two", "three", "four"]


def test_a_message_that_comes_again_after_it_was_removed_is_said_again(file: Checkpoints) -> None:
    file.add(ONE, TWO)
    file.add()
    file.add(ONE, TWO)

    session = imported(langgraph, file.path, "t")

    assert [text for _, text in session.view] == ["one", "two"]
    assert [text for _, text in session.rows] == ["one", "two", "one", "two"]
    assert "duplicate-in-source" not in session.found


def test_a_message_that_stands_twice_is_one_row(file: Checkpoints) -> None:
    id = file.add(ONE, TWO, ONE)

    session = imported(langgraph, file.path, "t")

    assert [text for _, text in session.rows] == ["one", "two"]
    assert session.faults == [("duplicate-in-source", f"checkpoints {id} messages[2]")]


def test_messages_without_ids_are_told_apart_by_where_they_stand(file: Checkpoints) -> None:
    file.add(human(None, "one"), ai(None, "two"))
    file.add(human(None, "one"), ai(None, "two"), human(None, "one"), ai(None, "two"))

    session = imported(langgraph, file.path, "t")

    assert [text for _, text in session.rows] == ["one", "two", "one", "two"]
    assert session.found == []


def test_messages_of_other_forms_and_channels_are_found(file: Checkpoints) -> None:
    chat = message("chat", "ChatMessage", role="user", content="one", id="1")
    file.add(
        thread="chat", parent=None, messages_of_mine=[chat, {"role": "assistant", "content": "two"}]
    )
    sums = msgspec.msgpack.encode({"channel_values": {"total": [1, 2]}})
    file.store("msgpack", sums, thread="none", parent=None)

    assert imported(langgraph, file.path, "chat").rows == [("user", "one"), ("assistant", "two")]
    assert imported(langgraph, file.path, "none").faults == [
        ("unknown-in-source", "checkpoints c0002")
    ]


def test_a_run_from_an_older_checkpoint_takes_the_turns_after_it_back(file: Checkpoints) -> None:
    first = file.add(ONE, TWO)
    file.add(ONE, TWO, THREE, FOUR)
    file.add(ONE, TWO, parent=first, source="fork")
    file.add(ONE, TWO, FIVE)
    file.add(ONE, TWO, FIVE, SIX)

    session = imported(langgraph, file.path, "t")

    assert [text for _, text in session.view] == ["one", "two", "five", "six"]
    assert ("user", "three") in session.rows
    assert session.faults == []


def test_a_parent_that_is_gone_is_a_gap(file: Checkpoints) -> None:
    id = file.add(ONE, TWO, parent="c0000")

    assert imported(langgraph, file.path, "t").faults == [("gap", f"checkpoints {id}")]


def test_a_graph_in_a_thread_is_a_session_of_it(file: Checkpoints) -> None:
    file.add(ONE, TWO)
    file.add(THREE, FOUR, namespace="expert:1", parent=None)
    file.add(namespace="empty:1", parent=None, other=1)

    inner = imported(langgraph, file.path, "t@expert:1")

    assert [event.parent for event in inner.of("SessionStarted")] == ["t"]
    assert [text for _, text in inner.rows] == ["three", "four"]
    with TranscriptLog.open("sqlite://") as opened:
        assert Log(opened).take(langgraph, file.path).sessions == ["t", "t@expert:1"]


def test_what_was_written_and_never_became_a_state_is_told(file: Checkpoints) -> None:
    asked = file.add(ONE)
    file.write(asked, [ai("lost", "shown and lost")])
    file.write(asked, "ValueError('no')", channel="__error__")
    file.add(ONE, parent=asked, source="input")
    taken = file.add(ONE, THREE)
    file.write(taken, [ai(None, "four"), remove("1")])
    file.add(THREE, FOUR, parent=taken, source="update")

    session = imported(langgraph, file.path, "t")

    assert ("torn-tail", f"writes {asked} task 0") in session.faults
    assert [code for code, _ in session.faults].count("torn-tail") == 1
    assert session.of("StreamBroken")[0].reason == "ValueError('no')"


def test_a_write_is_found_again_in_the_next_state(file: Checkpoints, log: Log) -> None:
    asked = file.add(ONE)
    file.write(asked, [TWO])
    log.take(langgraph, file.path)
    file.add(ONE, TWO)

    log.take(langgraph, file.path)

    assert log.session("t").view == [("user", "one"), ("assistant", "two")]
    assert imported(langgraph, file.path, "t").faults == []
    # At the time of the first import it stood in no checkpoint, and that was so.
    assert log.session("t").faults == [("torn-tail", f"writes {asked} task 0")]
