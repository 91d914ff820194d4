"""A file of the OpenAI Agents SDK is imported again: what is new is added, what was taken back is hidden."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agents_databases import AgentsDatabase
from foreign_imports import Log, imported

from onrecord.transcript.importers import openai_agents
from onrecord.transcript.log import TranscriptLog

Step = Callable[[AgentsDatabase], object]


@pytest.fixture
def log() -> Iterator[Log]:
    with TranscriptLog.open("sqlite://") as opened:
        yield Log(opened)


def answer(file: AgentsDatabase) -> None:
    """What the SDK stores at once: a response with its calls, and their results."""
    file.assistant("Let me look.")
    file.call("c1")
    file.call("c2")
    file.output("c1")
    file.output("c2")


STORY: list[Step] = [
    lambda file: file.user("one"),
    lambda file: file.assistant("two"),
    lambda file: file.user("three"),
    answer,
    lambda file: file.assistant("four"),
    lambda file: file.add("no JSON"),
    lambda file: file.user("lost"),
    lambda file: file.user("five"),
    lambda file: file.assistant("six"),
    lambda file: file.pop(2),
    lambda file: file.user("seven"),
    lambda file: file.assistant("eight"),
]


def test_each_import_on_the_way_adds_up_to_one_of_the_whole(tmp_path: Path, log: Log) -> None:
    file = AgentsDatabase(tmp_path / "sessions.db")
    for step in STORY:
        step(file)
        log.take(openai_agents, file.path)

    again = log.take(openai_agents, file.path)
    grown, whole = log.session("s"), imported(openai_agents, file.path, "s")

    assert again.added == 0
    assert grown.view == whole.view
    assert set(whole.faults) <= set(grown.faults)
    # What was taken back had been there: only who read it in time knows it.
    assert ("assistant", "six") in grown.rows
    assert ("assistant", "six") not in whole.rows + grown.view
    assert whole.said() <= grown.said()


def test_a_history_that_was_cleared_is_taken_back(tmp_path: Path, log: Log) -> None:
    file = AgentsDatabase(tmp_path / "sessions.db")
    file.user("one")
    file.assistant("two")
    log.take(openai_agents, file.path)
    file.run("DELETE FROM agent_messages")
    file.user("three")
    file.assistant("four")

    log.take(openai_agents, file.path)
    session = log.session("s")

    assert session.view == [("user", "three"), ("assistant", "four")]
    assert session.faults == [("gap", "agent_messages 1-2")]


def test_an_answer_alone_that_was_taken_back_leaves_its_turn(tmp_path: Path, log: Log) -> None:
    file = AgentsDatabase(tmp_path / "sessions.db")
    file.user("one")
    file.assistant("two")
    file.pop()
    file.assistant("another two")

    log.take(openai_agents, file.path)
    session = log.session("s")

    assert session.view == [("user", "one"), ("assistant", "another two")]
    assert session.faults == [("gap", "agent_messages 2")]


def test_turns_that_were_taken_back_with_an_answer_before_them_are_hidden(
    tmp_path: Path, log: Log
) -> None:
    file = AgentsDatabase(tmp_path / "sessions.db")
    for text in ("one", "three"):
        file.user(text)
        file.assistant("answer to " + text)
    log.take(openai_agents, file.path)
    file.pop(3)

    log.take(openai_agents, file.path)

    assert "three" not in [text for _, text in log.session("s").view]


def test_an_id_that_is_given_again_is_another_message(tmp_path: Path, log: Log) -> None:
    file = AgentsDatabase(tmp_path / "sessions.db", once=False)
    file.user("one")
    file.assistant("two")
    log.take(openai_agents, file.path)
    file.pop()
    file.assistant("another two")

    log.take(openai_agents, file.path)
    session = log.session("s")

    assert [text for _, text in session.rows] == ["one", "two", "another two"]
    assert "conflicting-record" not in session.found


def test_usage_stands_with_the_last_response_of_its_turn(tmp_path: Path) -> None:
    file = AgentsDatabase(tmp_path / "sessions.db", structured=True)
    file.user("one")
    answer(file)
    file.assistant("two")
    file.run(
        "INSERT INTO turn_usage (session_id, user_turn_number, requests, input_tokens) VALUES ('s', 1, 2, 99)"
    )

    produced = imported(openai_agents, file.path, "s").of("AssistantMessageProduced")

    expected = {"requests": 2, "input_tokens": 99, "output_tokens": 0, "total_tokens": 0}
    assert [event.usage for event in produced] == [None, expected]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = []
    for sessions in (10, 60):
        file = AgentsDatabase(tmp_path / f"{sessions}.db")
        file.run("BEGIN")
        for name in range(sessions):
            for number in range(150):
                file.user(f"{number} " + "x" * 200, session=str(name))
                file.assistant(f"{number} " + "y" * 200, session=str(name))
        file.run("COMMIT")
        tracemalloc.start()
        with openai_agents.open_source(file.path) as source:
            count = sum(one for _, entries in source.sessions() for _, _, one in entries)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert count == source.total == sessions * 300

    assert peaks[1] < peaks[0] * 1.5
