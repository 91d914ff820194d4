"""Whatever becomes of a thread's list, the model's view ends as the list does, and no text is forgotten."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from checkpoint_databases import Checkpoints, ai, human
from foreign_imports import Log, imported
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.transcript.importers import langgraph
from onrecord.transcript.log import TranscriptLog

MOST_TURNS = 4
MOST_STATES = 4

Turn = tuple[int, str]

TURNS: st.SearchStrategy[list[Turn]] = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from(["", " edited"])),
    max_size=MOST_TURNS, unique_by=lambda turn: turn[0],
)  # fmt: skip
"""A list of messages: of each turn its number, which is the id, and how its answer reads now."""
HISTORIES = st.lists(TURNS, min_size=1, max_size=MOST_STATES)


def messages(turns: list[Turn]) -> list[Any]:
    return [
        made for n, end in turns for made in (human(f"h{n}", f"q{n}"), ai(f"a{n}", f"r{n}{end}"))
    ]


def texts(turns: list[Turn]) -> list[str]:
    return [text for n, end in turns for text in (f"q{n}", f"r{n}{end}")]


@given(HISTORIES)
@settings(max_examples=60)  # each makes a file and two logs
def test_the_view_is_the_list_and_imports_on_the_way_add_up(history: list[list[Turn]]) -> None:
    with tempfile.TemporaryDirectory() as folder, TranscriptLog.open("sqlite://") as log:
        file = Checkpoints(Path(folder) / "checkpoints.db")
        for number, turns in enumerate(history):
            file.add(*messages(turns), source="update")
            if number in (0, len(history) - 1):
                Log(log).take(langgraph, file.path)
        grown = Log(log).session("t")
        whole = imported(langgraph, file.path, "t")
        file.database.close()

    said = [text for role, text in whole.view if role != "summary"]
    assert said == texts(history[-1])
    assert {text for _, text in whole.rows} >= {t for turns in history for t in texts(turns)}
    assert (grown.rows, grown.view) == (whole.rows, whole.view)
    assert grown.said() == whole.said()
