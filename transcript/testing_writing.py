"""The part of the contract that is about many who append at once: threads, tasks, chunks of a stream."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from onrecord.transcript import events as e
from onrecord.transcript.append import Draft, imported
from onrecord.transcript.errors import KeyConflict, OffsetMismatch
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.testing_content import ContentContract, message_of, refused, said
from onrecord.transcript.verify import verify

LONGEST_WAIT = 30.0
"""Seconds that a test waits for a thread at most."""


@contextmanager
def occupied(log: TranscriptLog) -> Iterator[None]:
    """Keep the log's writer busy: what is appended meanwhile waits for one commit."""
    begun, over = threading.Event(), threading.Event()

    def occupy() -> None:
        begun.set()
        assert over.wait(LONGEST_WAIT)

    thread = threading.Thread(target=log.writer.call, args=(occupy,))
    thread.start()
    assert begun.wait(LONGEST_WAIT)
    try:
        yield
    finally:
        over.set()
        thread.join(LONGEST_WAIT)


def until_waiting(log: TranscriptLog, count: int) -> None:
    """Return once so many appends wait for the writer."""
    for _ in range(int(LONGEST_WAIT / 0.002)):
        if log.writer.waiting >= count:
            return
        threading.Event().wait(0.002)
    raise AssertionError(f"{log.writer.waiting} appends wait, not {count}")


def chunk(offset: int, text: str, delivery: str = "d", attempt: int = 1) -> e.DeliveryAttempted:
    """Return a chunk of a stream."""
    return e.DeliveryAttempted(delivery=delivery, offset=offset, text=text, attempt=attempt)


def chunks(*texts: str) -> list[e.DeliveryAttempted]:
    """Return chunks that follow on."""
    return [chunk(sum(map(len, texts[:n])), text) for n, text in enumerate(texts)]


def together(log: TranscriptLog, *events: e.Event) -> list[Recorded | BaseException]:
    """Append each event by itself while the writer is busy; return each record or error, in order."""

    async def run() -> list[Recorded | BaseException]:
        with occupied(log):
            tasks = [asyncio.create_task(log.aio.append("s", event)) for event in events]
            await asyncio.sleep(0)  # each has begun, and waits
            assert log.writer.waiting == len(events)
        found = await asyncio.gather(*tasks, return_exceptions=True)
        return [one if isinstance(one, BaseException) else one[0] for one in found]

    return asyncio.run(run())


class WritingContract(ContentContract):
    """What holds when many append at once. `url` names an empty log."""

    def test_threads_share_a_log(self) -> None:
        with self.open() as log, ThreadPoolExecutor(8) as pool:

            def write(n: int) -> None:
                log.append("s", said(f"m{n}"), durable=False)
                assert any(log.read("s"))

            list(pool.map(write, range(200)))

            assert [r.version for r in log.read("s")] == list(range(1, 201))

    def test_a_bad_append_of_many_fails_alone(self) -> None:
        def write(log: TranscriptLog, name: str) -> None:
            for n in range(30):
                log.append("shared", said(f"{name}-{n}"), durable=n % 2 == 0)
                log.append(name, said(f"m{n}"), said(f"n{n}"))
                with refused(OffsetMismatch):
                    log.append(name, said("never"), chunk(7, "x"))
                with refused(OffsetMismatch):
                    log.append("shared", chunk(7, "x", delivery=name))

        names = [f"t{n}" for n in range(6)]
        with self.open() as log, ThreadPoolExecutor(len(names)) as pool:
            for future in [pool.submit(write, log, name) for name in names]:
                future.result(LONGEST_WAIT)

            shared = [message_of(record) for record in log.read("shared")]
            assert len(shared) == 30 * len(names)
            for name in names:
                mine = [message for message in shared if message.startswith(f"{name}-")]
                assert mine == [f"{name}-{n}" for n in range(30)]
                own = [message_of(record) for record in log.read(name)]
                assert own == [f"{m}{n}" for n in range(30) for m in "mn"]
            assert verify(log).faults == []

    def test_appends_that_wait_share_a_commit_and_keep_their_order(self) -> None:
        with self.open() as log, ThreadPoolExecutor(8) as pool:
            commits = log.database.signal.count
            with occupied(log):
                futures = []
                for n in range(8):
                    futures.append(pool.submit(log.append, f"s{n % 2}", said(f"m{n}")))
                    until_waiting(log, n + 1)
            records = [future.result(LONGEST_WAIT)[0] for future in futures]

            assert [(r.session, r.version) for r in records] == [
                (f"s{n % 2}", n // 2 + 1) for n in range(8)
            ]
            assert [r.position for r in records] == sorted({r.position for r in records})
            assert list(log.read_all()) == records
            assert log.database.signal.count - commits == 1

    def test_several_sessions_are_one_commit_and_a_bad_one_fails_alone(self) -> None:
        def drafts(session: str, *events: e.Event) -> list[Draft]:
            return [
                imported(session, event, 1 << 20, 1_000_000 + n) for n, event in enumerate(events)
            ]

        given = {
            "a": drafts("a", said("m1"), said("m2"), e.TurnFinalized(turn="m1")),
            "bad": drafts("bad", said("m1"), chunk(7, "x")),
            "b": drafts("b", said("m1")),
        }
        with self.open() as log, log.database.for_bulk():
            commits = log.database.signal.count
            first, again = log.append_sessions(given), log.append_sessions(given)

            assert log.database.signal.count - commits <= 2
            assert [first[name].answer().new for name in "ab"] == [3, 1]
            assert [again[name].answer().new for name in "ab"] == [0, 0]
            assert isinstance(first["bad"].error, OffsetMismatch)
            assert log.version("bad") == 0
            times = [record.recorded_at.microsecond for record in log.read("a")]
            assert times == [0, 1, 2]
            assert verify(log).faults == []

    def test_a_bad_append_takes_no_neighbour_along(self) -> None:
        with self.open() as log, ThreadPoolExecutor(8) as pool:
            given: list[tuple[str, tuple[e.Event, ...]]] = [
                ("s", (said("m1"),)),
                ("s", (said("m2"), chunk(5, "x"))),
                ("s", (said("m2", "other"), e.TurnFinalized(turn="m1"))),
                ("new", (chunk(5, "x"),)),
                ("s", (said("m3"), said("m1"))),
            ]
            with occupied(log):
                futures = []
                for session, events in given:
                    futures.append(pool.submit(log.append, session, *events))
                    until_waiting(log, len(futures))
            first, bad, second, worse, third = futures

            for future in (bad, worse):
                with refused(OffsetMismatch):
                    future.result(LONGEST_WAIT)
            assert [r.version for r in first.result(LONGEST_WAIT)] == [1]
            assert [r.version for r in second.result(LONGEST_WAIT)] == [2, 3]
            assert [r.version for r in third.result(LONGEST_WAIT)] == [4, 1]
            assert log.append("s", e.TurnFinalized(turn="m1"))[0].version == 3
            assert [session.name for session in log.sessions()] == ["s"]
            assert verify(log).faults == []

    # --- the loop --------------------------------------------------------------------------------

    def test_the_async_twin_keeps_call_order(self) -> None:
        async def run(log: TranscriptLog) -> list[str]:
            appends = [log.aio.append("s", said(f"m{n}"), durable=False) for n in range(50)]
            await asyncio.gather(*appends)
            assert await log.aio.version("s") == 50
            async with log.aio.subscribe(after=0) as subscription:
                first = await anext(subscription)
                assert first.version == 1
            return [message_of(record) async for record in log.aio.read("s")]

        with self.open() as log:
            assert asyncio.run(run(log)) == [f"m{n}" for n in range(50)]

    def test_many_tasks_append_at_once(self) -> None:
        async def write(log: TranscriptLog, name: str) -> None:
            for n in range(20):
                await log.aio.append(name, said(f"m{n}"))
                try:
                    await log.aio.append(name, chunk(3, "x"))
                except OffsetMismatch:
                    continue
                raise AssertionError("a chunk without a beginning was taken")

        async def run(log: TranscriptLog) -> None:
            await asyncio.gather(*(write(log, f"s{n}") for n in range(40)))

        with self.open() as log:
            asyncio.run(run(log))

            assert [s.version for s in log.sessions()] == [20] * 40
            for n in range(40):
                assert [message_of(r) for r in log.read(f"s{n}")] == [f"m{i}" for i in range(20)]
            assert verify(log).faults == []

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

    # --- chunks of a stream ----------------------------------------------------------------------

    def test_chunks_that_wait_are_one_part(self) -> None:
        given = chunks("one ", "two ", "three ", "four")
        with self.open() as log:
            got = together(log, *given)

            (stored,) = log.read("s")
            assert got == [stored] * 4
            assert stored.event == e.DeliveryAttempted(
                delivery="d", text="one two three four", id=stored.id
            )
            assert log.append("s", chunk(18, "five"))[0].version == 2

    def test_only_what_says_one_thing_is_joined(self) -> None:
        given = [
            *chunks("ab", "cd"),
            e.DeliveryAttempted(delivery="d", offset=4, text="ef", format="html"),
            e.StreamChunkDelivered(delivery="d", through=2),
            e.StreamChunkDelivered(delivery="d", through=6),
            e.StreamChunkDelivered(delivery="d", through=4),
            e.StreamChunkDelivered(delivery="d", through=4, platform_message="p"),
            chunk(0, "x", attempt=2),
            chunk(1, "y", attempt=2),
            chunk(9, "z", attempt=2),
        ]
        with self.open() as log:
            got = together(log, *given)

            versions = [one.version for one in got if isinstance(one, Recorded)]
            assert versions == [1, 1, 2, 3, 3, 3, 4, 5, 5]
            assert isinstance(got[-1], OffsetMismatch)
            said_now = [r.event for r in log.read("s")]
            assert [getattr(event, "text", None) for event in said_now] == [
                "abcd", "ef", None, None, "xy",
            ]  # fmt: skip
            assert [getattr(event, "through", None) for event in said_now] == [
                None, None, 6, 4, None,
            ]  # fmt: skip

    def test_a_chunk_that_was_joined_is_known_again(self) -> None:
        given = chunks("one ", "two ", "three")
        with self.open() as log:
            stored = together(log, *given)[0]
            log.append("s", chunk(13, " four"), said("m"))

            for again in (*given, chunk(4, "two three"), chunk(13, " four")):
                assert log.append("s", again)[0].version == (2 if again.offset == 13 else 1)
            for other in (chunk(4, "TWO "), chunk(6, "x"), chunk(0, "other")):
                with refused(KeyConflict if other.offset == 0 else OffsetMismatch):
                    log.append("s", other)
            # Waiting together, a chunk that is there and one that isn't are told apart again.
            got = together(log, chunk(13, " four"), chunk(18, " five"))
            assert [one.version for one in got if isinstance(one, Recorded)] == [2, 4]
            assert isinstance(stored, Recorded)
            assert log.version("s") == 4

    def test_a_chunk_is_known_again_after_the_next_attempt(self) -> None:
        with self.open() as log:
            together(log, *chunks("one ", "two "))
            log.append("s", chunk(4, "TWO", attempt=2))

            assert log.append("s", chunk(4, "two "))[0].version == 1
            with refused(OffsetMismatch):
                log.append("s", chunk(4, "2"))
