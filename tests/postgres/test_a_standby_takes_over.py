"""A standby that is promoted: nothing is lost if commits waited for it, and if not, the loss is said."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from postgres_server import Server
from standby_server import STREAMS, change, control, copy_of, cut_off, kill, standby_of, wait_for

from onrecord.transcript.errors import AppendInDoubt, StorageError
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.verify import verify

THREADS = 4
ACKNOWLEDGED = 60
"""Appends before the crash, at least."""
BEGIN_SECONDS = 60

pytestmark = [pytest.mark.faults, pytest.mark.slow]


def said(message: str) -> UserMessageReceived:
    return UserMessageReceived(message=message, text=f"text of {message}")


@pytest.fixture(scope="module")
def server(postgres_server: Server) -> Iterator[Server]:
    with copy_of(postgres_server) as copy:
        yield copy


@pytest.fixture
def primary(server: Server) -> Server:
    """Give a server that runs and has no standby; each test crashes it."""
    kill(server)
    control(server, "start")
    change(server, synchronous_standby_names="")
    return server


@dataclass
class Writers:
    """Threads that append to a log until they fail: what each was told."""

    log: TranscriptLog
    told: list[Recorded] = field(default_factory=list)
    failed: dict[str, StorageError] = field(default_factory=dict)
    enough: threading.Event = field(default_factory=threading.Event)

    def write(self, number: int) -> None:
        """Append message after message to a session, until one fails."""
        for n in range(1_000_000):
            message = f"{number}.{n}"
            try:
                self.told += self.log.append(f"s{number % 2}", said(message))
            except StorageError as error:
                self.failed[message] = error
                return
            if len(self.told) >= ACKNOWLEDGED:
                self.enough.set()


def crash_while_writing(primary: Server, log: TranscriptLog) -> Writers:
    """Kill the primary in the middle of appends."""
    writers = Writers(log)
    with ThreadPoolExecutor(THREADS) as pool:
        writing = [pool.submit(writers.write, number) for number in range(THREADS)]
        assert writers.enough.wait(BEGIN_SECONDS)
        kill(primary)
        for one in writing:
            one.result()
    return writers


def messages(log: TranscriptLog, session: str) -> list[str]:
    return [getattr(record.event, "message", "") for record in log.read(session)]


def heads(records: list[Recorded]) -> list[tuple[str, int, bytes]]:
    """Return what is kept elsewhere of records: session, version and chain of each."""
    return [(record.session, record.version, record.chain) for record in records]


def test_what_commits_waited_for_is_there(primary: Server) -> None:
    with standby_of(primary, "synchronous") as standby:
        with TranscriptLog.open(primary.url("postgres"), busy_timeout=0.5) as log:
            writers = crash_while_writing(primary, log)
        control(standby, "promote")

        with TranscriptLog.open(standby.url("postgres")) as log:
            assert verify(log, heads=heads(writers.told)).faults == []
            assert len(writers.failed) == THREADS
            for record in writers.told:
                assert log.append(record.session, record.event) == (record,)
            for message, error in writers.failed.items():
                session = f"s{int(message[0]) % 2}"
                there = message in messages(log, session)
                assert error.may_retry
                assert not error.may_send
                assert error.stored == "unknown" or not there
                log.append(session, said(message))
                assert messages(log, session).count(message) == 1
            assert verify(log).faults == []


def test_an_append_waits_for_a_standby_that_is_away(primary: Server) -> None:
    with standby_of(primary, "synchronous") as standby:
        with (
            TranscriptLog.open(primary.url("postgres"), busy_timeout=0.5) as log,
            ThreadPoolExecutor(1) as pool,
        ):
            first = log.append("waiting", said("a"))
            cut_off(standby, primary)
            waiting = pool.submit(log.append, "waiting", said("b"))
            wait_for(primary, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            assert not waiting.done()
            kill(primary)
            with pytest.raises(AppendInDoubt) as caught:
                waiting.result()
        control(standby, "promote")

        assert caught.value.stored == "unknown"
        with TranscriptLog.open(standby.url("postgres")) as log:
            assert messages(log, "waiting") == ["a"]
            assert verify(log, heads=heads([*first])).faults == []
            assert log.append("waiting", said("b"))[0].version == 2
            assert messages(log, "waiting") == ["a", "b"]


def test_what_a_late_standby_lost_is_found_and_recorded_again(primary: Server) -> None:
    with standby_of(primary, "asynchronous") as standby:
        with TranscriptLog.open(primary.url("postgres"), busy_timeout=0.5) as log:
            kept = [log.append("late", said(f"kept {n}"))[0] for n in range(5)]
            wait_for(primary, f"SELECT 1 {STREAMS} AND replay_lsn = pg_current_wal_lsn()")
            cut_off(standby, primary)
            lost = [log.append("late", said(f"lost {n}"))[0] for n in range(5)]
            kill(primary)
        control(standby, "promote")

        said_of_it = verify_by_command(standby.url("postgres"), lost[-1])
        assert said_of_it.returncode == 1
        assert "'late', version 6: the records after version 5 are missing" in said_of_it.stdout
        assert verify_by_command(standby.url("postgres"), kept[-1]).returncode == 0
        with TranscriptLog.open(standby.url("postgres")) as log:
            assert messages(log, "late") == [f"kept {n}" for n in range(5)]
            (cut,) = verify(log, heads=heads([*kept, *lost])).faults
            assert (cut.session, cut.kind, cut.version) == ("late", "cut", 6)
            for record in (*kept, *lost):
                assert log.append("late", record.event)[0].version == record.version
            assert messages(log, "late") == [
                *(f"kept {n}" for n in range(5)), *(f"lost {n}" for n in range(5)),
            ]  # fmt: skip
            assert verify(log, heads=heads(kept)).faults == []
            # Recorded again is not the same record: the lost ones stay known to be lost.
            (other,) = verify(log, heads=heads(lost)).faults
            assert (other.session, other.kind) == ("late", "head")


def verify_by_command(url: str, last: Recorded) -> subprocess.CompletedProcess[str]:
    """Verify against a head that was kept elsewhere."""
    head = f"{last.session}:{last.version}:{last.chain.hex()}"
    return subprocess.run(
        [sys.executable, "-m", "onrecord.projections.cli", "--db", url, "verify", "--head", head],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
