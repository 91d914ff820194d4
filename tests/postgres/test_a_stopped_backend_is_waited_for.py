"""A server's process that is stopped in the middle of an append holds up its session, and nobody else."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from postgres_server import Server
from standby_server import wait_for

from onrecord.transcript.errors import StorageBusy
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

GATE = 4242
STOPS_AT_THE_GATE = f"""
    CREATE FUNCTION stop_at_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF position('text of stopped'::bytea IN NEW.payload) > 0 THEN
            PERFORM pg_advisory_xact_lock_shared({GATE});
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER stop_at_the_gate AFTER INSERT ON records
    FOR EACH ROW EXECUTE FUNCTION stop_at_the_gate()
"""
"""Lets the append of one message wait in the middle of its transaction."""
AT_THE_GATE = (
    "SELECT a.pid FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid "
    f"WHERE l.locktype = 'advisory' AND l.objid = {GATE} AND NOT l.granted"
)
BUSY_SECONDS = 0.5


def said(message: str) -> UserMessageReceived:
    return UserMessageReceived(message=message, text=f"text of {message}")


def messages(log: TranscriptLog, session: str) -> list[str]:
    return [getattr(record.event, "message", "") for record in log.read(session)]


@contextmanager
def stopped_append(server: Server, url: str, log: TranscriptLog) -> Iterator[int]:
    """Append a message, and give the server's process that is stopped in the middle of it.

    It goes on in the end, and so does the append.
    """
    with log.database.write() as connection:
        connection.several(STOPS_AT_THE_GATE)
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(url, autocommit=True) as gate:
            gate.execute(f"SELECT pg_advisory_lock({GATE})".encode())
            appending = pool.submit(log.append, "s", said("stopped"))
            backend = int(str(wait_for(server, AT_THE_GATE)[0]))
            os.kill(backend, signal.SIGSTOP)
        try:
            yield backend
            assert not appending.done()
        finally:
            os.kill(backend, signal.SIGCONT)
        appending.result()


def test_others_are_told_how_long_they_waited_and_their_sessions_go_on(
    postgres_server: Server, postgres_url: str
) -> None:
    with (
        TranscriptLog.open(postgres_url, busy_timeout=60) as log,
        TranscriptLog.open(postgres_url, busy_timeout=BUSY_SECONDS) as other,
    ):
        first = log.append("s", said("before"))[0]
        with stopped_append(postgres_server, postgres_url, log):
            for _ in range(2):
                with pytest.raises(StorageBusy) as caught:
                    other.append("s", said("a"))
                error = caught.value
                assert error.waited >= BUSY_SECONDS
                assert (error.stored, error.may_send, error.may_retry) == ("no", False, True)
            for n in range(3):
                assert other.append("t", said(f"t{n}"))[0].version == n + 1
            assert list(other.read("s")) == [first]

        assert other.append("s", said("a"))[0].version == 3
        assert messages(other, "s") == ["before", "stopped", "a"]
        assert verify(other).faults == []


def test_followers_wait_for_it_and_miss_nothing(postgres_server: Server, postgres_url: str) -> None:
    with (
        TranscriptLog.open(postgres_url, busy_timeout=60) as log,
        TranscriptLog.open(postgres_url) as other,
        other.subscribe() as subscription,
    ):
        with stopped_append(postgres_server, postgres_url, log):
            after = other.append("t", said("after"))[0]
            assert subscription.next(BUSY_SECONDS) is None

        stopped = next(subscription)
        assert (stopped.session, stopped.version) == ("s", 1)
        assert next(subscription) == after


def test_appends_of_the_same_log_are_told_how_long_they_waited(
    postgres_server: Server, postgres_url: str
) -> None:
    async def awaited(log: TranscriptLog) -> None:
        await log.aio.append("t", said("awaited"))

    with TranscriptLog.open(postgres_url, busy_timeout=BUSY_SECONDS) as log:
        with (  # noqa: PT012 - it is told at the end
            # The one that is stopped waited for the gate, and is told so as soon as it goes on.
            pytest.raises(StorageBusy, match="another process held the lock"),
            stopped_append(postgres_server, postgres_url, log),
        ):
            for append in (
                lambda: log.append("t", said("refused")),
                lambda: asyncio.run(awaited(log)),
            ):
                with pytest.raises(StorageBusy, match="of this process was under way") as caught:
                    append()
                error = caught.value
                assert error.waited >= BUSY_SECONDS
                assert (error.stored, error.may_send, error.may_retry) == ("no", False, True)
            assert log.writer.waiting == 0

        assert messages(log, "t") == []
        assert log.append("t", said("after"))[0].version == 1
        assert messages(log, "s") == []
