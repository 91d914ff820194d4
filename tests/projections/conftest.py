"""What tests of the command share: one that runs in this process, on a log of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onrecord.projections.cli import main
from onrecord.transcript.interchange import import_lines
from onrecord.transcript.log import TranscriptLog

SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"


class Done(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Done]


@pytest.fixture
def log(tmp_path: Path) -> Iterable[TranscriptLog]:
    """Give an empty log in a file, which `command` reads too."""
    with TranscriptLog.open(f"sqlite:///{tmp_path}/log.db") as log:
        yield log


@pytest.fixture
def command(
    log: TranscriptLog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """Give what runs the command on the log, 80 columns wide and not on a terminal."""
    monkeypatch.setenv("ONRECORD_DB", f"sqlite:///{tmp_path}/log.db")
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["onrecord", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return Done(int(left.value.code or 0), out, err)

    return run


@pytest.fixture
def scenario(log: TranscriptLog) -> Callable[[str], Mapping[str, Any]]:
    """Give what reads an incident into the log, under its name; return it."""

    def read(name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads((SCENARIOS / f"{name}.json").read_text())
        lines = [json.dumps({**event, "session": name}) for event in found["events"]]
        import_lines(log, lines, name)
        return found

    return read
