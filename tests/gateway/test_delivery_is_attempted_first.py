"""What goes out is on record before, what became of it after, and nothing goes out unrecorded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from onrecord.gateway.delivery import AlreadyAttempted, Outbox
from onrecord.projections.rows import Row
from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    Target,
)
from onrecord.transcript.log import TranscriptLog

Rows = Callable[[str], list[Row]]
Make = Callable[..., Any]


def of(log: TranscriptLog, kind: type, session: str = "s") -> list[Any]:
    return [r.event for r in log.read(session) if isinstance(r.event, kind)]


def test_a_whole_message(log: TranscriptLog, platform: Make, book: Any, chat: Target) -> None:
    outcome = Outbox(log, platform()).send("s", chat, "Hello", turn="t1", message="m1")

    assert outcome.delivered
    assert outcome.platform_messages == ("p1",)
    assert book.texts == ["Hello"]
    (attempt,) = of(log, DeliveryAttempted)
    assert (attempt.text, attempt.target, attempt.op, attempt.delivery) == (
        "Hello", chat, "send", "m1/out",
    )  # fmt: skip
    (confirmed,) = of(log, DeliveryConfirmed)
    assert (confirmed.platform_messages, confirmed.evidence) == (["p1"], "answer")


def test_the_attempt_is_durable_before_the_platform_sees_it(
    log: TranscriptLog, path: Path, platform: Make, book: Any, chat: Target
) -> None:
    book.script.append("silent")
    sender = threading.Thread(target=Outbox(log, platform()).send, args=("s", chat, "Hello"))
    sender.start()
    assert book.arrived.wait(5)

    with TranscriptLog.open(path) as other:
        seen = [r.type for r in other.read("s")]
    book.go_on.set()
    sender.join()

    assert seen == ["DeliveryAttempted"]


def test_a_split_is_one_delivery_and_one_row(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    text = "First sentence here. Second one, a bit longer.\n\nThird and last."

    outcome = Outbox(log, platform(limit=30)).send("s", chat, text, turn="t1")

    assert outcome.delivered
    assert "".join(a.text for a in of(log, DeliveryAttempted)) == text
    assert len({a.delivery for a in of(log, DeliveryAttempted)}) == 1
    assert len(book.texts) == 3
    assert not any(t.startswith((" ", "\n")) for t in book.texts)
    assert [(r.text, r.delivery) for r in rows("s")] == [(text, "delivered")]


def test_a_stream_of_chunks(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    outbox = Outbox(log, platform(streaming="chunks"))

    with outbox.begin("s", chat, turn="t1", message="m1") as reply:
        for chunk in ("Hel", "lo, ", "wor", "ld", "!"):
            reply.write(chunk)

    assert reply.outcome.delivered
    assert "".join(book.texts) == "Hello, world!"
    assert [(r.text, r.delivery) for r in rows("s")] == [("Hello, world!", "delivered")]


def test_a_stream_by_edits_flows_over_into_more_messages(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    outbox = Outbox(log, platform(streaming="edit", limit=12))
    text = "one two three four five six"

    with outbox.begin("s", chat, turn="t1") as reply:
        for character in text:
            reply.write(character)

    assert reply.outcome.delivered
    assert all(len(t.rstrip()) <= 12 for t in book.texts)
    assert "".join(book.texts) == text
    assert [(r.text, r.delivery) for r in rows("s")] == [(text, "delivered")]
    offsets = [(a.attempt, a.offset, len(a.text)) for a in of(log, DeliveryAttempted)]
    assert all(attempt == 1 for attempt, _, _ in offsets)
    assert all(a[1] + a[2] == b[1] for a, b in pairwise(offsets))


def test_a_stream_keeps_the_platforms_pace(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    outbox = Outbox(log, platform(streaming="edit", interval=30.0))

    with outbox.begin("s", chat) as reply:
        for word in ("a ", "b ", "c ", "d ", "e"):
            reply.write(word)

    assert len(book.requests) == 2
    assert book.texts == ["a b c d e"]


def test_a_stream_that_breaks_is_not_confirmed(
    log: TranscriptLog, platform: Make, chat: Target, rows: Rows
) -> None:
    outbox = Outbox(log, platform(streaming="edit"))

    def broken() -> None:
        with outbox.begin("s", chat, turn="t1") as reply:
            reply.write("Half a ")
            raise RuntimeError("the model died")

    with pytest.raises(RuntimeError):
        broken()

    assert of(log, DeliveryConfirmed) == []
    assert [r.text for r in rows("s")] == ["Half a"]


def test_a_blank_text_is_not_sent(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    outcome = Outbox(log, platform()).send("s", chat, " \n ")

    assert outcome.state == "empty"
    assert log.version("s") == 0
    assert book.requests == []


def test_what_is_sent_is_what_is_stored(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    Outbox(log, platform()).send("s", chat, "a\ud83db")

    (attempt,) = of(log, DeliveryAttempted)
    assert attempt.text == "a\ufffdb"
    assert attempt.replaced
    assert book.texts == ["a\ufffdb"]


def test_a_notice_makes_no_row(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    Outbox(log, platform()).notice("s", chat, "thinking …", turn="t1")

    assert book.texts == ["thinking …"]
    assert rows("s") == []


def test_the_reply_replaces_its_placeholder(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    outbox = Outbox(log, platform(streaming="edit"))

    with outbox.begin("s", chat, turn="t1", message="m1", placeholder="…") as reply:
        reply.write("The answer")

    assert book.texts == ["The answer"]
    assert [a.op for a in of(log, DeliveryAttempted)] == ["send", "edit", "edit"]
    assert [r.text for r in rows("s")] == ["The answer"]


def test_the_same_delivery_does_not_go_out_twice(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    Outbox(log, platform()).send("s", chat, "Hello", message="m1")

    with pytest.raises(AlreadyAttempted):
        Outbox(log, platform()).send("s", chat, "Hello", message="m1")

    assert len(book.requests) == 1
