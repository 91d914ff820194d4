"""An import that is refused makes no log, and imports none of the files that were named with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from onrecord.projections.cli import main
from onrecord.transcript import importers

ZSTANDARD = b"\x28\xb5\x2f\xfd"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ONRECORD_DB", f"sqlite:///{tmp_path}/onrecord.db")
    return tmp_path


def said_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    """Return what a refused import says."""
    monkeypatch.setattr(sys, "argv", ["onrecord", "import", *words])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["damaged.db", "--format", "hermes"], "damaged.db can't be opened as a database"),
        (["nothing.db", "--format", "hermes"], "can't read nothing.db: No such file"),
    ],
)
def test_what_cannot_be_read_makes_no_log(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    words: list[str], says: str,
) -> None:  # fmt: skip
    place.joinpath("damaged.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    before = sorted(place.iterdir())

    assert says in said_of(monkeypatch, capsys, *words)
    assert sorted(place.iterdir()) == before


def test_a_packed_file_without_the_extra_makes_no_log_and_stops_the_files_before_it(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"session": "s", "type": "UserMessageReceived", "message": "u", "text": "Hello"}
    place.joinpath("good.jsonl").write_text(json.dumps(line))
    place.joinpath("rollout-1.jsonl.zst").write_bytes(ZSTANDARD)
    before = sorted(place.iterdir())
    monkeypatch.delitem(sys.modules, "onrecord.transcript.importers.zstd", raising=False)
    monkeypatch.delattr(importers, "zstd", raising=False)
    monkeypatch.setitem(sys.modules, "zstandard", None)

    said = said_of(monkeypatch, capsys, "good.jsonl", "rollout-1.jsonl.zst")

    assert "pip install 'onrecord[zstandard]'" in said
    assert sorted(place.iterdir()) == before
