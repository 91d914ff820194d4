"""A log whose file is deleted or replaced while it is open says so, before anything is sent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from other_process import run

from onrecord.transcript.errors import NotALog, StorageFailed
from onrecord.transcript.events import DeliveryAttempted, Event, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

ATTEMPT = DeliveryAttempted(delivery="d", text="The gate is open.")

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform == "win32", reason="an open file can't be deleted there"),
]

READ = """
import sys
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify
with TranscriptLog.open(sys.argv[1], create=False) as log:
    assert verify(log).faults == []
    print(*(record.id for record in log.read("s")))
"""


def said(message: str) -> Event:
    return UserMessageReceived(message=message, text="May I?")


def deleted(path: Path) -> None:
    path.unlink()


def replaced_by_a_log(path: Path) -> None:
    other = path.with_name("other.db")
    with TranscriptLog.open(other) as log:
        log.append("s", said("of another log"))
    other.replace(path)


def replaced_by_a_copy(path: Path) -> None:
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def replaced_by_something_else(path: Path) -> None:
    path.unlink()
    path.write_text("dear diary", encoding="utf-8")


def refuse(log: TranscriptLog) -> None:
    """Hold that nothing works, and that each error says what it has to."""
    for append in (ATTEMPT, said("m2")):
        with pytest.raises(StorageFailed, match="deleted or replaced") as caught:
            log.append("s", append)
        assert (caught.value.stored, caught.value.may_send) == ("no", False)
    for read in (log.read("s"), log.read_all()):
        with pytest.raises(StorageFailed, match="deleted or replaced"):
            list(read)
    with log.subscribe() as following, pytest.raises(StorageFailed, match="deleted or replaced"):
        following.next(1.0)


@pytest.mark.parametrize(
    "happens", [deleted, replaced_by_a_log, replaced_by_a_copy, replaced_by_something_else]
)
def test_nothing_is_appended_and_the_log_put_back_goes_on(
    tmp_path: Path, happens: Callable[[Path], None]
) -> None:
    path, kept = tmp_path / "log.db", tmp_path / "kept.db"
    with TranscriptLog.open(path) as log:
        (first,) = log.append("s", said("m1"))
        kept.hardlink_to(path)
        happens(path)
        found = path.read_bytes() if path.exists() else None

        refuse(log)

        assert (path.read_bytes() if path.exists() else None) == found
        kept.replace(path)
        (second,) = log.append("s", ATTEMPT)
        assert (first.version, second.version) == (1, 2)
    assert run(READ, str(path)).split() == [str(first.id), str(second.id)]


def test_a_log_that_is_gone_for_good_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path) as log:
        log.append("s", said("m1"))
        path.unlink()

        refuse(log)

    with pytest.raises(NotALog):
        TranscriptLog.open(path, create=False)


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_what_stands_in_a_wal_that_is_gone_is_saved_when_the_log_is_closed(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path) as log:
        records = [*log.append("s", said("m1")), *log.append("s", ATTEMPT)]
        path.with_name(path.name + ending).unlink()

        refuse(log)

    assert run(READ, str(path)).split() == [str(record.id) for record in records]
    with TranscriptLog.open(path) as log:
        assert log.append("s", said("m2"))[0].version == 3
        assert verify(log).faults == []
