"""The outcome of an edit may wait for that of the next, which says more, and is never forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from onrecord.gateway import course
from onrecord.gateway.async_delivery import AsyncOutbox
from onrecord.gateway.delivery import Outbox
from onrecord.projections.rows import Row
from onrecord.transcript.events import StreamChunkDelivered, Target
from onrecord.transcript.log import TranscriptLog

Rows = Callable[[str], list[Row]]
Types = Callable[[str], list[str]]
Make = Callable[..., Any]
WORDS = ("one ", "two ", "three ", "four ")


def through(log: TranscriptLog) -> list[int]:
    events = [record.event for record in log.read("s")]
    return [event.through for event in events if isinstance(event, StreamChunkDelivered)]


def test_a_confirmation_says_for_all_edits(
    log: TranscriptLog, platform: Make, chat: Target, rows: Rows, types: Types
) -> None:
    with Outbox(log, platform(streaming="edit")).begin("s", chat, turn="t1") as reply:
        for word in WORDS:
            reply.write(word)

    assert types("s") == [
        "DeliveryAttempted", "StreamChunkDelivered", *["DeliveryAttempted"] * 3, "DeliveryConfirmed",
    ]  # fmt: skip
    assert [(r.text, r.delivery) for r in rows("s")] == [("one two three four", "delivered")]


def test_a_broken_stream_says_what_was_taken(
    log: TranscriptLog, platform: Make, chat: Target, rows: Rows
) -> None:
    def stream() -> None:
        with Outbox(log, platform(streaming="edit")).begin("s", chat, turn="t1") as reply:
            for word in WORDS:
                reply.write(word)
            raise ConnectionError("the model's stream died")

    with pytest.raises(ConnectionError):
        stream()

    assert through(log) == [3, 18]
    assert [r.delivery for r in rows("s")] == ["delivered"]


def test_a_stopped_task_says_what_was_taken(
    log: TranscriptLog, async_platform: Make, chat: Target
) -> None:
    async def run() -> None:
        written = asyncio.Event()

        async def stream() -> None:
            reply = await AsyncOutbox(log, async_platform(streaming="edit")).begin(
                "s", chat, turn="t1"
            )
            async with reply:
                for word in WORDS:
                    await reply.write(word)
                written.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(stream())
        await written.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())

    assert through(log) == [3, 18]


def test_an_outcome_that_waited_long_goes_with_the_next_attempt(
    log: TranscriptLog, platform: Make, chat: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course, "HELD", timedelta(0))

    with Outbox(log, platform(streaming="edit")).begin("s", chat, turn="t1") as reply:
        commits = log.database.signal.count
        for word in WORDS:
            reply.write(word)

        assert log.database.signal.count - commits == len(WORDS) + 1
        assert through(log) == [3, 7, 13]


def test_the_next_attempt_keeps_the_outcome_of_the_one_before(
    log: TranscriptLog, platform: Make, chat: Target, rows: Rows
) -> None:
    with Outbox(log, platform(streaming="edit")).begin("s", chat, turn="t1") as reply:
        for word in WORDS:
            reply.write(word)
        outcome = reply.replace("one two 3")

    assert outcome.delivered
    assert through(log) == [3, 18]
    assert [(r.text, r.delivery) for r in rows("s")] == [("one two 3", "delivered")]
