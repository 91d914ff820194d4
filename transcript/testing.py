"""The contract that every storage of the log passes. Shipped, for storages written elsewhere.

    class TestMine(SharedLogContract):
        @pytest.fixture(autouse=True)
        def place(self, tmp_path):
            self.url = f"sqlite:///{tmp_path}/log.db"

`LogContract` is for any storage, `SharedLogContract` for one that several processes can open.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from typing import Any
from uuid import uuid4

from onrecord.transcript import events as e
from onrecord.transcript.errors import (
    KeyConflict,
    LeaseHeld,
    LeaseLost,
    OffsetMismatch,
    WrongExpectedVersion,
)
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.testing_content import ContentContract, refused, said
from onrecord.transcript.verify import verify

CHILD_TIMEOUT = 60.0
"""Seconds that a child process may take."""


class LogContract(ContentContract):
    """What holds for a log in any storage. `url` names an empty one."""

    # --- order and atomicity ---------------------------------------------------------------------

    def test_versions_have_no_gaps_and_positions_grow(self) -> None:
        with self.open() as log:
            for n in range(5):
                log.append("a", said(f"m{n}"), said(f"n{n}"))
                log.append("b", said(f"m{n}"))

            assert [r.version for r in log.read("a")] == list(range(1, 11))
            assert [r.version for r in log.read("b")] == list(range(1, 6))
            positions = [r.position for r in log.read_all()]
            assert positions == sorted(set(positions))
            assert log.version("a") == 10
            assert log.version("none") == 0
            assert [(s.name, s.version) for s in log.sessions()] == [("a", 10), ("b", 5)]

    def test_a_refused_append_leaves_nothing(self) -> None:
        with self.open() as log:
            log.append("s", e.DeliveryAttempted(delivery="d", text="one"))

            with refused(KeyConflict):
                log.append("s", said("m"), e.DeliveryAttempted(delivery="d", text="other"))
            with refused(OffsetMismatch):
                log.append("t", said("m"), e.DeliveryAttempted(delivery="d", text="x", offset=4))

            assert log.version("s") == 1
            assert [s.name for s in log.sessions()] == ["s"]
            assert log.append("s", said("m"))[0].version == 2

    def test_expected_version_is_held(self) -> None:
        with self.open() as log:
            log.append("s", said("m1"), expected_version=0)
            log.append("s", said("m2"), expected_version=1)

            with refused(WrongExpectedVersion) as caught:
                log.append("s", said("m3"), expected_version=1)
            assert caught[0].facts["actual"] == 2
            # What is there already isn't a change.
            assert log.append("s", said("m1"), expected_version=0)[0].version == 1

    def test_reads_go_on_after_a_place(self) -> None:
        with self.open() as log:
            given = log.append("s", *(said(f"m{n}") for n in range(1200)))

            assert [r.version for r in log.read("s")] == list(range(1, 1201))
            assert [r.version for r in log.read("s", after=1190, limit=4)] == list(
                range(1191, 1195)
            )
            assert list(log.read("s", limit=0)) == []
            after = given[700].position
            assert [r.version for r in log.read_all(after=after)] == list(range(702, 1201))
            assert log.find(given[5].id) == given[5]
            assert log.find(uuid4()) is None

    # --- once, not twice -------------------------------------------------------------------------

    def test_the_same_is_recorded_once(self) -> None:
        with self.open() as log:
            own = e.SessionEnded(reason="done")
            first = log.append("s", said("m"), own)

            again = log.append("s", own, said("m", at=datetime.now(UTC), writer="other"))

            assert [r.position for r in again] == [first[1].position, first[0].position]
            assert log.version("s") == 2

    def test_the_same_within_one_append_is_recorded_once(self) -> None:
        with self.open() as log:
            records = log.append("s", said("m"), said("m"), said("n"))

            assert [r.version for r in records] == [1, 1, 2]

    def test_an_intent_of_other_content_is_refused(self) -> None:
        with self.open() as log:
            attempt = e.DeliveryAttempted(delivery="d", text="one")
            log.append("s", attempt)

            with refused(KeyConflict) as caught:
                log.append("s", e.DeliveryAttempted(delivery="d", text="two"))

            assert caught[0].facts["existing"].text == "one"
            assert caught[0].facts["given"].text == "two"
            assert (caught[0].stored, caught[0].may_send) == ("no", False)

    def test_a_fact_of_other_content_is_kept_beside(self) -> None:
        with self.open() as log:
            first = log.append("s", said("m", "one"))[0]

            records = log.append("s", said("m", "two"), said("m", "two"), said("m", "three"))
            again = log.append("s", said("m", "two"))

            assert [r.version for r in records] == [2, 2, 3]
            assert {r.event.conflicts_with for r in records} == {first.id}
            assert again[0].position == records[0].position

    def test_a_source_is_known_in_every_session(self) -> None:
        with self.open() as log:
            source = e.Source(platform="p", chat="c", message="17")
            first = log.append("old", said("m", source=source))[0]

            again = log.append("new", said("other", source=source))[0]

            assert (again.session, again.position) == ("old", first.position)
            assert log.version("new") == 0

    def test_a_reopened_turn_has_keys_of_its_own(self) -> None:
        with self.open() as log:
            ended = e.TurnFinalized(turn="t")
            log.append("s", said("m", turn="t"), ended)
            assert log.append("s", ended)[0].version == 2

            reopened = log.append("s", said("n", turn="t"), ended)

            assert [r.version for r in reopened] == [3, 4]
            assert log.append("s", ended)[0].version == 4

    # --- deliveries and leases -------------------------------------------------------------------

    def test_parts_follow_on(self) -> None:
        def part(offset: int, text: str, attempt: int = 1) -> e.DeliveryAttempted:
            return e.DeliveryAttempted(delivery="d", offset=offset, text=text, attempt=attempt)

        with self.open() as log:
            log.append("s", part(0, "🙂ab"), part(3, "c"))
            for wrong in (part(5, "x"), part(2, "x"), part(5, "x", 2), part(0, "x", 3)):
                with refused(OffsetMismatch):
                    log.append("s", wrong)
            log.append("s", part(2, "BC", 2), part(4, "D", 2))
            with refused(OffsetMismatch):
                log.append("s", part(4, "d"))

            assert log.version("s") == 4

    def test_a_lease_fences(self) -> None:
        with self.open() as log:
            old = log.leases.acquire("s", "one")
            with refused(LeaseHeld) as caught:
                log.leases.acquire("s", "two")
            assert caught[0].facts["holder"] == "one"
            assert not log.leases.is_free("s", "two")
            log.append("s", e.DeliveryAttempted(delivery="d", text="x"), lease=old)

            new = log.leases.acquire("s", "one")  # the same process, started anew

            with refused(LeaseLost):
                log.leases.check(old)
            with refused(LeaseLost):
                log.append("s", e.DeliveryAttempted(delivery="e", text="x"), lease=old)
            late = log.append("s", e.StreamChunkDelivered(delivery="d", through=1), lease=old)[0]
            assert late.generation == old.generation < new.generation
            log.leases.check(log.leases.renew(new))
            log.leases.release(new)
            assert log.leases.is_free("s", "two")
            assert log.leases.acquire("s", "two").generation > new.generation

    def test_a_lease_expires(self) -> None:
        with self.open() as log:
            short = log.leases.acquire("s", "one", ttl=0.005)
            threading.Event().wait(0.03)

            assert log.leases.is_free("s", "two")
            with refused(LeaseLost):
                log.append("s", e.DeliveryAttempted(delivery="d", text="x"), lease=short)
            log.leases.check(log.leases.renew(short))

    # --- following, threads, the loop ------------------------------------------------------------

    def test_a_subscription_misses_nothing(self) -> None:
        with self.open() as log:
            log.append("s", said("before"))

            def write() -> None:
                for n in range(200):
                    log.append("s", said(f"m{n}"), durable=n % 20 == 0)

            with log.subscribe() as subscription, ThreadPoolExecutor(1) as pool:
                pool.submit(write)
                got = [next(subscription).version for _ in range(201)]

            assert got == list(range(1, 202))

    def test_threads_share_a_log(self) -> None:
        with self.open() as log, ThreadPoolExecutor(8) as pool:

            def write(n: int) -> None:
                log.append("s", said(f"m{n}"), durable=False)
                assert any(log.read("s"))

            list(pool.map(write, range(200)))

            assert [r.version for r in log.read("s")] == list(range(1, 201))

    def test_the_async_twin_keeps_call_order(self) -> None:
        async def run(log: TranscriptLog) -> list[str]:
            appends = [log.aio.append("s", said(f"m{n}"), durable=False) for n in range(50)]
            await asyncio.gather(*appends)
            assert await log.aio.version("s") == 50
            async with log.aio.subscribe(after=0) as subscription:
                first = await anext(subscription)
                assert first.version == 1
            return [_message(record) async for record in log.aio.read("s")]

        with self.open() as log:
            assert asyncio.run(run(log)) == [f"m{n}" for n in range(50)]

    def test_cancelling_tears_no_append(self) -> None:
        async def run(log: TranscriptLog) -> int:
            for n in range(20):
                task = asyncio.create_task(log.aio.append("s", said(f"m{n}"), said(f"n{n}")))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await log.aio.append("s", said("last"))
            return await log.aio.version("s")

        with self.open() as log:
            assert asyncio.run(run(log)) == 41
            assert [r.version for r in log.read("s")] == list(range(1, 42))


class SharedLogContract(LogContract):
    """What holds besides for a log that several processes open."""

    def test_processes_append_without_gaps(self) -> None:
        # None of them finds the log made: they open a new one at once.
        with _children(_append_many, [(self.url, f"w{n}", 60) for n in range(3)]):
            pass

        with self.open() as log:
            records = list(log.read("shared"))
            assert [r.version for r in records] == list(range(1, 181))
            for n in range(3):
                mine = [_message(r) for r in records if _message(r).startswith(f"w{n}-")]
                assert mine == [f"w{n}-{i}" for i in range(60)]
            assert verify(log).faults == []

    def test_a_tailing_reader_misses_nothing(self) -> None:
        with self.open() as log, log.subscribe() as subscription:
            with _children(_append_many, [(self.url, f"w{n}", 100) for n in range(2)]):
                got = [next(subscription) for _ in range(200)]

            assert [r.position for r in got] == [r.position for r in log.read_all()]

    def test_processes_agree_on_keys(self) -> None:
        with self.open() as log, TranscriptLog.open(self.url) as other:
            log.append("s", said("m", turn="t"), e.DeliveryAttempted(delivery="d", text="ab"))
            other.append("s", e.TurnFinalized(turn="t"), said("n", turn="t"))

            assert log.append("s", e.TurnFinalized(turn="t"))[0].version == 5
            other.append("s", e.DeliveryAttempted(delivery="d", offset=2, text="c"))
            with refused(KeyConflict):
                log.append("s", e.DeliveryAttempted(delivery="d", offset=2, text="x"))
            assert log.append("s", e.DeliveryAttempted(delivery="d", offset=3, text="x"))

    def test_a_lease_fences_other_processes(self) -> None:
        with self.open() as log, TranscriptLog.open(self.url) as other:
            lease = log.leases.acquire("s", "one", ttl=0.01)
            threading.Event().wait(0.05)
            taken = other.leases.acquire("s", "two")

            with refused(LeaseLost):
                log.append("s", e.DeliveryAttempted(delivery="d", text="x"), lease=lease)
            with refused(LeaseLost):
                log.leases.renew(lease)
            log.leases.release(lease)
            other.leases.check(taken)
            log.append("s", e.DeliveryConfirmed(delivery="d"), lease=lease)
            assert [r.generation for r in other.read("s")] == [lease.generation]

    def test_a_killed_writer_leaves_what_it_was_told(self) -> None:
        context = multiprocessing.get_context("spawn")
        for n in range(3):
            receive, send = context.Pipe(duplex=False)
            child = context.Process(target=_append_forever, args=(self.url, f"k{n}", send))
            child.start()
            send.close()
            told = [receive.recv() for _ in range(20 + 7 * n)]
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
            child.join(CHILD_TIMEOUT)
            while receive.poll():
                try:
                    told.append(receive.recv())
                except EOFError:
                    break

            with self.open() as log:
                kept = [_message(r) for r in log.read(f"k{n}")]
                assert kept[: len(told)] == told
                assert len(kept) <= len(told) + 1
                assert verify(log).faults == []

    def test_a_log_opened_again_is_the_same(self) -> None:
        with self.open() as log:
            given = log.append("s", said("m"), said("n"))

        with self.open(create=False) as log:
            assert tuple(log.read("s")) == given
            assert log.append("s", said("m"))[0] == given[0]


def _message(record: Recorded) -> str:
    assert isinstance(record.event, e.UserMessageReceived)
    return record.event.message


@contextmanager
def _children(run: Any, arguments: list[tuple[Any, ...]]) -> Iterator[list[BaseProcess]]:
    context = multiprocessing.get_context("spawn")
    children: list[BaseProcess] = [context.Process(target=run, args=args) for args in arguments]
    for child in children:
        child.start()
    try:
        yield children
    finally:
        for child in children:
            child.join(CHILD_TIMEOUT)
            if child.is_alive():
                child.kill()
    assert [child.exitcode for child in children] == [0] * len(children)


def _append_many(url: str, name: str, count: int) -> None:
    with TranscriptLog.open(url) as log:
        for n in range(count):
            log.append("shared", said(f"{name}-{n}"))


def _append_forever(url: str, name: str, told: Any) -> None:
    with TranscriptLog.open(url) as log:
        n = 0
        while True:
            log.append(name, said(f"{n}"), durable=n % 3 == 0)
            told.send(f"{n}")
            n += 1
