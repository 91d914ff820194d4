"""A rollout is imported again and again while it is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from foreign_imports import Log, imported
from session_lines import BEGAN, FIXTURES, Rollout

from onrecord.transcript.importers import codex
from onrecord.transcript.log import TranscriptLog

REAL = next(FIXTURES.joinpath("codex").glob("*.jsonl"))


@pytest.fixture
def log() -> Iterator[Log]:
    with TranscriptLog.open("sqlite://") as opened:
        yield Log(opened)


def test_line_by_line_it_comes_to_the_same_as_the_whole(tmp_path: Path, log: Log) -> None:
    lines = REAL.read_bytes().splitlines(keepends=True)
    file = tmp_path / REAL.name
    for count in range(1, len(lines) + 1):
        file.write_bytes(b"".join(lines[:count]))
        log.take(codex, file)

    os.utime(file, (BEGAN, BEGAN))
    (name,) = log.take(codex, file).sessions
    grown, whole = log.session(name), imported(codex, file, name)

    assert log.take(codex, file).added == 0
    assert grown.rows == whole.rows
    assert grown.found == whole.found == []
    assert whole.said() <= grown.said()


def test_words_whose_call_is_not_written_yet_are_no_response(tmp_path: Path, log: Log) -> None:
    file = Rollout(tmp_path / "rollout-t1.jsonl", live=True)
    file.begin()
    file.user("Look")
    file.assistant("I look.")
    log.take(codex, file.path)
    half = log.session("t1")
    file.item("function_call", call_id="c", name="shell", arguments="{}")
    file.item("function_call_output", call_id="c", output="a")
    file.answer("Seen.")
    log.take(codex, file.path)
    whole = log.session("t1")

    assert half.rows == [("user", "Look"), ("assistant", "I look.")]
    assert not half.of("AssistantMessageProduced")
    assert whole.rows == imported(codex, file.path, "t1").rows
    assert [len(event.tool_calls) for event in whole.of("AssistantMessageProduced")] == [1, 0]
    assert whole.found == []
