"""A large source is read by another process while this one appends: what comes out is the same."""

from __future__ import annotations

import gzip
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import ahead, batches, running
from onrecord.transcript.importers.running import import_source, importer_of
from onrecord.transcript.importers.source import Importer
from onrecord.transcript.interchange import export_lines
from onrecord.transcript.log import TranscriptLog

FIXTURE = Path("tests/interop/fixtures/openai-agents/turns/sessions.db.gz")


@pytest.fixture
def source(tmp_path: Path, pytestconfig: pytest.Config) -> tuple[Importer, Path]:
    path = tmp_path / "sessions.db"
    path.write_bytes(gzip.decompress((pytestconfig.rootpath / FIXTURE).read_bytes()))
    importer = importer_of(path)
    assert importer is not None
    return importer, path


def exported(log: TranscriptLog) -> list[dict[str, Any]]:
    own = ("position", "digest", "imported_at")
    lines = [json.loads(line) for head in log.sessions() for line in export_lines(log, head.name)]
    return [{key: value for key, value in line.items() if key not in own} for line in lines]


def test_both_ways_give_the_same_events(
    source: tuple[Importer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with TranscriptLog.open("sqlite://") as here, TranscriptLog.open("sqlite://") as there:
        done = import_source(here, *source)
        monkeypatch.setattr(running, "LARGE", 0)
        monkeypatch.setattr(os, "cpu_count", lambda: 2)
        told: list[int] = []
        again = import_source(there, *source, lambda messages, _: told.append(messages))

        assert exported(there) == exported(here)
        assert again == done
        assert told[-1] == done.messages > 0


def test_a_batch_stays_the_same_on_its_way(source: tuple[Importer, Path]) -> None:
    importer, path = source
    here = list(batches.batches(importer, path, 1 << 20))
    there = list(ahead.batches_ahead(importer, path, 1 << 20))

    assert [batch.sessions for batch in there] == [batch.sessions for batch in here]
    for one, other in zip(there, here, strict=True):
        sent = {
            name: [(d.event.id, d.event.type) for d in drafts]
            for name, drafts in one.drafts.items()
        }
        read = {
            name: [(d.event.id, d.event.type) for d in drafts]
            for name, drafts in other.drafts.items()
        }
        assert sent == read


def test_what_a_source_is_refused_for_is_told_by_the_reader(
    source: tuple[Importer, Path], tmp_path: Path
) -> None:
    importer, _ = source
    other = tmp_path / "other.db"
    other.write_bytes(b"SQLite format 3\0" + b"\1" * 500)

    with pytest.raises(ImportRefused, match=r"other\.db can't be opened as a database"):
        list(ahead.batches_ahead(importer, other, 1 << 20))


def test_a_reader_that_is_killed_is_told_in_a_sentence(
    source: tuple[Importer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import multiprocessing

    importer, path = source
    started = time.monotonic()

    def kill() -> None:
        while time.monotonic() < started + 30:
            for child in multiprocessing.active_children():
                assert child.pid is not None
                os.kill(child.pid, signal.SIGKILL)
                return
            time.sleep(0.001)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(ImportRefused, match="the process that read it ended"):
        list(ahead.batches_ahead(importer, path, 1 << 20))
    killer.join()
