"""A connection that listens is ended again and again, and so is the server: a follower misses nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from postgres_server import Server
from psycopg.conninfo import conninfo_to_dict
from standby_server import control, copy_of, wait_for

from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded

ROUNDS = 5
HEARD_SECONDS = 30
LISTENS = (
    "FROM pg_stat_activity WHERE application_name = 'onrecord' "
    "AND (query LIKE 'LISTEN%' OR query = 'SELECT 1') AND datname = "
)


def said(message: str) -> UserMessageReceived:
    return UserMessageReceived(message=message, text="x")


class Following:
    """A subscription in a thread, and what it gave."""

    def __init__(self, log: TranscriptLog, wanted: int) -> None:
        self._log, self._wanted = log, wanted
        self.got: list[Recorded] = []
        self._came = threading.Condition()

    def run(self) -> None:
        """Follow until all that is wanted came."""
        with self._log.subscribe() as subscription:
            while len(self.got) < self._wanted:
                record = next(subscription)
                with self._came:
                    self.got.append(record)
                    self._came.notify()

    def has(self, record: Recorded) -> bool:
        """Wait for a record; tell whether it came."""
        with self._came:
            return self._came.wait_for(lambda: record in self.got, HEARD_SECONDS)


def follow_while(harm: Callable[[], None], mine: TranscriptLog, others: TranscriptLog) -> None:
    """Do harm in between appends by another process, and hold that each is heard of, in order."""
    following = Following(mine, wanted=2 * ROUNDS)
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(following.run)
        for n in range(ROUNDS):
            before = others.append("s", said(f"before {n}"))[0]
            harm()
            after = others.append("s", said(f"after {n}"))[0]
            assert following.has(before)
            assert following.has(after)
        ended.result(HEARD_SECONDS)
    assert following.got == list(others.read_all())


def test_over_an_end_of_its_connection(postgres_server: Server, postgres_url: str) -> None:
    listens = f"{LISTENS}'{conninfo_to_dict(postgres_url)['dbname']}'"
    ended: list[object] = []

    def end() -> None:
        (pid,) = wait_for(postgres_server, f"SELECT pid {listens}")
        with postgres_server.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
        ended.append(pid)

    with TranscriptLog.open(postgres_url) as mine, TranscriptLog.open(postgres_url) as others:
        follow_while(end, mine, others)

    assert len(set(ended)) == ROUNDS


def test_over_an_end_of_the_server(postgres_server: Server) -> None:
    with copy_of(postgres_server) as server:
        url = server.url("postgres")
        with (
            TranscriptLog.open(url, busy_timeout=60) as mine,
            TranscriptLog.open(url, busy_timeout=60) as others,
        ):
            follow_while(lambda: control(server, "-m", "immediate", "restart"), mine, others)
