"""Who follows the log by position misses nothing, waits for no stranger, and hears of each commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from postgres_server import Server

from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage.postgres import PostgresDatabase

HEARD = 30.0
"""Seconds in which a record must have come."""


def said(message: str) -> UserMessageReceived:
    return UserMessageReceived(message=message, text="x")


def database(log: TranscriptLog) -> PostgresDatabase:
    assert isinstance(log.database, PostgresDatabase)
    return log.database


@pytest.fixture
def logs(postgres_url: str) -> Iterator[tuple[TranscriptLog, TranscriptLog]]:
    with TranscriptLog.open(postgres_url) as one, TranscriptLog.open(postgres_url) as other:
        yield one, other


def test_a_record_waits_for_lower_positions_that_may_come(
    logs: tuple[TranscriptLog, TranscriptLog],
) -> None:
    one, other = logs
    with one.database.write(sessions=("s",), events=5):
        committed = other.append("t", said("a"))[0]

        assert list(other.read_all()) == []
        assert other.last_position() == 0
        assert list(other.read("t")) == [committed]

    assert list(other.read_all()) == [committed]
    assert committed.position == 6


def test_other_programs_are_not_waited_for(
    logs: tuple[TranscriptLog, TranscriptLog], postgres_server: Server, postgres_url: str
) -> None:
    log, _ = logs
    with (
        psycopg.connect(postgres_url) as here,
        postgres_server.database() as elsewhere,
        psycopg.connect(elsewhere) as there,
    ):
        for connection in (here, there):
            connection.execute("SELECT pg_current_xact_id()")
        record = log.append("s", said("a"))[0]

        assert list(log.read_all()) == [record]


def test_a_log_restored_into_another_cluster_is_read(
    logs: tuple[TranscriptLog, TranscriptLog],
) -> None:
    """Its transaction ids may be far ahead of those of the server."""
    log, _ = logs
    restored = log.append("s", said("a"))[0]
    with log.database.write() as connection:
        connection.several(
            "ALTER TABLE records DISABLE TRIGGER USER; "
            "UPDATE records SET transaction_id = '99999999999'; "
            "ALTER TABLE records ENABLE TRIGGER USER"
        )

    new = log.append("s", said("b"))[0]

    assert list(log.read_all()) == [restored, new]


def test_many_writers_are_followed_without_a_gap(postgres_url: str) -> None:
    writers, each = 4, 40

    def write(n: int) -> None:
        with TranscriptLog.open(postgres_url) as log:
            for i in range(each):
                events = [said(f"{n}-{i}-{k}") for k in range(1 + i % 3)]
                log.append(f"s{(n + i) % 3}", *events, durable=i % 4 == 0)

    with TranscriptLog.open(postgres_url) as log, ThreadPoolExecutor(writers) as pool:
        wanted = writers * sum(1 + i % 3 for i in range(each))
        with log.subscribe() as subscription:
            writing = [pool.submit(write, n) for n in range(writers)]
            followed = [next(subscription) for _ in range(wanted)]
        for future in writing:
            future.result()

        assert followed == list(log.read_all())
        for session in ("s0", "s1", "s2"):
            mine = [record for record in followed if record.session == session]
            assert [record.version for record in mine] == list(range(1, len(mine) + 1))


def test_a_killed_listener_is_replaced(logs: tuple[TranscriptLog, TranscriptLog]) -> None:
    one, other = logs
    following = database(one)
    got: list[Recorded] = []

    def follow() -> None:
        with one.subscribe() as subscription:
            got.extend(next(subscription) for _ in range(2))

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(follow)
        first = _listening(following, None)
        other.append("s", said("a"))
        with other.database.write() as connection:
            connection.execute("SELECT pg_terminate_backend(?::integer)", (first,))
        second = _listening(following, first)
        before = following.data_version()
        other.append("s", said("b"))
        future.result(HEARD)

    assert second != first
    assert [record.version for record in got] == [1, 2]
    assert _moved(following, before)


def test_closing_ends_the_listener(postgres_url: str) -> None:
    with TranscriptLog.open(postgres_url) as log:
        log.database.data_version()
        assert [t for t in threading.enumerate() if t.name == "onrecord-listen"]

    assert not [t for t in threading.enumerate() if t.name == "onrecord-listen"]


def _moved(database: PostgresDatabase, before: int) -> bool:
    end = time.monotonic() + HEARD
    while time.monotonic() < end:
        if database.data_version() != before:
            return True
        threading.Event().wait(0.01)
    return False


def _listening(database: PostgresDatabase, before: int | None) -> int:
    """Return the process that listens, once it is another than `before`."""
    end = time.monotonic() + HEARD
    while time.monotonic() < end:
        connection = database._listener.connection
        backend = connection.backend if connection is not None else None
        if backend is not None and backend[0] != before:
            return backend[0]
        threading.Event().wait(0.01)
    raise AssertionError("nobody listens")
