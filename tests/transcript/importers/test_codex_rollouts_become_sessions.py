"""What Codex itself left behind becomes sessions, and so do its older and its packed files."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
import zstandard
from foreign_imports import Log, Session, imported
from session_lines import BEGAN, FIXTURES, Rollout, settled

from onrecord.transcript import importers
from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import codex
from onrecord.transcript.importers.running import importer_of
from onrecord.transcript.log import TranscriptLog

REAL = next(FIXTURES.joinpath("codex").glob("*.jsonl"))
NAME = "01a22a0c-d83a-7a23-9eb6-8ce1d5658839"


@pytest.fixture
def real(tmp_path: Path) -> Path:
    return settled(REAL, tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Rollout:
    return Rollout(tmp_path / "rollout-2026-11-30T01-00-00-t1.jsonl")


def read(file: Rollout, name: str = "t1") -> Session:
    return imported(codex, file.path, name)


def test_a_rollout_is_turns_and_nothing_stands_twice(real: Path) -> None:
    session = imported(codex, real, NAME)

    assert [row for row in session.rows if row[0] != "tool"] == [
        ("user", "Hello there"),
        ("assistant", "Answer 14."),
        ("user", "Please USE TOOLS now"),
        ("assistant", "I look."),
        ("assistant", "The tool answered (16)."),
        ("user", "Please STALL now"),
        ("assistant", "Answer 17."),
        ("user", "Fine, go on"),
        ("assistant", "Answer 18."),
    ]
    assert [event.outcome for event in session.of("TurnFinalized")] == [
        "completed", "completed", "interrupted", "completed",
    ]  # fmt: skip
    assert session.found == []
    assert importer_of(real) is codex


def test_a_call_and_the_words_before_it_are_one_response(real: Path) -> None:
    said = imported(codex, real, NAME).of("AssistantMessageProduced")

    assert [(event.text, [call.name for call in event.tool_calls]) for event in said][1] == (
        "I look.", ["exec_command"],
    )  # fmt: skip


def test_what_codex_tells_the_model_is_not_the_users(real: Path) -> None:
    session = imported(codex, real, NAME)

    told = [event.prompt[:22] for event in session.of("RecoveryApplied")]

    assert told == ["(left out)(left out)", "<environment_context>\n", "<turn_aborted>\nThe use"]


def test_a_folder_is_all_its_rollouts_oldest_first(tmp_path: Path) -> None:
    later = tmp_path / "2026" / "12" / "01" / "rollout-2026-12-01T00-00-00-t2.jsonl"
    Rollout(later).begin("t2")
    shutil.copy(REAL, tmp_path / REAL.name)

    with TranscriptLog.open("sqlite://") as log:
        done = Log(log).take(codex, tmp_path)

    assert done.sessions == [NAME, "t2"]
    assert importer_of(tmp_path) is codex


def test_a_thread_that_an_agent_started_is_told_with_its_parent(file: Rollout) -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "t0", "depth": 1}}}
    file.begin(source=spawned)
    file.user("Look there")

    assert read(file, "t0/t1").of("SessionStarted")[0].parent == "t0"


def test_a_fork_names_what_it_was_forked_from(file: Rollout) -> None:
    file.begin(forked_from_id="t0")
    file.put("session_meta", {"id": "t0", "cwd": "/work"})  # which came with what was copied
    file.user("Hello")

    session = read(file)

    assert [event.parent for event in session.of("SessionStarted")] == ["t0"]
    assert session.faults == []


def test_the_first_versions_wrote_the_items_alone(file: Rollout) -> None:
    file.line({"id": "old", "timestamp": "2025-05-01T10:00:00Z", "instructions": None})
    for role, text in (("user", "<environment_context>x</environment_context>"), ("user", "Hello")):
        file.line(
            {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
        )
    file.line({"record_type": "state"})
    file.line({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"})
    file.line({"type": "function_call_output", "call_id": "c", "output": '{"output": "a"}'})
    file.line(
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
    )

    session = read(file, "old")

    assert [role for role, _ in session.rows] == ["user", "assistant", "tool", "assistant"]
    assert session.rows[0] == ("user", "Hello")
    assert session.faults == []
    assert importer_of(file.path) is codex


def test_a_packed_rollout_is_the_same(tmp_path: Path) -> None:
    packed = tmp_path / f"{REAL.name}.zst"
    packed.write_bytes(zstandard.compress(REAL.read_bytes()))

    os.utime(packed, (BEGAN, BEGAN))

    session = imported(codex, packed, NAME)

    assert importer_of(packed) is codex
    assert session.said() == imported(codex, settled(REAL, tmp_path), NAME).said()


def test_one_that_is_there_packed_and_unpacked_is_read_once(tmp_path: Path) -> None:
    (tmp_path / f"{REAL.name}.zst").write_bytes(zstandard.compress(REAL.read_bytes()))
    shutil.copy(REAL, tmp_path / REAL.name)

    with TranscriptLog.open("sqlite://") as log:
        assert Log(log).take(codex, tmp_path).sessions == [NAME]


def test_without_the_extra_a_packed_rollout_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / f"{REAL.name}.zst"
    packed.write_bytes(zstandard.compress(REAL.read_bytes()))
    monkeypatch.delitem(sys.modules, "onrecord.transcript.importers.zstd", raising=False)
    monkeypatch.delattr(importers, "zstd", raising=False)
    monkeypatch.setitem(sys.modules, "zstandard", None)

    with pytest.raises(
        ImportRefused,
        match=r"packed with Zstandard; to read it: pip install 'onrecord\[zstandard\]'",
    ):
        imported(codex, packed, NAME)


def test_a_packed_rollout_that_breaks_off_gives_what_can_be_unpacked(tmp_path: Path) -> None:
    packed = tmp_path / f"{REAL.name}.zst"
    noise = b"".join(
        b'{"type": "event_msg", "payload": {"type": "x", "of": "%s"}}\n'
        % os.urandom(500).hex().encode()
        for _ in range(1_000)
    )
    whole = zstandard.compress(REAL.read_bytes() + noise)
    packed.write_bytes(whole[: len(whole) // 2])

    session = imported(codex, packed, NAME)

    assert session.rows[0] == ("user", "Hello there")
    assert {code for code, _ in session.faults} & {"unreadable-in-source", "torn-tail"}
