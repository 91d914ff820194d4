"""Whatever becomes of the stored projections, appends go on, and transcripts come from the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from failing_turns import turn

from onrecord.projections.stored import StoredProjections
from onrecord.projections.transcript import build
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import dbapi
from onrecord.transcript.verify import verify

TURNS_BEFORE, TURNS_AFTER = 3, 4
TABLES = (
    "projection_builds", "projected_sessions", "projected_turns", "projected_names",
    "projected_deliveries", "projected_findings",
)  # fmt: skip

pytestmark = pytest.mark.faults


def harms() -> Iterator[tuple[str, list[str]]]:
    """Yield what may be done to the tables, and a name for it."""
    for table in TABLES:
        yield f"{table} dropped", [f"DROP TABLE {table}"]
        yield f"{table} emptied", [f"DELETE FROM {table}"]
        for verb in ("INSERT", "UPDATE", "DELETE"):
            refusal = "BEGIN SELECT RAISE(ABORT, 'broken'); END"
            trigger = f"CREATE TRIGGER broken BEFORE {verb} ON {table} {refusal}"
            yield f"{table} refuses {verb}", [trigger]
    yield "all dropped", [f"DROP TABLE {table}" for table in TABLES]
    yield "rows overwritten", ["UPDATE projected_turns SET rows = x'00ff00ff'"]
    yield "states overwritten", ["UPDATE projected_sessions SET state = x'c1'"]


def do_harm(path: Path, statements: list[str]) -> None:
    other = dbapi.connect(str(path), isolation_level=None, timeout=30)
    other.execute("PRAGMA foreign_keys=OFF")
    for statement in statements:
        other.execute(statement)
    other.close()


def take(log: TranscriptLog, number: int) -> None:
    for append in turn(f"t{number}", "chat", f"This is answer {number}.", number * 10):
        records = log.append(append.session, *append.events, durable=append.durable)
        assert [record.id for record in records] == append.ids


def test_the_tables_are_those_of_the_schema(tmp_path: Path) -> None:
    with TranscriptLog.open(tmp_path / "log.db") as log:
        found = log.database.read(
            "listing tables",
            lambda connection: connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'project%'"
            ).fetchall(),
        )

    assert {name for (name,) in found} == set(TABLES)


@pytest.mark.parametrize("harm", [pytest.param(how, id=name) for name, how in harms()])
def test_appends_go_on_and_the_transcript_is_the_logs(tmp_path: Path, harm: list[str]) -> None:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path) as log:
        stored = StoredProjections(log)
        for number in range(TURNS_BEFORE):
            take(log, number)
        assert stored.transcript("chat") == build(log, "chat")

        do_harm(path, harm)
        for number in range(TURNS_BEFORE, TURNS_BEFORE + TURNS_AFTER):
            take(log, number)
            assert stored.transcript("chat") == build(log, "chat")

        versions = [record.version for record in log.read("chat")]
        assert versions == list(range(1, 7 * (TURNS_BEFORE + TURNS_AFTER) + 1))
        assert verify(log, "chat").faults == []
