"""A record that can't be read is set aside with a finding, and the session goes on without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from onrecord.projections.rows import Row
from onrecord.projections.stored import RecordsSetAside, StoredProjections
from onrecord.projections.stored.tail import Tail
from onrecord.transcript.events import TurnFinalized, UserMessageReceived
from onrecord.transcript.log import TranscriptLog


def unsure(stored: StoredProjections) -> list[Row]:
    """Return the rows of a transcript that isn't handed out in silence."""
    with pytest.raises(RecordsSetAside) as caught:
        stored.transcript("s")
    return caught.value.rows


def test_the_session_goes_on(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        for n in range(4):
            log.append("s", UserMessageReceived(message=f"m{n}", text="hi"))
        log.append("other", UserMessageReceived(message="m", text="hi"))
        with log.database.write() as connection:
            connection.execute("DROP TRIGGER records_update")
            connection.execute("UPDATE records SET payload = x'c1' WHERE version IN (1, 3)")
        stored = StoredProjections(log)

        rows = unsure(stored)
        again = StoredProjections(log)
        log.append("s", TurnFinalized(turn="m3"))

        assert [row.message for row in rows] == ["m1", "m3"]
        assert [row.message for row in unsure(again)] == ["m1", "m3", ""]
        found = [f for f in again.findings("s") if f.code == "record-set-aside"]
        assert [finding.versions for finding in found] == [(1,), (3,)]
        assert ["left out" in fault.detail for fault in again.check(["s"])] == [True, True]
        assert list(again.check(["other"])) == []


def test_a_rebuild_takes_it_in_once_it_can_be_read(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        log.append("s", UserMessageReceived(message="m", text="hi"))
        payload = next(log.read("s")).payload
        with log.database.write() as connection:
            connection.execute("DROP TRIGGER records_update")
            connection.execute("UPDATE records SET payload = x'c1'")
        stored = StoredProjections(log)
        assert unsure(stored) == []

        with log.database.write() as connection:
            connection.execute("UPDATE records SET payload = ?", (payload,))
        stored.rebuild()

        assert [row.message for row in stored.transcript("s").rows] == ["m"]
        assert stored.findings("s") == []


def test_a_bug_of_the_fold_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    with TranscriptLog.open(tmp_path / "log.db") as log:
        log.append("s", UserMessageReceived(message="m", text="hi"))
        monkeypatch.setattr(Tail, "take", fail)

        assert unsure(StoredProjections(log)) == []


def test_it_is_told_of_a_session_that_is_kept_up(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        log.append("s", UserMessageReceived(message="m1", text="hi"))
        stored = StoredProjections(log)
        stored.catch_up("s")
        log.append("s", UserMessageReceived(message="m2", text="hi"))
        with log.database.write() as connection:
            connection.execute("DROP TRIGGER records_update")
            connection.execute("UPDATE records SET payload = x'c1' WHERE version = 2")

        assert [row.message for row in unsure(stored)] == ["m1"]
        assert "record-set-aside" in {finding.code for finding in stored.findings("s")}
