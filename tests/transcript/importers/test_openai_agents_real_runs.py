"""What the OpenAI Agents SDK itself left behind is read, its faults are named, and no file changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_imports import Log, digests, imported
from kept_runs import kept_runs, manifest, unpack

from onrecord.transcript.importers import openai_agents
from onrecord.transcript.importers.running import importer_of
from onrecord.transcript.log import TranscriptLog

PROGRAM = "openai-agents"
DATABASE = "sessions.db"


@pytest.mark.parametrize("run", kept_runs(PROGRAM))
def test_each_fault_of_a_run_is_named_and_nothing_else_is(run: str, tmp_path: Path) -> None:
    folder = unpack(run, tmp_path)
    before = dict(digests(folder))

    with TranscriptLog.open("sqlite://") as log:
        done = Log(log).take(openai_agents, folder / DATABASE)
        again = Log(log).take(openai_agents, folder / DATABASE)
        found = [code for name in done.sessions for code in Log(log).session(name).found]

    assert sorted(found) == sorted(fault["code"] for fault in manifest(run)["faults"])
    assert (again.added, again.known) == (0, done.added)
    assert dict(digests(folder)) == before


@pytest.mark.parametrize("run", kept_runs(PROGRAM))
def test_a_file_is_found_by_looking(run: str, tmp_path: Path) -> None:
    importer = importer_of(unpack(run, tmp_path) / DATABASE)

    assert importer is not None
    assert importer.FORMAT == PROGRAM


def test_turns_tools_and_a_streamed_answer(tmp_path: Path) -> None:
    file = unpack(f"{PROGRAM}/turns", tmp_path) / DATABASE

    assert imported(openai_agents, file, "turns").view == [
        ("user", "What is an event log?"),
        ("assistant", "What happened, in order, and never changed."),
        ("user", "How is the weather in Oslo and Rome?"),
        ("assistant", "Let me look at both."),
        ("tool", "rain, 4 degrees"),
        ("tool", "sun, 21 degrees"),
        ("assistant", "Oslo has rain at 4 degrees, Rome has sun at 21."),
        ("user", "Say it in five words."),
        ("assistant", "What happened, kept in order."),
    ]
    assert len(imported(openai_agents, file, "other").rows) == 2


def test_branches_and_what_their_turns_used(tmp_path: Path) -> None:
    file = unpack(f"{PROGRAM}/branches", tmp_path) / DATABASE

    main, branch = (imported(openai_agents, file, name) for name in ("trip", "trip@bicycle"))

    assert [text for _, text in main.view] == [
        "Where do we go?", "To the sea.", "By train or by car?", "By train.",
        "Where is it rainy?", "", "rain, 4 degrees", "It rains in Oslo.",
    ]  # fmt: skip
    assert [text for _, text in branch.view] == [
        "Where do we go?", "To the sea.", "By bicycle?", "By bicycle, then.",
    ]  # fmt: skip
    used = [event.usage for event in main.of("AssistantMessageProduced") if event.usage]
    assert [each["total_tokens"] for each in used] == [44, 63, 194]


def test_items_of_the_responses_interface(tmp_path: Path) -> None:
    file = unpack(f"{PROGRAM}/items", tmp_path) / DATABASE

    session = imported(openai_agents, file, "items")

    searched, looked, said = session.of("AssistantMessageProduced")
    assert (searched.reasoning, searched.tool_calls[0].name) == ("Search first.", "web_search")
    assert (looked.text, looked.tool_calls[0].id) == (
        "I have found Oslo; now its weather.",
        "call_1",
    )
    assert said.text == "It rains in Oslo."


def test_what_a_kill_left_in_the_wal_is_read(tmp_path: Path) -> None:
    folder = unpack(f"{PROGRAM}/kill", tmp_path)

    session = imported(openai_agents, folder / DATABASE, "kill")

    assert (folder / f"{DATABASE}-wal").stat().st_size
    assert session.rows[-1] == ("user", "Count to ten.")
    assert session.faults == [("torn-tail", "agent_messages 3")]
