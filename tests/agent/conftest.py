"""A log on a real file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onrecord.projections.conversation import project
from onrecord.projections.promise import check
from onrecord.projections.rows import Row
from onrecord.transcript.log import TranscriptLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.db"


@pytest.fixture
def log(path: Path) -> Iterator[TranscriptLog]:
    with TranscriptLog.open(path) as opened:
        yield opened


@pytest.fixture
def rows(log: TranscriptLog) -> Callable[[str], list[Row]]:
    def build(session: str) -> list[Row]:
        records = list(log.read(session))
        found = project(records)
        check(session, records, found)
        return found

    return build
