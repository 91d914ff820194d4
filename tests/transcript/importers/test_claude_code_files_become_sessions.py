"""What Claude Code itself left behind becomes sessions: turns, calls, compactions, what was taken back."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_imports import Log, imported
from session_lines import FIXTURES, ClaudeFile, settled

from onrecord.transcript.importers import claude_code
from onrecord.transcript.importers.running import importer_of
from onrecord.transcript.log import TranscriptLog

REAL = FIXTURES / "claude-code" / "-home-user-project"
COMPACTED = "dfaed6f7-5971-4365-9f9e-a34354bd5040"
TAKEN_BACK = "94c4b46b-7e29-40e3-8180-cb9e420d60c8"
FORK = "d4aef0ca-99a7-41a7-9685-68c04354c10a"
AGENT = f"{TAKEN_BACK}/abc153a79b5f5d26d"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return settled(REAL, tmp_path)


def test_a_project_is_known_and_each_file_is_a_session(project: Path) -> None:
    (project / "history.jsonl").write_text('{"display": "hello", "project": "/work"}\n')

    with TranscriptLog.open("sqlite://") as log:
        done = Log(log).take(claude_code, project)

    assert importer_of(project) is claude_code
    assert sorted(done.sessions) == sorted([COMPACTED, TAKEN_BACK, FORK, AGENT])
    assert done.faults == {"synthetic-in-source": 1}


def test_a_response_on_several_lines_is_one_row_and_its_results_follow(project: Path) -> None:
    session = imported(claude_code, project, COMPACTED)

    assert session.rows[2:8] == [
        ("user", "Please USE TOOLS now"),
        ("assistant", "I look at two things."),
        ("tool", "one"),
        ("tool", "two"),
        ("assistant", "The tools answered (3)."),
        ("user", "Please STALL now"),
    ]
    assert [len(event.tool_calls) for event in session.of("AssistantMessageProduced")] == [
        0,
        2,
        0,
        0,
        0,
    ]


def test_an_interrupt_is_an_outcome_and_no_message(project: Path) -> None:
    session = imported(claude_code, project, COMPACTED)

    assert [event.outcome for event in session.of("TurnFinalized")] == [
        "completed", "completed", "interrupted", "completed",
    ]  # fmt: skip
    assert [event.reason for event in session.of("StreamBroken")] == [
        "aborted in the middle of the stream"
    ]
    assert not any("interrupted by user" in text for _, text in session.rows)


def test_a_compaction_gives_the_model_its_summary(project: Path) -> None:
    session = imported(claude_code, project, COMPACTED)

    assert [role for role, _ in session.view] == ["summary", "user", "assistant"]
    assert session.view[0][1].startswith("This session is being continued")
    assert session.view[1:] == [("user", "Fine, go on"), ("assistant", "Answer 6.")]


def test_what_was_taken_back_leaves_the_model_and_stays_on_record(project: Path) -> None:
    session = imported(claude_code, project, TAKEN_BACK)

    assert ("user", "Second question") in session.rows
    assert ("assistant", "Answer 11.") in session.rows
    assert session.view[-2:] == [("user", "Second question again"), ("assistant", "Answer 12.")]
    assert ("user", "Second question") not in session.view


def test_a_subagent_is_a_session_of_its_own_that_names_its_parent(project: Path) -> None:
    session = imported(claude_code, project, AGENT)

    assert session.rows[0] == ("user", "Count to three.")
    assert session.of("SessionStarted")[0].parent == TAKEN_BACK


def test_a_file_comes_with_its_subagents(project: Path) -> None:
    beside = ClaudeFile(project / "agent-a2.jsonl")
    beside.user("u", "Look there", isSidechain=True, sessionId=TAKEN_BACK, agentId="a2")
    ClaudeFile(project / "agent-a3.jsonl").user("u", "Else", isSidechain=True, sessionId="other")

    with TranscriptLog.open("sqlite://") as log:
        done = Log(log).take(claude_code, project / f"{TAKEN_BACK}.jsonl")

    assert done.sessions == [TAKEN_BACK, AGENT, f"{TAKEN_BACK}/a2"]


def test_subagents_between_the_lines_of_a_session_are_sessions_too(tmp_path: Path) -> None:
    file = ClaudeFile(tmp_path / "s.jsonl")
    file.user("u1", "Do two things")
    for agent in ("x", "y"):  # their lines stand among one another
        file.user(f"{agent}1", f"Task {agent}", None, isSidechain=True)
    for agent in ("x", "y"):
        file.assistant(f"{agent}2", f"Done {agent}", parent=f"{agent}1", isSidechain=True)
    file.assistant("a1", "Both are done.", parent="u1")

    main = imported(claude_code, file.path, "s")
    agents = [imported(claude_code, file.path, f"s/{agent}1") for agent in ("x", "y")]

    assert main.rows == [("user", "Do two things"), ("assistant", "Both are done.")]
    assert [agent.rows for agent in agents] == [
        [("user", "Task x"), ("assistant", "Done x")],
        [("user", "Task y"), ("assistant", "Done y")],
    ]
    assert agents[0].of("SessionStarted")[0].parent == "s"
    assert main.faults == agents[0].faults == []
