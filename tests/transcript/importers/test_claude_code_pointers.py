"""Parent pointers only tell what Claude Code shows: where it went back, and which lines it lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_imports import Session, imported
from session_lines import ClaudeFile, use

from onrecord.transcript.importers import claude_code


@pytest.fixture
def file(tmp_path: Path) -> ClaudeFile:
    return ClaudeFile(tmp_path / "s.jsonl")


def read(file: ClaudeFile) -> Session:
    return imported(claude_code, file.path, "s")


def turn(file: ClaudeFile, name: str, parent: str | None = "") -> None:
    """Write a question and its answer: `name`-q, `name`-a."""
    file.user(f"{name}-q", f"ask {name}", parent)
    file.assistant(f"{name}-a", f"say {name}")


def test_results_that_hang_on_different_lines_of_a_response_lose_nothing(file: ClaudeFile) -> None:
    file.user("q", "Look twice")
    file.assistant("a1", use("c1"), message="m", stop="tool_use")
    file.assistant("a2", use("c2"), message="m", stop="tool_use")
    file.result("r2", "c2", "a2")
    file.result("r1", "c1", "a1")  # beside the other
    file.assistant("b", "Seen.", parent="r1")

    session = read(file)

    assert session.faults == []
    assert [role for role, _ in session.view] == ["user", "assistant", "tool", "tool", "assistant"]


@pytest.mark.parametrize("type", ["progress", "attachment", "system"])
def test_lines_that_are_no_messages_fork_nothing(file: ClaudeFile, type: str) -> None:
    turn(file, "one")
    file.add(
        type, "x1", attachment={"type": "date"}, data={"type": "hook"}, subtype="informational"
    )
    file.add(type, "x2", "one-a", attachment={"type": "date"}, subtype="turn_duration")
    file.user("q", "go on", "x1")  # the chain leaves x2 out
    file.assistant("a", "yes")

    session = read(file)

    assert session.faults == []
    assert len(session.view) == 4


def test_a_message_that_goes_on_from_an_older_one_takes_back_what_is_between(
    file: ClaudeFile,
) -> None:
    for name in ("one", "two", "three"):
        turn(file, name)
    turn(file, "again", "one-a")

    session = read(file)

    assert [text for _, text in session.view] == ["ask one", "say one", "ask again", "say again"]
    assert [text for _, text in session.rows] == [
        "ask one", "say one", "ask two", "say two", "ask three", "say three", "ask again", "say again",
    ]  # fmt: skip
    assert session.faults == []


def test_the_first_message_of_all_can_be_said_anew(file: ClaudeFile) -> None:
    turn(file, "one")
    turn(file, "better", None)

    assert [text for _, text in read(file).view] == ["ask better", "say better"]


def test_a_leaf_that_is_named_is_where_the_user_went_back_to(file: ClaudeFile) -> None:
    turn(file, "one")
    turn(file, "two")
    file.line({"type": "last-prompt", "leafUuid": "two-a", "sessionId": "s"})  # every turn ends so
    file.line({"type": "last-prompt", "leafUuid": "one-a", "explicit": True, "sessionId": "s"})

    assert [text for _, text in read(file).view] == ["ask one", "say one"]


def test_rows_in_a_turn_that_the_chain_passes_by_are_hidden(file: ClaudeFile) -> None:
    file.user("q", "Look")
    file.assistant("a", use("c1"), stop="tool_use")
    file.result("r", "c1")
    file.assistant("lost", "A long answer.")
    file.user("q2", "And?", "r")  # goes on from the result, not from the answer
    file.assistant("a2", "Which answer?")

    session = read(file)

    assert session.faults == [("hidden-in-source", "s.jsonl:5")]
    assert "from before line 4 and doesn't show 1 step" in session.of("SourceFaultFound")[0].detail
    assert ("assistant", "A long answer.") in session.view
    assert not session.of("TranscriptRewound")


def test_an_answer_that_passes_a_message_by_hides_it(file: ClaudeFile) -> None:
    turn(file, "one")
    file.user("q", "Hello?")
    file.assistant("a", "Something else.", parent="one-a")

    assert read(file).faults == [("hidden-in-source", "s.jsonl:4")]


def test_a_parent_that_is_not_there_is_a_gap(file: ClaudeFile) -> None:
    turn(file, "one")
    turn(file, "two", "nowhere")

    session = read(file)

    assert session.faults == [("gap", "s.jsonl:3")]
    assert len(session.view) == 4


def test_going_on_from_a_branch_that_was_left_shows_it_again(file: ClaudeFile) -> None:
    turn(file, "one")
    turn(file, "left")
    turn(file, "right", "one-a")
    turn(file, "leftmore", "left-a")  # as of a second process that has the session open

    session = read(file)

    assert [event.to_turn for event in session.of("TranscriptRewound")] == ["left-q", "right-q"]
    assert ("user", "ask leftmore") in session.view


def test_going_back_before_a_compaction_undoes_it(file: ClaudeFile) -> None:
    turn(file, "one")
    turn(file, "two")
    compact(file)
    turn(file, "after")
    turn(file, "again", "one-a")

    session = read(file)

    assert [text for _, text in session.view] == ["ask one", "say one", "ask again", "say again"]


def test_what_a_compaction_keeps_hangs_on_its_summary(file: ClaudeFile) -> None:
    turn(file, "one")
    turn(file, "two")
    compact(file, kept=["two-q", "two-a"])
    turn(file, "after", "two-a")  # a line that was kept

    session = read(file)

    assert session.faults == []
    assert [text for _, text in session.view] == [
        "In short.", "ask two", "say two", "ask after", "say after",
    ]  # fmt: skip


def test_a_compaction_in_the_middle_of_a_turn_leaves_that_turn_whole(file: ClaudeFile) -> None:
    turn(file, "one")
    file.user("q", "Look")
    file.assistant("a", use("c1"), stop="tool_use")
    file.result("r", "c1")
    compact(file)
    file.assistant("b", "Seen.")

    session = read(file)

    assert [role for role, _ in session.view] == [
        "summary",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def compact(file: ClaudeFile, kept: list[str] | None = None) -> None:
    """Write what a compaction writes."""
    last = file.last
    meta = (
        {"trigger": "auto", "preservedMessages": {"uuids": kept, "allUuids": kept}} if kept else {}
    )
    file.add(
        "system", f"boundary-{last}", None, subtype="compact_boundary", logicalParentUuid=last,
        compactMetadata=meta,
    )  # fmt: skip
    file.user(f"summary-{last}", "In short.", isCompactSummary=True)
