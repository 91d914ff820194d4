"""The command finds rows, marks them, and says how to see each; its JSON is a contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    TranscriptRewound,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog


def run(at: Path, *words: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ONRECORD_DB": f"sqlite:///{at}/log.db", "COLUMNS": str(columns)}
    return subprocess.run(
        [sys.executable, "-m", "onrecord.projections.cli", *words],
        env={**env, "PYTHONIOENCODING": "utf-8"},
        cwd=at, capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("search")
    with TranscriptLog.open(place / "log.db") as log:
        log.append(
            "it's 1",
            UserMessageReceived(message="u1", turn="t1", text="Is the disk full?"),
            DeliveryAttempted(
                delivery="d1", turn="t1", text="Yes, the \x1b[31mdisk\u202e is full."
            ),
            DeliveryConfirmed(delivery="d1"),
            TurnFinalized(turn="t1"),
            UserMessageReceived(message="u2", turn="t2", text="Clean the disk."),
            TurnFinalized(turn="t2", outcome="interrupted"),
            TranscriptRewound(to_turn="t2"),
        )
        log.append("other", UserMessageReceived(message="u1", text="Something else"))
    return place


def test_json_tells_row_snippet_and_how_to_see_it(place: Path) -> None:
    done = run(place, "search", "DISK", "full", "--role", "user", "--json")

    (hit,) = json.loads(done.stdout)["hits"]
    at = hit.pop("at")
    assert hit == {
        "session": "it's 1", "in_view": True, "snippet": "Is the disk full?",
        "marks": [[7, 11], [12, 16]], "see": "onrecord show 'it'\"'\"'s 1' --at 1",
        "role": "user", "text": "Is the disk full?", "turn": "t1", "versions": [1],
    }  # fmt: skip
    assert at.endswith("Z")
    assert json.loads(done.stdout)["more"] is False
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("columns", [80, 140])
def test_the_page_marks_what_the_model_does_not_see_and_lets_nothing_act(
    place: Path, columns: int
) -> None:
    done = run(place, "search", "disk", columns=columns)

    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert sum("out of the model's view" in line for line in lines) == 1
    assert "    onrecord show 'it'\"'\"'s 1' --at 5 --full" in lines
    assert "    Yes, the \\x1b[31mdisk\\u202e is full." in lines
    assert "\x1b" not in done.stdout


def test_the_command_that_is_named_shows_the_row(place: Path) -> None:
    (hit,) = json.loads(run(place, "search", "clean", "--json").stdout)["hits"]
    assert hit["see"] == "onrecord show 'it'\"'\"'s 1' --at 5 --full"

    assert "Clean the disk." in run(place, "show", "it's 1", "--at", "5", "--full").stdout


def test_a_limit_says_that_there_is_more(place: Path) -> None:
    told = json.loads(run(place, "search", "disk", "--limit", "2", "--json").stdout)

    assert (len(told["hits"]), told["more"]) == (2, True)
    assert "there are more" in run(place, "search", "disk", "--limit", "2").stdout
    assert "there are more" not in run(place, "search", "disk").stdout


def test_since_and_session_narrow(place: Path) -> None:
    assert len(json.loads(run(place, "search", "e", "--since", "1h", "--json").stdout)["hits"]) > 1
    late = run(place, "search", "e", "--since", "2999-01-01")
    other = run(place, "search", "e", "--session", "other", "--json")

    assert (late.returncode, late.stdout) == (0, "nothing found\n")
    assert {hit["session"] for hit in json.loads(other.stdout)["hits"]} == {"other"}


def test_a_rebuild_may_stand_alone(place: Path) -> None:
    done = run(place, "search", "--rebuild")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "onrecord: the search index is made anew\n"
    assert "disk" in run(place, "search", "disk", "--rebuild").stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "nothing to search for"),
        (['""'], "nothing to search for"),
        (["x", "--role", "robot"], "--role takes one of user, assistant, tool"),
        (["x", "--session", "nobody"], "no session 'nobody'"),
        (["x", "--since", "soon"], "--since takes a time"),
    ],
)
def test_what_cannot_be_is_one_sentence(place: Path, words: list[str], says: str) -> None:
    done = run(place, "search", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
