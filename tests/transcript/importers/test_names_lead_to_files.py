"""What a name leads to is read, and nothing else: links, and folders with more than files in them."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from foreign_imports import Log
from kept_runs import unpack
from session_lines import FIXTURES

from onrecord.projections.cli import main
from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import claude_code, codex, hermes, openclaw
from onrecord.transcript.importers.running import importer_of
from onrecord.transcript.log import TranscriptLog

RUN = "hermes/killed-mid-stream"


def home_of(run: str, folder: Path) -> Path:
    folder.mkdir()
    return unpack(run, folder)


def everything(importer: Any, path: Path) -> set[str]:
    with TranscriptLog.open("sqlite://") as log:
        into = Log(log)
        return set().union(
            *(into.session(name).said() for name in into.take(importer, path).sessions)
        )


def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    """Return the one line that an import leaves with."""
    monkeypatch.setattr(sys, "argv", ["onrecord", "--db", "sqlite:///not.db", "import", *words])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_of_a_link_to_a_database_its_wal_and_log_are_read(tmp_path: Path) -> None:
    home = home_of(RUN, tmp_path / "home")
    link = tmp_path / "link.db"
    link.symlink_to(home / "state.db")
    assert home.joinpath("state.db-wal").stat().st_size > 0

    assert everything(hermes, link) == everything(hermes, home) != set()


def test_a_home_whose_database_is_a_link_keeps_its_log(tmp_path: Path) -> None:
    home, disk = home_of(RUN, tmp_path / "home"), tmp_path / "disk"
    before = everything(hermes, home)
    disk.mkdir()
    for file in home.glob("state.db*"):
        shutil.move(file, disk)
    home.joinpath("state.db").symlink_to(disk / "state.db")

    assert everything(hermes, home) == before


@pytest.mark.parametrize(
    ("importer", "names"),
    [
        (codex, ["rollout-1.jsonl", "rollout-2.jsonl", "rollout-3.jsonl.zst"]),
        (claude_code, ["a.jsonl", "agent-b.jsonl", "c.jsonl"]),
        (openclaw, ["a.jsonl", "b.jsonl.reset.1", "openclaw-agent.sqlite"]),
    ],
)
def test_only_the_files_of_a_folder_are_taken(
    tmp_path: Path, importer: Any, names: list[str]
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(FIXTURES / importer.FORMAT, folder)
    with TranscriptLog.open("sqlite://") as log:
        before = Log(log).take(importer, folder)
    pipe, link, inner = (folder / name for name in names)
    os.mkfifo(pipe)
    link.symlink_to("nowhere")
    inner.mkdir()

    with TranscriptLog.open("sqlite://") as log:
        assert Log(log).take(importer, folder) == before
    assert importer_of(folder) is not None


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "gone.jsonl"
    with (
        TranscriptLog.open("sqlite://") as log,
        pytest.raises(ImportRefused, match=r"can't read .*gone\.jsonl: No such file"),
    ):
        Log(log).take(claude_code, missing)


@pytest.mark.parametrize(
    "kind", ["hermes", "openclaw", "openai-agents", "langgraph", "claude-code", "codex"]
)
def test_a_folder_without_a_session_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:  # fmt: skip
    said = refused(monkeypatch, capsys, "--format", kind, str(tmp_path))

    assert f"holds nothing of {kind}" in said


def test_a_pipe_is_not_taken_for_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    assert "neither a file nor a folder" in refused(monkeypatch, capsys, str(pipe))
    assert "name is empty" in refused(monkeypatch, capsys, "")


def test_a_line_of_any_type_is_looked_at(tmp_path: Path) -> None:
    tmp_path.joinpath("a.jsonl").write_text('{"type": []}\n{"type": {}}\n')

    assert importer_of(tmp_path) is None
