"""Of a file with a flipped bit a reader gets what was written, or an error, or verify tells of it."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onrecord.transcript.errors import NotALog, StorageFailed
from onrecord.transcript.events import DeliveryAttempted, Event, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

PAGE_BYTES = 4096
FLIPS_A_PAGE = 8
WAL_FLIPS = 120
SESSIONS = ("one", "two", "three")
ROUNDS = 40

pytestmark = pytest.mark.faults


def events(number: int) -> tuple[Event, ...]:
    return (
        UserMessageReceived(message=f"m{number}", text=f"May I have {number}? " * 12),
        DeliveryAttempted(delivery=f"d{number}", text=f"You may have {number}. " * 24),
    )


def fill(log: TranscriptLog) -> None:
    for number in range(ROUNDS):
        log.append(SESSIONS[number % len(SESSIONS)], *events(number))


def everything(log: TranscriptLog, ids: list[Any]) -> list[Any]:
    """Return all that can be read, in each way of reading."""
    found = [log.find(id) for id in ids]
    return [
        *(list(log.read(session)) for session in SESSIONS),
        list(log.read_all()),
        log.sessions(),
        [None if record is None else (record.position, record.event) for record in found],
    ]


def flipped(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def flips(size: int, source: random.Random) -> Iterator[tuple[int, int]]:
    """Yield places and bits: in the header, the directory and the content of each page."""
    for page in range(0, size, PAGE_BYTES):
        for number in range(FLIPS_A_PAGE):
            within = source.randrange(*((0, 16), (16, 200), (200, 4096), (2048, 4096))[number % 4])
            yield page + within, source.randrange(8)


def outcome(path: Path, expected: list[Any], ids: list[Any]) -> str:
    """Return how a damaged log is read: as it was, not at all, otherwise and reported, or in silence."""
    try:
        with TranscriptLog.open(path, create=False) as log:
            if everything(log, ids) == expected:
                return "as it was"
            try:
                return "reported" if verify(log).faults else "in silence"
            except StorageFailed as error:
                return said(error)
    except StorageFailed as error:
        return said(error)
    except NotALog:
        return "no log"  # the header says so


def said(error: StorageFailed) -> str:
    """Return that an error says what to do, or the error."""
    if error.stored == "no" and not error.may_send and "onrecord verify" in str(error):
        return "not at all"
    return f"{type(error).__name__}: {error}"


def test_a_flipped_bit_in_any_page_is_no_other_content(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path) as log:
        fill(log)
        ids = [record.id for record in log.read_all()]
        expected = everything(log, ids)
    data = path.read_bytes()
    outcomes: Counter[str] = Counter()

    for at, bit in flips(len(data), random.Random(0)):
        path.write_bytes(flipped(data, at, bit))
        outcomes[outcome(path, expected, ids)] += 1
        for beside in tmp_path.glob("log.db-*"):
            beside.unlink()

    assert outcomes.keys() == {"as it was", "not at all", "reported", "no log"}, outcomes
    assert min(outcomes["not at all"], outcomes["reported"]) > 10


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """Give the folder that a process leaves if it is killed when all stands in the WAL."""
    with TranscriptLog.open(tmp_path / "live" / "log.db") as log:
        fill(log)
        shutil.copytree(tmp_path / "live", tmp_path / "left")
    return tmp_path / "left"


def test_a_flipped_bit_in_the_wal_of_a_dead_process_shows_against_a_head_kept_elsewhere(
    left: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(left, whole)
    with TranscriptLog.open(whole / "log.db") as log:
        expected = list(log.read_all())
        heads = [(name, *head) for name, head in verify(log).heads.items()]
    data, source = (left / "log.db-wal").read_bytes(), random.Random(0)
    outcomes: Counter[str] = Counter()

    for _ in range(WAL_FLIPS):
        case = tmp_path / "case"
        shutil.copytree(left, case)
        changed = flipped(data, source.randrange(len(data)), source.randrange(8))
        (case / "log.db-wal").write_bytes(changed)
        with TranscriptLog.open(case / "log.db", create=False) as log:
            found = list(log.read_all())
            assert found == expected[: len(found)]
            missing = len(found) < len(expected)
            assert bool(verify(log, heads=heads).faults) == missing
            outcomes["cut" if missing else "whole"] += 1
        shutil.rmtree(case)

    assert outcomes["cut"] > WAL_FLIPS / 2


def test_a_flipped_bit_in_the_wal_of_a_live_process_is_no_other_content(tmp_path: Path) -> None:
    path, source = tmp_path / "log.db", random.Random(0)
    outcomes: Counter[str] = Counter()
    with TranscriptLog.open(path) as log:
        fill(log)
        ids = [record.id for record in log.read_all()]
        expected = everything(log, ids)
        with path.with_name("log.db-wal").open("r+b", buffering=0) as wal:
            size = os.fstat(wal.fileno()).st_size
            for _ in range(WAL_FLIPS):
                at, bit = source.randrange(size), source.randrange(8)
                was = os.pread(wal.fileno(), 1, at)
                os.pwrite(wal.fileno(), flipped(was, 0, bit), at)

                outcomes[outcome(path, expected, ids)] += 1

                os.pwrite(wal.fileno(), was, at)
        assert everything(log, ids) == expected

    assert outcomes.keys() <= {"as it was", "not at all", "reported"}, outcomes
    assert len(outcomes) > 1
