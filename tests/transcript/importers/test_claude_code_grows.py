"""A session of Claude Code is imported again and again while it is written."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from foreign_imports import Log, imported
from session_lines import BEGAN, FIXTURES, ClaudeFile, use

from onrecord.transcript.importers import claude_code
from onrecord.transcript.log import TranscriptLog

REAL = sorted(FIXTURES.joinpath("claude-code").rglob("*.jsonl"))


@pytest.fixture
def log() -> Iterator[Log]:
    with TranscriptLog.open("sqlite://") as opened:
        yield Log(opened)


@pytest.mark.parametrize("real", REAL, ids=lambda path: path.stem[:8])
def test_line_by_line_it_comes_to_the_same_as_the_whole(
    tmp_path: Path, log: Log, real: Path
) -> None:
    lines = real.read_bytes().splitlines(keepends=True)
    file = tmp_path / real.relative_to(FIXTURES)
    file.parent.mkdir(parents=True)
    for count in range(1, len(lines) + 1):
        file.write_bytes(b"".join(lines[:count]))
        log.take(claude_code, file)

    os.utime(file, (BEGAN, BEGAN))
    name = log.take(claude_code, file).sessions[0]
    grown, whole = log.session(name), imported(claude_code, file, name)

    assert log.take(claude_code, file).added == 0
    assert grown.view == whole.view
    assert grown.rows == whole.rows
    assert grown.found == whole.found
    assert whole.said() <= grown.said()


def test_a_response_that_is_still_written_is_told_so_and_then_as_a_whole(
    tmp_path: Path, log: Log
) -> None:
    file = ClaudeFile(tmp_path / "s.jsonl", live=True)
    file.user("q", "Look")
    file.assistant("a1", "I look.", message="m", stop=None)
    log.take(claude_code, file.path)
    half = log.session("s")
    file.assistant("a2", use("c"), message="m", stop="tool_use")
    file.result("r", "c")
    file.assistant("b", "Seen.")
    log.take(claude_code, file.path)
    whole = log.session("s")

    assert half.rows == [("user", "Look"), ("assistant", "I look.")]
    assert not half.of("AssistantMessageProduced")
    assert whole.rows == imported(claude_code, file.path, "s").rows
    assert whole.found == []


def test_a_response_that_was_cut_long_ago_is_what_there_is_of_it(tmp_path: Path) -> None:
    file = ClaudeFile(tmp_path / "s.jsonl")
    file.user("q", "Look")
    file.assistant("a1", "I look.", message="m", stop=None)

    session = imported(claude_code, file.path, "s")

    assert [event.text for event in session.of("AssistantMessageProduced")] == ["I look."]


def test_a_line_that_was_torn_is_read_once_it_is_whole(tmp_path: Path, log: Log) -> None:
    file = ClaudeFile(tmp_path / "s.jsonl")
    file.user("q", "Hello")
    file.assistant("a", "Hi")
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[:-30])
    log.take(claude_code, file.path)
    file.path.write_bytes(whole)
    log.take(claude_code, file.path)

    session = log.session("s")

    assert session.rows == [("user", "Hello"), ("assistant", "Hi")]
    assert session.faults == [("torn-tail", "s.jsonl:2")]  # it was so when it was read


def test_a_long_session_is_not_held_in_memory(tmp_path: Path) -> None:
    file = ClaudeFile(tmp_path / "s.jsonl")
    text = "word " * 2_000
    for n in range(300):
        file.user(f"q{n}", text)
        file.assistant(f"a{n}", text)
    size = file.path.stat().st_size

    tracemalloc.start()
    with claude_code.open_source(file.path) as source:
        count = sum(n for _, entries in source.sessions() for _, _, n in entries)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == 600
    assert peak < size / 8
