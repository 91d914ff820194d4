"""On an event loop: the same records, never blocking, and cancellation leaves no untruth."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from onrecord.gateway.async_delivery import AsyncOutbox, Stopped
from onrecord.gateway.async_recovery import AsyncRecovery
from onrecord.gateway.holding import AsyncHold
from onrecord.gateway.recovery import Plan, Send, Settle
from onrecord.projections.rows import Row
from onrecord.transcript.errors import LeaseHeld, LeaseLost
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    Target,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

Rows = Callable[[str], list[Row]]
Make = Callable[..., Any]


def of(log: TranscriptLog, kind: type) -> list[Any]:
    return [r.event for r in log.read("s") if isinstance(r.event, kind)]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


def test_a_stream(
    log: TranscriptLog, async_platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    async def main() -> None:
        outbox = AsyncOutbox(log, async_platform(streaming="edit", limit=12))
        async with await outbox.begin("s", chat, turn="t1", placeholder="…") as reply:
            for word in ("one ", "two ", "three ", "four ", "five"):
                await reply.write(word)
        assert reply.outcome.delivered
        await reply.replace("one two three four fives")

    asyncio.run(main())

    assert "".join(book.texts) == "one two three four fives"
    assert [(r.text, r.delivery) for r in rows("s")] == [("one two three four fives", "delivered")]


def test_cancelled_while_the_platform_answers_waits_for_the_answer(
    log: TranscriptLog, async_platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    async def main() -> None:
        outbox = AsyncOutbox(log, async_platform(limit=8))
        book.script.append("silent")
        task = asyncio.create_task(outbox.send("s", chat, "part 1. part 2.", turn="t1"))
        await until(book.arrived.is_set)
        task.cancel()
        await asyncio.sleep(0.05)
        book.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert book.texts == ["part 1. "]
    assert [r.type for r in log.read("s")] == ["DeliveryAttempted", "StreamChunkDelivered"]
    assert of(log, DeliveryFailed) == []
    assert [r.text.strip() for r in rows("s")] == ["part 1."]


def test_cancelled_and_not_answered_in_time_is_in_doubt(
    log: TranscriptLog, async_platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    async def main() -> None:
        outbox = AsyncOutbox(log, async_platform(), drain=0.1)
        book.script.append("silent")
        task = asyncio.create_task(outbox.send("s", chat, "Hello", turn="t1"))
        await until(book.arrived.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert [f.definite for f in of(log, DeliveryFailed)] == [False]
    assert [(r.text, r.delivery) for r in rows("s")] == [("Hello", "in_doubt")]


def taken(rows: list[Row]) -> int:
    return sum(row.delivery in ("delivered", "partial") for row in rows)


@pytest.mark.parametrize("moment", range(12))
def test_cancelled_at_any_moment_nothing_unrecorded_is_out(
    log: TranscriptLog, async_platform: Make, book: Any, chat: Target, rows: Rows, moment: int
) -> None:
    async def main() -> None:
        outbox = AsyncOutbox(log, async_platform(limit=8))
        task = asyncio.create_task(outbox.send("s", chat, "part 1. part 2.", turn="t1"))
        for _ in range(moment):
            await asyncio.sleep(0)
        await asyncio.sleep(moment / 2000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())

    shown = "".join(book.texts).strip()
    text = "".join(r.text for r in rows("s")).strip()
    assert text == shown
    limit = time.monotonic() + 10  # an append once begun completes, in a thread of its own
    while shown and not taken(rows("s")) and time.monotonic() < limit:
        time.sleep(0.01)
    assert taken(rows("s")) == bool(shown)


def test_cancelled_before_the_socket_leaves_a_definite_failure(
    log: TranscriptLog, async_platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    class Slow(AsyncOutbox):
        async def perform(self, effect: Any, session: str, lease: Any) -> object:
            result = await super().perform(effect, session, lease)
            if type(effect).__name__ == "Append" and effect.events[0].intent:
                await asyncio.sleep(10)
            return result

    async def main() -> None:
        task = asyncio.create_task(Slow(log, async_platform()).send("s", chat, "Hello", turn="t1"))
        await until(lambda: log.version("s"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert book.requests == []
    assert [f.definite for f in of(log, DeliveryFailed)] == [True]
    assert rows("s") == []


def test_the_loop_goes_on_while_the_platform_is_slow(
    log: TranscriptLog, async_platform: Make, book: Any, chat: Target
) -> None:
    async def main() -> int:
        outbox = AsyncOutbox(log, async_platform())
        book.script.append("silent")
        task = asyncio.create_task(outbox.send("s", chat, "Hello"))
        await until(book.arrived.is_set)
        ticks = 0
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            await asyncio.sleep(0.005)
            ticks += 1
        early = await outbox.drain(0.05)
        book.go_on.set()
        await task
        with pytest.raises(Stopped):
            await outbox.send("s", chat, "More")
        assert not early
        assert await outbox.drain(1)
        return ticks

    assert asyncio.run(main()) >= 5
    assert len(of(log, DeliveryConfirmed)) == 1


def test_a_held_session_is_renewed_and_given_back(
    log: TranscriptLog, async_platform: Make, book: Any, chat: Target
) -> None:
    async def main() -> None:
        async with AsyncHold(log, "s", "one", ttl=0.3) as lease:
            await asyncio.sleep(0.5)
            with pytest.raises(LeaseHeld):
                log.leases.acquire("s", "two", 30)
            outbox = AsyncOutbox(log, async_platform())
            assert (await outbox.send("s", chat, "Hello", lease=lease)).delivered
        newer = log.leases.acquire("s", "two", 30)
        assert newer.generation > lease.generation
        with pytest.raises(LeaseLost):
            await outbox.send("s", chat, "Late", lease=lease)

    asyncio.run(main())

    assert book.texts == ["Hello"]


def test_recovery_awaited(
    log: TranscriptLog, async_platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    log.append(
        "s",
        UserMessageReceived(message="u1", turn="t1", text="Hi"),
        AssistantMessageProduced(turn="t1", message="m1", text="Hello"),
        DeliveryAttempted(delivery="m1/out", turn="t1", message="m1", text="Hello", target=chat),
    )

    async def main() -> list[Plan]:
        recovery = AsyncRecovery(log, "new")
        (doubt,) = await recovery.plans()
        assert isinstance(doubt, Settle)
        await recovery.decide(doubt.refute, evidence="lookup")
        (unsent,) = await recovery.plans()
        assert isinstance(unsent, Send)
        outcome = await AsyncOutbox(log, async_platform()).resume(unsent)
        assert outcome.delivered
        (open_turn,) = await recovery.plans()
        await recovery.decide(open_turn.close, "completed")
        last = await recovery.plans()
        await recovery.release()
        assert recovery.leases == {}
        return last

    assert asyncio.run(main()) == []
    assert book.texts == ["Hello"]
    assert [(r.text, r.delivery) for r in rows("s")][1:] == [("Hello", "delivered")]
