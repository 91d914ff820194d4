"""The tables refuse every change but an erasure, and verify finds what was changed beneath them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from onrecord.transcript.events import ContentErased, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify


@pytest.fixture
def log(postgres_url: str) -> Iterator[TranscriptLog]:
    with TranscriptLog.open(postgres_url) as log:
        for n in range(1, 7):
            log.append("s", UserMessageReceived(message=f"m{n}", text=f"text {n}"))
        log.append("t", UserMessageReceived(message="m1", text="other"))
        yield log


@pytest.fixture
def connection(log: TranscriptLog, postgres_url: str) -> Iterator[psycopg.Connection[object]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


COPY = (
    "INSERT INTO records SELECT {position}, session_key, {version}, decode(md5('x'), 'hex'), type, "
    "event_version, recorded_at, generation, commitment, leaf, chain, salt, payload, {transaction} "
    "FROM records WHERE position = 6"
)
NOW = "pg_current_xact_id()"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET type = 'Other' WHERE position = 1",
        "UPDATE records SET payload = '\\x80' WHERE position = 1",
        "UPDATE records SET payload = NULL, salt = NULL WHERE position = 1",
        "UPDATE records SET position = 99 WHERE position = 7",
        f"UPDATE records SET transaction_id = {NOW}",
        "DELETE FROM records WHERE position = 7",
        "TRUNCATE records CASCADE",
        "TRUNCATE sessions CASCADE",
        "TRUNCATE erasures",
        "DELETE FROM sessions",
        "UPDATE sessions SET version = 1",
        "UPDATE sessions SET name = 'a' WHERE version = 6",
        "UPDATE sessions SET session_key = decode(md5('x'), 'hex') WHERE version = 6",
        COPY.format(position=2, version="version + 1", transaction=NOW),
        COPY.format(position=99, version="version + 2", transaction=NOW),
        COPY.format(position=99, version="version", transaction=NOW),
        COPY.format(position=99, version="version + 1", transaction="'1'"),
        COPY.format(position=4, version="version + 1", transaction=NOW)
        + " ON CONFLICT DO NOTHING; "
        "UPDATE records SET version = 7 WHERE position = 6",
        "INSERT INTO erasures VALUES (1, 2)",
    ],
)
def test_change_is_refused(connection: psycopg.Connection[object], statement: str) -> None:
    before = connection.execute("SELECT * FROM records ORDER BY position").fetchall()

    with pytest.raises(psycopg.IntegrityError):
        connection.execute(statement.encode())

    assert connection.execute("SELECT * FROM records ORDER BY position").fetchall() == before


def test_only_content_under_a_recorded_erasure_may_go(log: TranscriptLog) -> None:
    erased = log.append("s", ContentErased(target={"message": "m2"}))[0]
    with log.database.write() as connection:
        connection.execute("INSERT INTO erasures VALUES (2, ?)", (erased.position,))
        connection.execute("UPDATE records SET salt = NULL, payload = NULL WHERE position = 2")

    assert next(log.read("s", after=1)).payload is None
    assert verify(log).faults == []
    for statement in ("DELETE FROM erasures", "UPDATE erasures SET erased_by = 1"):
        with pytest.raises(Exception, match="final"), log.database.write() as connection:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "kind", "version"),
    [
        ("UPDATE records SET payload = '\\x80' WHERE position = 3", "payload", 3),
        ("UPDATE records SET payload = NULL, salt = NULL WHERE position = 3", "payload", 3),
        ("UPDATE records SET type = 'Other' WHERE position = 3", "edited", 3),
        ("UPDATE records SET recorded_at = recorded_at + 1 WHERE position = 2", "edited", 2),
        ("UPDATE records SET leaf = sha256('x') WHERE position = 2", "edited", 2),
        ("UPDATE records SET chain = sha256('x') WHERE position = 2", "inserted", 2),
        ("DELETE FROM records WHERE position = 3", "removed", 4),
        ("DELETE FROM records WHERE position IN (5, 6)", "cut", 5),
        ("UPDATE sessions SET chain = sha256('x') WHERE version = 6", "head", 6),
    ],
)
def test_verify_names_what_was_changed(
    log: TranscriptLog,
    connection: psycopg.Connection[object],
    statement: str,
    kind: str,
    version: int,
) -> None:
    connection.execute("SET session_replication_role = replica")  # which fires no trigger
    connection.execute(statement.encode())

    result = verify(log)
    only_other = verify(log, "t")

    assert result.first_fault is not None
    assert (result.first_fault.kind, result.first_fault.version) == (kind, version)
    assert result.first_fault.session == "s"
    assert only_other.faults == []
