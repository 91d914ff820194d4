"""Runners lose their connections in the middle of storing, and the server: what is stored stays right."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from postgres_server import Server
from standby_server import control, copy_of

from onrecord.projections.stored import Runner, StoredProjections
from onrecord.projections.transcript import build
from onrecord.transcript.events import DeliveryAttempted, DeliveryConfirmed, UserMessageReceived
from onrecord.transcript.log import TranscriptLog

LIMIT_SECONDS = 60
SESSIONS = 4
BOMBS = """
    CREATE SEQUENCE bombs;
    CREATE FUNCTION explode() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE
        number bigint := nextval('bombs');
    BEGIN
        IF number & (number - 1) = 0 THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER while_it_stores AFTER INSERT ON projected_turns
    FOR EACH ROW EXECUTE FUNCTION explode();
    CREATE CONSTRAINT TRIGGER while_it_commits AFTER INSERT ON projected_turns
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION explode()
"""
"""Ends a connection that stores a turn, as it stores it or in its commit: at 1, 2, 4, 8, 16 …."""


@contextmanager
def runners(url: str, *, count: int) -> Iterator[None]:
    """Let runners keep projections up, each with a log of its own, as in a process of its own."""
    logs = [TranscriptLog.open(url, busy_timeout=LIMIT_SECONDS) for _ in range(count)]
    running = [Runner(log) for log in logs]
    threads = [threading.Thread(target=runner.run) for runner in running]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for runner in running:
            runner.stop()
        for thread in threads:
            thread.join(LIMIT_SECONDS)
        for log in logs:
            log.close()
    assert not any(thread.is_alive() for thread in threads)


def converse(log: TranscriptLog, first: int, count: int) -> None:
    """Record turns in all sessions."""
    for n in range(first, first + count):
        for session in (f"s{i}" for i in range(SESSIONS)):
            log.append(
                session,
                UserMessageReceived(message=f"m{n}", text=f"question {n}"),
                DeliveryAttempted(delivery=f"d{n}", text=f"answer {n}"),
                DeliveryConfirmed(delivery=f"d{n}"),
            )


def holds(log: TranscriptLog) -> None:
    """Wait until nothing is behind, and hold what is stored against the log."""
    stored = StoredProjections(log)
    end = time.monotonic() + LIMIT_SECONDS
    while stored.behind():
        assert time.monotonic() < end, f"{stored.behind()} are still behind"
        time.sleep(0.02)
    assert list(stored.check()) == []
    for head in log.sessions():
        assert stored.transcript(head.name).rows == build(log, head.name).rows


def test_those_who_begin_at_once_make_one_build(postgres_url: str) -> None:
    many = 6
    with ExitStack() as made, ThreadPoolExecutor(many) as pool:
        logs = [made.enter_context(TranscriptLog.open(postgres_url)) for _ in range(many)]
        at_once = threading.Barrier(many)

        def begin(log: TranscriptLog) -> None:
            stored = StoredProjections(log)
            at_once.wait(LIMIT_SECONDS)
            assert stored.behind() == []

        list(pool.map(begin, logs))
        with logs[0].database.write() as connection:
            builds = connection.execute("SELECT count(*) FROM projection_builds").fetchone()

    assert builds == (1,)


def test_when_they_lose_their_connections_as_they_store(postgres_url: str) -> None:
    with TranscriptLog.open(postgres_url, busy_timeout=LIMIT_SECONDS) as log:
        with log.database.write() as connection:
            connection.several(BOMBS)
        with runners(postgres_url, count=2):
            converse(log, 0, 20)
            holds(log)

        with log.database.write() as connection:
            assert connection.execute("SELECT last_value FROM bombs").fetchone()[0] > 1 << 6


def test_when_the_server_crashes(postgres_server: Server) -> None:
    """Projections aren't synced, so a crash takes the last ones: they are made again."""
    with copy_of(postgres_server) as server:
        url = server.url("postgres")
        with (
            TranscriptLog.open(url, busy_timeout=LIMIT_SECONDS) as log,
            runners(url, count=2),
        ):
            for n in range(0, 9, 3):
                converse(log, n, 2)
                control(server, "-m", "immediate", "restart")
                converse(log, n + 2, 1)
                holds(log)
