"""Stored rows that aren't those that were stored are found, told, and projected anew from the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onrecord.projections.stored import StoredProjections
from onrecord.projections.stored import projections as stored_projections
from onrecord.projections.transcript import build
from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

TURNS = 5


def filled(log: TranscriptLog) -> StoredProjections:
    """Record a few turns, and project them."""
    for n in range(TURNS):
        log.append(
            "s",
            UserMessageReceived(message=f"t{n}", text="hi"),
            DeliveryAttempted(delivery=f"d{n}", turn=f"t{n}", text=f"answer {n}"),
            DeliveryConfirmed(delivery=f"d{n}"),
            TurnFinalized(turn=f"t{n}"),
        )
    stored = StoredProjections(log)
    stored.catch_up("s")
    assert list(stored.check()) == []
    return stored


def reword(connection: Any) -> None:
    rows = connection.execute("SELECT rows FROM projected_turns WHERE place = 2").fetchone()[0]
    changed = bytes(rows).replace(b"answer", b"ANSWER")
    connection.execute("UPDATE projected_turns SET rows = ? WHERE place = 2", (changed,))


def garble(connection: Any) -> None:
    connection.execute("UPDATE projected_turns SET rows = x'c1' WHERE place = 2")


def lose(connection: Any) -> None:
    connection.execute("DELETE FROM projected_turns WHERE place = 3")


def hide(connection: Any) -> None:
    connection.execute("UPDATE projected_turns SET shown = 0 WHERE place = 1")


DAMAGE = pytest.mark.parametrize("damage", [reword, garble, lose, hide])


@DAMAGE
def test_a_check_finds_it(tmp_path: Path, damage: Callable[[Any], None]) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        stored = filled(log)

        with log.database.write() as connection:
            damage(connection)

        assert [fault.session for fault in stored.check()]
        stored.rebuild()
        assert list(stored.check()) == []


@DAMAGE
def test_the_next_build_finds_it_and_reads_the_log(
    tmp_path: Path, damage: Callable[[Any], None], caplog: pytest.LogCaptureFixture
) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        stored = filled(log)
        with log.database.write() as connection:
            damage(connection)

        with caplog.at_level(logging.WARNING):
            found = stored.transcript("s")

        assert found == build(log, "s")
        assert "projected anew" in caplog.text
        assert "answer" not in caplog.text.lower()
        assert list(stored.check()) == []


def test_deliveries_and_findings_are_checked_too(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        stored = filled(log)

        with log.database.write() as connection:
            connection.execute("DELETE FROM projected_deliveries")
            found = msgspec.msgpack.encode([_finding()])
            connection.execute(
                "INSERT INTO projected_findings SELECT min(id), ? FROM projected_turns", (found,)
            )

        details = " ".join(fault.detail for fault in stored.check())
        assert "deliveries" in details
        assert "findings" in details


def _finding() -> dict[str, Any]:
    return {"code": "delivered-twice", "session": "s", "turn": "t1", "versions": [1], "detail": "x"}


@pytest.mark.parametrize("last", [1, 3, 99])
def test_the_last_turns_miss_none(
    tmp_path: Path, last: int, caplog: pytest.LogCaptureFixture
) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        stored = filled(log)
        whole = stored.transcript("s", last=last)
        with log.database.write() as connection:
            connection.execute(f"DELETE FROM projected_turns WHERE place = {TURNS - 1}")

        assert stored.transcript("s", last=last) == whole
        assert "projected anew" in caplog.text


def test_other_rules_project_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        old = filled(log)
        with log.database.write() as connection:
            reword(connection)

        monkeypatch.setattr(stored_projections, "CODE", stored_projections.CODE + 1)
        new = StoredProjections(log)

        assert new.transcript("s") == build(log, "s")
        assert list(new.check()) == []
        assert list(old.check()) != []  # of which the new rules took nothing


def test_a_broken_store_mutes_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        stored = filled(log)
        with log.database.write() as connection:
            connection.execute("DROP TABLE projected_turns")

        log.append("s", UserMessageReceived(message="more", text="still there?"))

        assert stored.transcript("s") == build(log, "s")
        assert "is made from the log" in caplog.text
