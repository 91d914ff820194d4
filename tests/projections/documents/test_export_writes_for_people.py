"""The command writes each format, privately, from the points that it is asked for."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from onrecord.transcript.events import TurnFinalized, UserMessageReceived
from onrecord.transcript.log import TranscriptLog


def run(at: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onrecord.projections.cli", "export", *words],
        env={**os.environ, "ONRECORD_DB": f"sqlite:///{at}/log.db", "PYTHONIOENCODING": "utf-8"},
        cwd=at, capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("export")
    with TranscriptLog.open(place / "log.db") as log:
        log.append("s", UserMessageReceived(message="u1", text="Größe? 世界"))
        log.append("s", TurnFinalized(turn="u1"))
    return place


@pytest.mark.parametrize(("form", "begins"), [("html", "<!DOCTYPE html>\n"), ("markdown", "# s\n")])
def test_a_file_and_the_terminal_get_the_same(place: Path, form: str, begins: str) -> None:
    shown = run(place, "s", "--format", form)
    done = run(place, "s", "--format", form, "--out", "out")

    written = (place / "out").read_text(encoding="utf-8")
    assert (shown.returncode, done.returncode, done.stdout) == (0, 0, "")
    assert shown.stdout == written
    assert written.startswith(begins)
    assert "Größe? 世界" in written
    assert stat.S_IMODE((place / "out").stat().st_mode) == 0o600


def test_lines_are_the_default_and_go_up_to_a_point(place: Path) -> None:
    lines = run(place, "s", "--at", "1").stdout.splitlines()

    assert [json.loads(line)["type"] for line in lines] == ["UserMessageReceived"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["s", "--format", "pdf"], "--format takes one of jsonl, markdown, html"),
        (["s", "--at", "9"], "--at 9: session 's' has no such version; its newest is 2"),
        (["none", "--format", "html"], "no session 'none'"),
        (["s", "--format", "html", "--out", "log.db"], "is a database and was left untouched"),
    ],
)
def test_what_cannot_be_is_one_sentence(place: Path, words: list[str], says: str) -> None:
    done = run(place, *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
