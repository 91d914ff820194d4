"""A log of each earlier schema opens, reads the same and goes on; a fresh one has the same schema."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from onrecord.transcript.events import TurnFinalized, UnknownEvent, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage.schema import SCHEMA_VERSION
from onrecord.transcript.verify import verify

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("schema-*.db"))
HEADS = [
    ("s", 4, bytes.fromhex("f0b4e365750c973c4f37b98e44a9274381d98e0ab3c9098c6dbf9d9bf90fb393")),
    ("other", 1, bytes.fromhex("162ec4efe2a6700f5c5819bcac09e5629709db42b97206bf59e1d404b19bcd32")),
]


def _schema(log: TranscriptLog) -> list[Any]:
    statement = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
    return log.database.read("asking", lambda c: c.execute(statement).fetchall())


def test_each_schema_has_a_fixture() -> None:
    assert [path.stem for path in FIXTURES] == [f"schema-{n + 1}" for n in range(SCHEMA_VERSION)]


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_an_old_log_reads_the_same(tmp_path: Path, fixture: Path) -> None:
    path = Path(shutil.copy(fixture, tmp_path / "log.db"))

    with TranscriptLog.open(path, migrate=True) as log, TranscriptLog.open("sqlite://") as fresh:
        assert verify(log, heads=HEADS).faults == []
        assert _schema(log) == _schema(fresh)
        message, attempt, final, second = (record.event for record in log.read("s"))
        plan = next(log.read("other")).event
        again = log.append("s", TurnFinalized(turn="t1", text="Hallo"))[0]
        new = log.append("s", UserMessageReceived(message="m2", text="x"))[0]

    assert isinstance(message, UserMessageReceived)
    assert (message.text, message.replaced) == (
        "Grüße \ufffd",
        {"text": b"Gr\xc3\xbc\xc3\x9fe \xed\xa0\xbd"},
    )
    assert attempt.type == "DeliveryAttempted"
    assert second.conflicts_with == final.id
    assert isinstance(plan, UnknownEvent)
    assert plan.fields == {"steps": [1, 2]}
    assert (again.version, again.generation, new.version) == (3, 1, 5)
