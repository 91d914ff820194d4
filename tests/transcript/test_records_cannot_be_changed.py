"""The tables refuse every change but an erasure, and verify finds what was changed beneath them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from onrecord.transcript.events import ContentErased, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage import dbapi
from onrecord.transcript.verify import verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    with TranscriptLog.open(path) as log:
        for n in range(1, 7):
            log.append("s", UserMessageReceived(message=f"m{n}", text=f"text {n}"))
        log.append("t", UserMessageReceived(message="m1", text="other"))
    return path


@pytest.fixture
def connection(path: Path) -> Iterator[Any]:
    connection = dbapi.connect(str(path), isolation_level=None)
    yield connection
    connection.close()


COPY = (
    "SELECT session_key, {}, randomblob(16), type, event_version, recorded_at, generation, "
    "commitment, leaf, chain, salt, payload FROM records WHERE position = 6"
)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET type = 'Other' WHERE position = 1",
        "UPDATE records SET payload = x'80' WHERE position = 1",
        "UPDATE records SET payload = NULL, salt = NULL WHERE position = 1",
        "UPDATE records SET position = 99 WHERE position = 7",
        "DELETE FROM records WHERE position = 7",
        "DELETE FROM sessions",
        "UPDATE sessions SET version = 1",
        "UPDATE sessions SET name = x'61' WHERE version = 6",
        "UPDATE sessions SET session_key = randomblob(16)",
        "INSERT OR REPLACE INTO records SELECT * FROM records WHERE position = 3",
        "INSERT OR REPLACE INTO records SELECT 2, " + COPY.format("version + 1")[7:],
        "INSERT INTO records SELECT NULL, " + COPY.format("version + 2")[7:],
        "INSERT INTO erasures VALUES (1, 2)",
    ],
)
def test_change_is_refused(connection: Any, statement: str) -> None:
    before = connection.execute("SELECT * FROM records").fetchall()

    with pytest.raises(dbapi.IntegrityError):
        connection.execute(statement)

    assert connection.execute("SELECT * FROM records").fetchall() == before


def test_only_content_under_a_recorded_erasure_may_go(path: Path) -> None:
    with TranscriptLog.open(path) as log:
        erased = log.append("s", ContentErased(target={"message": "m2"}))[0]
        with log.database.write() as connection:
            connection.execute("INSERT INTO erasures VALUES (2, ?)", (erased.position,))
            connection.execute("UPDATE records SET salt = NULL, payload = NULL WHERE position = 2")

        assert next(log.read("s", after=1)).payload is None
        assert verify(log).faults == []
        with pytest.raises(Exception, match="final"), log.database.write() as connection:
            connection.execute("DELETE FROM erasures")


def _bare(connection: Any, *statements: str) -> None:
    triggers = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    for (name,) in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("PRAGMA foreign_keys=OFF")
    for statement in statements:
        connection.execute(statement)


SWAP = (
    "UPDATE records SET version = -1, commitment = zeroblob(32) WHERE position = 99",
    "PRAGMA ignore_check_constraints=ON",
    "UPDATE records SET version = 100 WHERE position = 3",
    "UPDATE records SET version = 3 WHERE position = 4",
    "UPDATE records SET version = 4 WHERE position = 3",
)
INTRUDER = (
    "UPDATE records SET version = -version WHERE position IN (4, 5, 6)",
    "UPDATE records SET version = 1 - version WHERE version < 0",
)


@pytest.mark.parametrize(
    ("statements", "kind", "version"),
    [
        (["UPDATE records SET payload = x'80' WHERE position = 3"], "payload", 3),
        (["UPDATE records SET payload = NULL, salt = NULL WHERE position = 3"], "payload", 3),
        (["UPDATE records SET type = 'Other' WHERE position = 3"], "edited", 3),
        (["UPDATE records SET recorded_at = recorded_at + 1 WHERE position = 2"], "edited", 2),
        (["UPDATE records SET id = randomblob(16) WHERE position = 2"], "edited", 2),
        (["UPDATE records SET generation = 5 WHERE position = 2"], "edited", 2),
        (["UPDATE records SET leaf = randomblob(32) WHERE position = 2"], "edited", 2),
        (["UPDATE records SET chain = randomblob(32) WHERE position = 2"], "inserted", 2),
        (["DELETE FROM records WHERE position = 3"], "removed", 4),
        (["DELETE FROM records WHERE position IN (5, 6)"], "cut", 5),
        (list(SWAP), "moved", 3),
        (["PRAGMA ignore_check_constraints=ON", *INTRUDER], "moved", 5),
        (["UPDATE sessions SET chain = zeroblob(32) WHERE version = 6"], "head", 6),
    ],
)
def test_verify_names_what_was_changed(
    path: Path, connection: Any, statements: list[str], kind: str, version: int
) -> None:
    _bare(connection, *statements)
    connection.close()

    with TranscriptLog.open(path) as log:
        result = verify(log)
        only_other = verify(log, "t")

    assert result.first_fault is not None
    assert (result.first_fault.kind, result.first_fault.version) == (kind, version)
    assert result.first_fault.session == "s"
    assert only_other.faults == []


def _cut(connection: Any) -> None:
    _bare(
        connection,
        "DELETE FROM records WHERE position IN (5, 6)",
        "UPDATE sessions SET version = 4, chain = (SELECT chain FROM records WHERE position = 4) "
        "WHERE version = 6",
    )


def _forget(connection: Any) -> None:
    _bare(
        connection,
        "DELETE FROM records WHERE position < 7",
        "DELETE FROM sessions WHERE version = 6",
    )


@pytest.mark.parametrize("change", [_cut, _forget])
def test_a_cut_tail_shows_against_a_kept_head_alone(
    path: Path, change: Callable[[Any], None]
) -> None:
    with TranscriptLog.open(path) as log:
        heads = [(name, *head) for name, head in verify(log).heads.items()]
    connection = dbapi.connect(str(path), isolation_level=None)
    change(connection)
    connection.close()

    with TranscriptLog.open(path) as log:
        alone = verify(log)
        against = verify(log, heads=heads)

    assert alone.faults == []
    assert "kept elsewhere" in alone.limits
    assert [fault.kind for fault in against.faults] == ["cut"]


def test_fresh_heads_hold(path: Path) -> None:
    with TranscriptLog.open(path) as log:
        result = verify(log)
        again = verify(log, heads=[(name, *head) for name, head in result.heads.items()])

    assert (result.records, result.sessions) == (7, 2)
    assert again.faults == []
