"""A connection that ends in the middle of an append: it is written or not, once, and never unknown."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cutting_proxy import Proxy, proxy_before
from postgres_server import Server, running_server

from onrecord.transcript.errors import AppendInDoubt, StorageBusy, StorageFailed
from onrecord.transcript.events import Source, UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage.postgres import POOL_OVERFLOW, POOL_SIZE, PostgresDatabase
from onrecord.transcript.verify import verify

BOMB = """
    CREATE SEQUENCE bomb;
    CREATE FUNCTION explode() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('bomb') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER explode AFTER INSERT ON {table} {when}
    FOR EACH ROW EXECUTE FUNCTION explode()
"""
"""Ends the connection that inserts the first row: at once, or in the commit."""
IN_THE_COMMIT = "DEFERRABLE INITIALLY DEFERRED"


def said(message: str) -> UserMessageReceived:
    return UserMessageReceived(message=message, text=f"text of {message}")


def messages(log: TranscriptLog, session: str = "s") -> list[str]:
    return [getattr(record.event, "message", "") for record in log.read(session)]


def _source(name: str) -> Source:
    return Source(platform="p", chat="c", message=name)


def backend(log: TranscriptLog) -> int:
    database = log.database
    assert isinstance(database, PostgresDatabase)
    assert database._writer is not None
    assert database._writer.backend is not None
    return database._writer.backend[0]


@pytest.fixture
def log(postgres_url: str) -> Iterator[TranscriptLog]:
    with TranscriptLog.open(postgres_url, busy_timeout=5) as log:
        yield log


@pytest.fixture
def through(
    postgres_server: Server, postgres_url: str, tmp_path: Path
) -> Iterator[tuple[Proxy, TranscriptLog]]:
    with (
        proxy_before(postgres_server, postgres_url, tmp_path) as (proxy, url),
        TranscriptLog.open(url, busy_timeout=1) as log,
    ):
        yield proxy, log


def test_between_two_appends_nobody_notices(log: TranscriptLog, postgres_url: str) -> None:
    log.append("s", said("a"))
    with TranscriptLog.open(postgres_url) as other, other.database.write() as connection:
        connection.execute("SELECT pg_terminate_backend(?::integer)", (backend(log),))

    log.append("s", said("b"))

    assert messages(log) == ["a", "b"]


def test_before_the_commit_it_is_written_again(log: TranscriptLog) -> None:
    with log.database.write() as connection:
        connection.several(BOMB.format(table="records", when=""))

    log.append("s", said("a"))

    assert messages(log) == ["a"]
    assert verify(log).faults == []


def test_in_the_commit_it_is_told_that_nothing_is_stored(log: TranscriptLog) -> None:
    with log.database.write() as connection:
        connection.several(BOMB.format(table="records", when=IN_THE_COMMIT))

    with pytest.raises(StorageFailed) as caught:
        log.append("s", said("a"))

    assert (caught.value.stored, caught.value.may_retry) == ("no", True)
    assert messages(log) == []
    assert log.append("s", said("a"))[0].version == 1


@pytest.mark.parametrize("when", ["", IN_THE_COMMIT])
def test_a_lease_is_taken_again(log: TranscriptLog, when: str) -> None:
    with log.database.write() as connection:
        connection.several(BOMB.format(table="leases", when=when))

    lease = log.leases.acquire("s", "bot")

    assert lease.generation == 1
    assert log.leases.acquire("s", "bot").generation == 2


def test_a_lease_whose_commit_went_unanswered_is_taken_again(
    through: tuple[Proxy, TranscriptLog],
) -> None:
    proxy, log = through
    proxy.cut = "after"

    lease = log.leases.acquire("s", "bot")

    assert (proxy.cuts, lease.generation) == (1, 2)
    log.leases.check(lease)


def test_a_lease_is_in_doubt_while_the_server_stays_away(
    through: tuple[Proxy, TranscriptLog],
) -> None:
    proxy, log = through
    proxy.cut = "after"
    proxy.block()

    with pytest.raises(AppendInDoubt) as caught:
        log.leases.acquire("s", "bot")
    proxy.unblock()

    assert (caught.value.stored, caught.value.may_retry) == ("unknown", True)
    assert log.leases.acquire("s", "bot").generation == 2


def test_after_the_commit_it_is_found(through: tuple[Proxy, TranscriptLog]) -> None:
    proxy, log = through
    proxy.cut = "after"

    records = log.append("s", said("a"), said("b"))

    assert proxy.cuts == 1
    assert [record.version for record in records] == [1, 2]
    assert list(log.read("s")) == list(records)


def test_a_commit_that_never_arrived_can_not_arrive_later(
    through: tuple[Proxy, TranscriptLog],
) -> None:
    proxy, log = through
    proxy.cut = "before"

    with pytest.raises(StorageFailed) as caught:
        log.append("s", said("a"))

    assert (proxy.cuts, caught.value.stored) == (1, "no")
    assert log.append("s", said("b"))[0].version == 1
    assert messages(log) == ["b"]


def test_a_server_that_stays_away_leaves_a_doubt_and_the_same_again_settles_it(
    through: tuple[Proxy, TranscriptLog],
) -> None:
    proxy, log = through
    proxy.cut = "after"
    proxy.block()

    with pytest.raises(AppendInDoubt) as caught:
        log.append("s", said("a"))
    with pytest.raises(AppendInDoubt):
        log.append("s", said("a"))
    proxy.unblock()

    assert caught.value.stored == "unknown"
    assert log.append("s", said("a"))[0].version == 1
    assert messages(log) == ["a"]


def test_a_session_that_is_held_past_the_deadline_is_busy(
    log: TranscriptLog, postgres_url: str
) -> None:
    with (
        TranscriptLog.open(postgres_url, busy_timeout=0.2) as other,
        log.database.write(sessions=("s",)),
    ):
        with pytest.raises(StorageBusy) as caught:
            other.append("s", said("a"))
        other.append("t", said("a"))

    assert caught.value.waited >= 0.2
    assert messages(log) == []
    assert messages(log, "t") == ["a"]


def test_too_many_reads_at_once_are_busy(log: TranscriptLog, postgres_url: str) -> None:
    many = POOL_SIZE + POOL_OVERFLOW
    under_way, go = threading.Barrier(many + 1), threading.Event()

    def read(connection: Any) -> None:
        under_way.wait(60)
        go.wait(60)

    with (
        TranscriptLog.open(postgres_url, busy_timeout=0.2) as other,
        ThreadPoolExecutor(many) as pool,
    ):
        reads = [pool.submit(other.database.read, "reading", read) for _ in range(many)]
        under_way.wait(60)
        with pytest.raises(StorageBusy, match="reads were under way"):
            other.version("s")
        go.set()
        for future in reads:
            future.result()

        assert other.version("s") == 0


def test_two_sessions_that_want_the_same_ids_agree(log: TranscriptLog, postgres_url: str) -> None:
    """Each takes them in another order, so that one waits for the other, and may be ended for it."""
    rounds = 40
    at_once = threading.Barrier(2)

    def write(log: TranscriptLog, session: str, *, turned: bool) -> None:
        for n in range(rounds):
            names = [f"{n}-{i}" for i in range(3)]
            events = [
                UserMessageReceived(message=name, text="x", source=_source(name))
                for name in (reversed(names) if turned else names)
            ]
            at_once.wait(30)
            log.append(session, *events, durable=False)

    with TranscriptLog.open(postgres_url) as other, ThreadPoolExecutor(2) as pool:
        one = pool.submit(write, log, "one", turned=False)
        two = pool.submit(write, other, "two", turned=True)
        one.result()
        two.result()

    together = messages(log, "one") + messages(log, "two")
    assert sorted(together) == sorted(f"{n}-{i}" for n in range(rounds) for i in range(3))
    assert verify(log).faults == []


def test_a_server_that_is_stopped_at_once_loses_nothing_acknowledged() -> None:
    acknowledged: list[str] = []
    stop = threading.Event()

    def write(log: TranscriptLog) -> None:
        n = 0
        while not stop.is_set():
            try:
                log.append("s", said(f"m{n}"))
            except StorageFailed as error:
                assert error.stored == "no"  # noqa: PT017 - told in a thread
                continue
            acknowledged.append(f"m{n}")
            n += 1

    with (
        running_server() as server,
        server.database() as url,
        TranscriptLog.open(url, busy_timeout=60) as log,
    ):
        thread = threading.Thread(target=write, args=(log,))
        thread.start()
        for told in (20, 40):
            _wait_for(acknowledged, told)
            _control(server, "-m", "immediate", "restart")
        _wait_for(acknowledged, len(acknowledged) + 5)
        stop.set()
        thread.join()

        assert messages(log) == acknowledged
        assert verify(log).faults == []


def _wait_for(list_: list[str], length: int) -> None:
    for _ in range(6_000):
        if len(list_) >= length:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{len(list_)} appends in a minute")


def _control(server: Server, *words: str) -> None:
    options = ["-o", f"-h '' -k {server.socket}", "-l", str(server.data / "log")]
    subprocess.run(
        [str(server.programs / "pg_ctl"), "-w", "-D", str(server.data), *options, *words],
        user=server.user, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
