"""Whatever stands in a rollout is a row, Codex' own, or a fault with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_imports import Session, imported
from session_lines import Rollout

from onrecord.transcript.importers import codex


@pytest.fixture
def file(tmp_path: Path) -> Rollout:
    return Rollout(tmp_path / "rollout-t1.jsonl")


def read(file: Rollout) -> Session:
    return imported(codex, file.path, "t1")


def turns(file: Rollout, *names: str) -> None:
    for name in names:
        file.user(f"ask {name}")
        file.answer(f"say {name}")


def test_turns_that_were_rolled_back_leave_the_models_view(file: Rollout) -> None:
    file.begin()
    turns(file, "one", "two", "three")
    file.event("thread_rolled_back", num_turns=2)
    turns(file, "four")
    file.event("thread_rolled_back", num_turns=1)
    turns(file, "five")

    session = read(file)

    assert [text for _, text in session.view] == ["ask one", "say one", "ask five", "say five"]
    assert len(session.rows) == 10


def test_a_compaction_with_words_is_their_summary(file: Rollout) -> None:
    file.begin()
    turns(file, "one")
    file.put("compacted", {"message": "In short."})
    turns(file, "two")

    session = read(file)

    assert session.view == [("summary", "In short."), ("user", "ask two"), ("assistant", "say two")]
    assert session.faults == []


def test_a_compaction_that_only_the_provider_can_read_is_told(file: Rollout) -> None:
    file.begin()
    turns(file, "one")
    file.put("compacted", {"message": "", "replacement_history": [{"type": "compaction"}]})

    session = read(file)

    assert session.view == [("summary", "[a summary that only the provider can read]")]
    assert session.faults == [("content-unrecoverable", "rollout-t1.jsonl:5")]


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/work</cwd>\n</environment_context>",
        "<user_instructions>\n\nBe kind.\n\n</user_instructions>",
        "# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>",
        "<turn_aborted>\nThe user interrupted the previous turn",
        '<subagent_notification>{"agent_id": "a"}</subagent_notification>',
    ],
)
def test_what_codex_writes_in_the_users_name_is_no_row(file: Rollout, text: str) -> None:
    file.begin()
    file.user(text)
    turns(file, "one")
    file.user(text)
    turns(file, "two")

    session = read(file)

    assert [text for _, text in session.rows] == ["ask one", "say one", "ask two", "say two"]
    assert [event.prompt for event in session.of("RecoveryApplied")] == [text, text]
    assert session.faults == []


def test_newer_versions_say_who_wrote_a_message(file: Rollout) -> None:
    file.begin()
    turns(file, "one")
    said = {"content_item_metadata": [{"provenance": {"type": "harness", "hook": True}}]}
    file.item("message", role="user", content=[{"type": "input_text", "text": "Not done yet"}],
              internal_chat_message_metadata_passthrough=said)  # fmt: skip

    assert [text for _, text in read(file).rows] == ["ask one", "say one"]


def test_a_turn_that_failed_says_why(file: Rollout) -> None:
    file.begin()
    file.user("Hello")
    file.event("task_complete", last_agent_message=None, error={"message": "stream disconnected"})

    session = read(file)

    assert session.of("TurnFinalized")[0].outcome == "failed"
    assert session.of("StreamBroken")[0].reason == "stream disconnected"


def test_what_the_screen_was_told_and_no_item_holds_is_kept(file: Rollout) -> None:
    file.begin()
    file.user("Hello")
    file.event("agent_message", message="Half an answer")  # and the program was killed
    file.user("Again")
    file.event("agent_message", message="Hi")
    file.answer("Hi")

    session = read(file)

    assert [text for _, text in session.rows if "no answer" not in text] == [
        "Hello", "Half an answer", "Again", "Hi",
    ]  # fmt: skip


def test_faults_have_places_and_stop_nothing(file: Rollout) -> None:
    file.raw(b"\xef\xbb\xbf")
    file.user("Hello")
    file.raw(b"{]\n")
    file.put("hologram", {})
    file.put("hologram", {})
    file.item("smell")
    file.raw(
        b'{"timestamp": "2026-11-30T01:00:00Z", "type": "response_item", "payload": {"type": "mes'
    )

    session = imported(codex, file.path, "rollout-t1")

    assert session.rows == [("user", "Hello")]
    assert session.faults == [
        ("malformed-in-source", "rollout-t1.jsonl"),
        ("unreadable-in-source", "rollout-t1.jsonl:2"),
        ("unknown-in-source", "rollout-t1.jsonl:3"),
        ("unknown-in-source", "rollout-t1.jsonl:5"),
        ("torn-tail", "rollout-t1.jsonl:6"),
    ]


def test_an_item_that_is_there_twice_is_one(file: Rollout) -> None:
    file.begin()
    for _ in range(2):
        file.item(
            "message", id="i1", role="user", content=[{"type": "input_text", "text": "Hello"}]
        )

    session = read(file)

    assert session.rows == [("user", "Hello")]
    assert session.faults == [("duplicate-in-source", "rollout-t1.jsonl:3")]
