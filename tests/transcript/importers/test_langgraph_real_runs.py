"""What LangGraph itself left behind is read, its faults are named, and no file changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from foreign_imports import Log, Session, digests, imported
from kept_runs import kept_runs, manifest, unpack

from onrecord.transcript.importers import langgraph
from onrecord.transcript.importers.running import importer_of
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import dbapi

PROGRAM = "langgraph"
DATABASE = "checkpoints.db"
OF_THEIR_TIME = {"torn-tail", "turn-unclosed"}
"""Codes of what is missing until the rest is written."""


def run_of(name: str, folder: Path, session: str = "one") -> Session:
    return imported(langgraph, unpack(f"{PROGRAM}/{name}", folder) / DATABASE, session)


@pytest.mark.parametrize("run", kept_runs(PROGRAM))
def test_each_fault_of_a_run_is_named_and_nothing_else_is(run: str, tmp_path: Path) -> None:
    folder = unpack(run, tmp_path)
    before = dict(digests(folder))

    with TranscriptLog.open("sqlite://") as log:
        done = Log(log).take(langgraph, folder / DATABASE)
        again = Log(log).take(langgraph, folder / DATABASE)
        found = [code for name in done.sessions for code in Log(log).session(name).found]

    assert sorted(found) == sorted(fault["code"] for fault in manifest(run)["faults"])
    assert (again.added, again.known) == (0, done.added)
    assert dict(digests(folder)) == before


@pytest.mark.parametrize("run", kept_runs(PROGRAM))
def test_a_file_is_found_by_looking(run: str, tmp_path: Path) -> None:
    importer = importer_of(unpack(run, tmp_path) / DATABASE)

    assert importer is not None
    assert importer.FORMAT == PROGRAM


@pytest.mark.parametrize("run", kept_runs(PROGRAM))
def test_imports_on_the_way_add_up_to_one_of_the_whole(run: str, tmp_path: Path) -> None:
    whole = imported(langgraph, unpack(run, tmp_path) / DATABASE, "one")

    with TranscriptLog.open("sqlite://") as log:
        into = Log(log)
        for file in states(run, tmp_path / "states"):
            into.take(langgraph, file)
        grown = into.session("one")

    assert (grown.rows, grown.view) == (whole.rows, whole.view)
    assert whole.said() <= grown.said()
    more = [code for code, place in grown.faults if (code, place) not in whole.faults]
    assert set(more) <= OF_THEIR_TIME


def states(run: str, folder: Path) -> Iterator[Path]:
    """Iterate over a run's database as it was after each of its checkpoints, and as it is."""

    def copy(name: str) -> Path:
        (folder / name).mkdir(parents=True)
        return unpack(run, folder / name) / DATABASE

    database = dbapi.connect(str(copy("all")), isolation_level=None)
    found = database.execute("SELECT checkpoint_id FROM checkpoints ORDER BY 1").fetchall()
    database.close()
    for number, (last,) in enumerate(found):
        file = copy(str(number))
        database = dbapi.connect(str(file), isolation_level=None)
        for table in ("checkpoints", "writes"):
            database.execute(f"DELETE FROM {table} WHERE checkpoint_id > ?", (last,))
        database.close()
        yield file
    yield copy("as it is")


def test_turns_tools_a_streamed_answer_and_a_system_prompt(tmp_path: Path) -> None:
    assert run_of("turns", tmp_path).view == [
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
    two = run_of("turns", tmp_path, "two")
    assert [event.prompt for event in two.of("RecoveryApplied")] == ["Answer in one sentence."]
    assert len(two.rows) == 2


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("fork", ["Book a table for four.", "A table for four."]),
        ("deltas", ["Book a table for four.", "A table for four."]),
        ("replayed", ["Name a number.", "Eleven."]),
        ("removed", ["What is an event log?", "What happened, in order, and never changed."]),
    ],
)
def test_the_view_ends_as_the_state_does(run: str, expected: list[str], tmp_path: Path) -> None:
    assert [text for _, text in run_of(run, tmp_path).view][-2:] == expected


def test_what_was_summarised_stood_in_the_view_as_a_summary(tmp_path: Path) -> None:
    (compacted,) = run_of("removed", tmp_path).of("TranscriptCompacted")

    assert compacted.summary == "The user asked about event logs and booked a table for two."
    assert compacted.through_turn == "book-a-table-for-two"


def test_a_graph_in_a_graph_is_a_session_of_its_own(tmp_path: Path) -> None:
    inner = run_of("subgraph", tmp_path, "one@expert")

    assert [event.parent for event in inner.of("SessionStarted")] == ["one"]
    assert inner.rows == run_of("subgraph", tmp_path).rows


def test_an_error_of_a_node_is_kept(tmp_path: Path) -> None:
    (broken,) = run_of("cut", tmp_path).of("StreamBroken")

    assert "Connection reset by peer" in broken.reason


def test_what_a_kill_left_is_told_at_its_place(tmp_path: Path) -> None:
    (between,) = run_of("kill-between", tmp_path).faults
    (other := tmp_path / "other").mkdir()
    (streaming,) = run_of("kill", other).faults

    assert between[0] == streaming[0] == "torn-tail"
    assert between[1].startswith("writes ")
    assert streaming[1].endswith(" messages[2]")


def test_a_file_that_was_cut_off_is_told(tmp_path: Path) -> None:
    file = unpack(f"{PROGRAM}/full", tmp_path) / DATABASE
    file.write_bytes(file.read_bytes()[:9322])

    assert imported(langgraph, file, "unnamed").faults == [("unreadable-in-source", "checkpoints")]
