"""An edit is attempted before it is asked for: what lengthens goes on, what changes starts over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from onrecord.gateway.delivery import Outbox
from onrecord.projections.rows import Row
from onrecord.transcript.events import (
    DeliveryAttempted,
    Target,
)
from onrecord.transcript.log import TranscriptLog

Rows = Callable[[str], list[Row]]
Make = Callable[..., Any]


def of(log: TranscriptLog, kind: type, session: str = "s") -> list[Any]:
    return [r.event for r in log.read(session) if isinstance(r.event, kind)]


def test_a_longer_edit_goes_on(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    with Outbox(log, platform()).begin("s", chat, turn="t1") as reply:
        reply.write("Hello")
    outcome = reply.replace("Hello\n-- footer")

    assert outcome.delivered
    assert book.texts == ["Hello\n-- footer"]
    assert [(a.attempt, a.offset) for a in of(log, DeliveryAttempted)] == [(1, 0), (1, 5)]
    assert [r.text for r in rows("s")] == ["Hello\n-- footer"]


@pytest.mark.parametrize(
    ("before", "after"),
    [("- one - two", "• one\n• two"), ("Hello wrld", "Hello world"), ("Hello world", "Hello")],
)
def test_an_edit_of_sent_text_is_the_next_attempt(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows, before: str, after: str
) -> None:
    with Outbox(log, platform()).begin("s", chat, turn="t1") as reply:
        reply.write(before)

    outcome = reply.replace(after)

    assert outcome.delivered
    assert book.texts == [after]
    assert of(log, DeliveryAttempted)[-1].attempt == 2
    assert [(r.text, r.delivery) for r in rows("s")] == [(after, "delivered")]


def test_an_edit_over_several_messages(
    log: TranscriptLog, platform: Make, book: Any, chat: Target, rows: Rows
) -> None:
    with Outbox(log, platform(limit=10)).begin("s", chat, turn="t1") as reply:
        reply.write("aaaa bbbb cccc dddd")
    after = "aaaa bbbb CCCC dddd eeee ffff"

    outcome = reply.replace(after)

    assert outcome.delivered
    assert "".join(book.texts) == after
    assert [(r.text, r.delivery) for r in rows("s")] == [(after, "delivered")]


def test_an_edit_that_cannot_be_is_refused_before_anything_goes_out(
    log: TranscriptLog, platform: Make, book: Any, chat: Target
) -> None:
    with Outbox(log, platform(limit=10)).begin("s", chat) as reply:
        reply.write("aaaa bbbb cccc dddd")
    before = log.version("s"), len(book.requests)

    for text in ("short", "  "):
        with pytest.raises(ValueError, match=r"blank|empty"):
            reply.replace(text)

    assert (log.version("s"), len(book.requests)) == before
