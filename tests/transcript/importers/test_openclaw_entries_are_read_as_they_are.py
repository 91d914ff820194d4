"""Which entries OpenClaw shows, what its program wrote itself, and what is wrong with a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from foreign_imports import Log, Session, imported
from session_lines import BEGAN, FIXTURES, OpenClawFile, called

from onrecord.transcript.importers import openclaw
from onrecord.transcript.log import TranscriptLog

REAL = next(FIXTURES.joinpath("openclaw").glob("*.jsonl"))


@pytest.fixture
def file(tmp_path: Path) -> OpenClawFile:
    file = OpenClawFile(tmp_path / "s.jsonl")
    file.begin()
    return file


def read(file: OpenClawFile) -> Session:
    return imported(openclaw, file.path, "s")


def turns(file: OpenClawFile, *names: str, parent: str | None = "") -> None:
    for name in names:
        file.user(f"{name}-q", f"ask {name}", parent)
        file.assistant(f"{name}-a", f"say {name}")
        parent = ""


def texts(rows: list[tuple[str, str]]) -> list[str]:
    return [text for _, text in rows]


def test_entries_that_are_no_messages_hide_nothing(file: OpenClawFile) -> None:
    file.entry("model_change", "m", provider="p", modelId="m")
    turns(file, "one")
    file.entry("custom", "c", customType="x", data={})
    file.entry("label", "l", "one-a", targetId="one-q", label="here")
    turns(file, "two", parent="c")

    session = read(file)

    assert session.faults == []
    assert len(session.view) == 4


def test_an_entry_that_goes_on_from_an_older_one_hides_what_is_between(file: OpenClawFile) -> None:
    turns(file, "one")
    file.user("lost-q", "ask lost")
    turns(file, "two", parent="one-a")

    session = read(file)

    assert ("hidden-in-source", "s.jsonl:5") in session.faults
    assert "ask lost" in texts(session.view)  # nobody took it back
    assert not session.of("TranscriptRewound")


def test_a_leaf_is_where_the_program_was_told_to_go_back_to(file: OpenClawFile) -> None:
    turns(file, "one", "two")
    file.entry("leaf", "l", targetId="one-a")
    turns(file, "three")

    session = read(file)

    assert texts(session.view) == ["ask one", "say one", "ask three", "say three"]
    assert session.faults == []


def test_a_branch_that_was_left_with_a_summary_is_taken_back(file: OpenClawFile) -> None:
    turns(file, "one", "two")
    file.entry("branch_summary", "b", "one-a", fromId="one-a", summary="They spoke of two.")
    turns(file, "three")

    session = read(file)

    assert texts(session.view) == ["ask one", "say one", "ask three", "say three"]
    assert [event.prompt for event in session.of("RecoveryApplied")] == ["They spoke of two."]


def test_an_entry_at_the_side_moves_nothing(file: OpenClawFile) -> None:
    turns(file, "one")
    file.message("side", "custom", "for the screen", appendMode="side", customType="x")
    turns(file, "two", parent="one-a")

    assert read(file).faults == []


def test_a_parent_that_is_not_there_is_a_gap(file: OpenClawFile) -> None:
    turns(file, "one")
    turns(file, "two", parent="nowhere")

    assert read(file).faults == [("gap", "s.jsonl:4")]


def test_a_compaction_keeps_the_turns_from_the_one_that_it_names(file: OpenClawFile) -> None:
    turns(file, "one", "two", "three")
    file.entry("compaction", "c", summary="In short.", firstKeptEntryId="three-q", tokensBefore=9)
    turns(file, "four")

    assert texts(read(file).view) == ["In short.", "ask three", "say three", "ask four", "say four"]


def test_a_reset_leaves_the_model_what_comes_after_it(file: OpenClawFile) -> None:
    turns(file, "one", "two")
    file.entry("reset", "r", reason="daily")
    turns(file, "three")

    session = read(file)

    assert texts(session.view) == ["[the conversation was reset (daily)]", "ask three", "say three"]
    assert len(session.rows) == 6


@pytest.mark.parametrize("kind", ["inter_session", "internal_system"])
def test_a_message_of_another_session_is_not_the_users(file: OpenClawFile, kind: str) -> None:
    turns(file, "one")
    file.user("p", "A task is done", provenance={"kind": kind, "sourceTool": "sessions_send"})
    file.assistant("a", [], stopReason="aborted")

    session = read(file)

    assert texts(session.rows) == ["ask one", "say one"]
    assert [event.outcome for event in session.of("TurnFinalized")] == ["completed"]
    assert session.faults == []


def test_a_heartbeat_that_only_its_words_tell_is_a_fault(file: OpenClawFile) -> None:
    turns(file, "one")
    file.user("h", "Read HEARTBEAT.md if it exists (workspace context). Follow it strictly.")
    file.assistant("a", "HEARTBEAT_OK")

    session = read(file)

    assert session.faults == [("synthetic-in-source", "s.jsonl:4")]
    assert "Read HEARTBEAT.md" not in "".join(texts(session.rows))


def test_an_error_is_no_answer_and_an_abort_is_an_outcome(file: OpenClawFile) -> None:
    file.user("u", "Hello")
    file.assistant("e", [], stopReason="error", errorMessage="overloaded")
    file.assistant("a", "Hi th", stopReason="aborted")

    session = read(file)

    assert [event.reason for event in session.of("StreamBroken")] == ["overloaded"]
    assert session.of("TurnFinalized")[0].outcome == "interrupted"
    assert texts(session.rows) == ["Hello", "Hi th"]


def test_the_first_version_had_neither_ids_nor_pointers(tmp_path: Path) -> None:
    file = OpenClawFile(tmp_path / "s.jsonl")
    file.line({"type": "session", "id": "s", "timestamp": file.moment(), "cwd": "/"})
    for role, text in (
        ("user", "Hello"),
        ("assistant", "Hi"),
        ("user", "Bye"),
        ("assistant", "Bye"),
    ):
        file.line({"type": "message", "message": {"role": role, "content": text}})
    file.line({"type": "compaction", "summary": "In short.", "firstKeptEntryIndex": 3})

    session = read(file)

    assert texts(session.rows) == ["Hello", "Hi", "Bye", "Bye"]
    assert session.view == [("summary", "In short.")]
    assert session.faults == []


def test_faults_have_places_and_stop_nothing(tmp_path: Path) -> None:
    file = OpenClawFile(tmp_path / "s.jsonl")
    file.user("u", "Hello", None)
    file.entry("hologram", "h")
    file.entry("hologram", "h2")
    file.message("x", "oracle", "What?")
    file.assistant("a", [{"type": "smell"}, {"type": "text", "text": "Hi"}])
    file.assistant("a", "Hi again")
    file.raw(b'{"type":"message","id":"b","pa')

    session = read(file)

    assert texts(session.rows) == ["Hello", "Hi"]
    assert session.faults == [
        ("malformed-in-source", "s.jsonl:1"),
        ("unknown-in-source", "s.jsonl:2"),
        ("unknown-in-source", "s.jsonl:4"),
        ("unknown-in-source", "s.jsonl:5"),
        ("duplicate-in-source", "s.jsonl:6"),
        ("torn-tail", "s.jsonl:7"),
    ]


@pytest.fixture
def log() -> Iterator[Log]:
    with TranscriptLog.open("sqlite://") as opened:
        yield Log(opened)


def test_line_by_line_it_comes_to_the_same_as_the_whole(tmp_path: Path, log: Log) -> None:
    path = tmp_path / REAL.name
    lines = REAL.read_text().replace("2026-", "2025-").encode().splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        path.write_bytes(b"".join(lines[:count]))
        os.utime(path, (BEGAN, BEGAN))
        log.take(openclaw, path)

    again = log.take(openclaw, path)
    (name,) = again.sessions
    grown, whole = log.session(name), imported(openclaw, path, name)

    assert again.added == 0
    assert grown.view == whole.view
    assert grown.faults == whole.faults
    assert whole.said() <= grown.said()


def test_results_that_come_in_another_order_lose_nothing(file: OpenClawFile) -> None:
    file.user("u", "Look twice")
    file.assistant("a", [called("c1"), called("c2")], stopReason="toolUse")
    file.result("r2", "c2", "two")
    file.result("r1", "c1", "one")
    file.assistant("b", "Seen.", "r2")

    session = read(file)

    assert session.faults == []
    assert [role for role, _ in session.rows] == ["user", "assistant", "tool", "tool", "assistant"]
