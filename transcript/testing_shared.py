"""The part of the contract that is about several processes on one log, and about opening it again."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

from onrecord.transcript import events as e
from onrecord.transcript.errors import KeyConflict, LeaseLost, StorageFailed
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.testing_content import ContentContract, message_of, refused, said
from onrecord.transcript.testing_writing import chunk, chunks, together
from onrecord.transcript.verify import verify

CHILD_TIMEOUT = 60.0
"""Seconds that a child process may take."""


class SharedContract(ContentContract):
    """What holds besides for a log that several processes open. `url` names an empty one."""

    def test_processes_append_without_gaps(self) -> None:
        # None of them finds the log made: they open a new one at once.
        with _children(_append_many, [(self.url, f"w{n}", 60) for n in range(3)]):
            pass

        with self.open() as log:
            records = list(log.read("shared"))
            assert [r.version for r in records] == list(range(1, 181))
            for n in range(3):
                mine = [message_of(r) for r in records if message_of(r).startswith(f"w{n}-")]
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
                kept = [message_of(r) for r in log.read(f"k{n}")]
                assert kept[: len(told)] == told
                assert len(kept) <= len(told) + 1
                assert verify(log).faults == []

    def test_closing_finishes_what_was_begun(self) -> None:
        told: list[str] = []

        def write(log: TranscriptLog, name: str) -> None:
            for n in range(10_000):
                try:
                    log.append(name, said(f"{name}-{n}"))
                except StorageFailed:
                    return
                told.append(f"{name}-{n}")
            raise AssertionError("the log was never closed")

        async def hand_over(log: TranscriptLog) -> None:
            for n in range(20):
                task = asyncio.create_task(log.aio.append("loop", said(f"m{n}"), durable=False))
                await asyncio.sleep(0)
                task.cancel()

        with ThreadPoolExecutor(4) as pool:
            log = self.open()
            writers = [pool.submit(write, log, f"t{n}") for n in range(4)]
            while len(told) < 20:
                threading.Event().wait(0.001)
            asyncio.run(hand_over(log))
            log.close()
            for writer in writers:
                writer.result(CHILD_TIMEOUT)

        with self.open() as log:
            for n in range(4):
                mine = [message for message in told if message.startswith(f"t{n}-")]
                assert [message_of(r) for r in log.read(f"t{n}")] == mine
            assert log.version("loop") == 20

    def test_a_chunk_joined_by_another_process_is_known_again(self) -> None:
        with self.open() as log, TranscriptLog.open(self.url) as other:
            stored = together(log, *chunks("one ", "two "))[1]

            assert other.append("s", chunk(4, "two ")) == (stored,)
            assert other.append("s", chunk(8, "three"))[0].version == 2

    def test_a_forked_child_writes_with_a_writer_of_its_own(self) -> None:
        with _children(_fork_while_writing, [(self.url,)]):
            pass

        with self.open() as log:
            for name in ("parent", "child"):
                assert [message_of(r) for r in log.read(name)] == [f"m{n}" for n in range(60)]
            assert verify(log).faults == []

    def test_a_log_opened_again_is_the_same(self) -> None:
        with self.open() as log:
            given = log.append("s", said("m"), said("n"))

        with self.open(create=False) as log:
            assert tuple(log.read("s")) == given
            assert log.append("s", said("m"))[0] == given[0]


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


def _fork_while_writing(url: str) -> None:
    async def write(log: TranscriptLog, name: str, first: int) -> None:
        await asyncio.gather(*(log.aio.append(name, said(f"m{first + n}")) for n in range(30)))

    with TranscriptLog.open(url) as log:
        asyncio.run(write(log, "parent", 0))
        thread = threading.Thread(target=asyncio.run, args=(write(log, "parent", 30),))
        thread.start()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                asyncio.run(write(log, "child", 0))
                for n in range(30, 60):
                    log.append("child", said(f"m{n}"))
                log.close()
                code = 0
            finally:
                os._exit(code)
        thread.join(CHILD_TIMEOUT)
        assert os.waitpid(pid, 0)[1] == 0


def _append_forever(url: str, name: str, told: Any) -> None:
    with TranscriptLog.open(url) as log:
        n = 0
        while True:
            log.append(name, said(f"{n}"), durable=n % 3 == 0)
            told.send(f"{n}")
            n += 1
