"""A message is recorded on receipt, and known when it comes again, wherever it comes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from onrecord.gateway.inbox import AsyncInbox, Inbox, Receipt
from onrecord.projections.rows import Row
from onrecord.transcript.events import Source
from onrecord.transcript.log import TranscriptLog

SOURCE = Source(platform="telegram", account="bot", chat="42", message="7")


def test_a_message_is_new_once(log: TranscriptLog) -> None:
    inbox = Inbox(log)

    first, again = (inbox.receive("s", "Hi", source=SOURCE) for _ in range(2))

    assert (first.new, again.new) == (True, False)
    assert first.recorded == again.recorded
    assert log.version("s") == 1


def test_a_redelivery_is_known_after_a_new_session_began(log: TranscriptLog) -> None:
    first = Inbox(log).receive("old", "Hi", source=SOURCE, turn="t1")

    again = Inbox(log).receive("new", "Hi", source=SOURCE)

    assert not again.new
    assert (again.session, again.turn, again.message) == ("old", "t1", first.message)
    assert log.version("new") == 0


def test_a_redelivery_with_other_words_is_kept_beside_the_first(
    log: TranscriptLog, rows: Callable[[str], list[Row]]
) -> None:
    Inbox(log).receive("s", "Hi", source=SOURCE)

    again = Inbox(log).receive("s", "Hi there", source=SOURCE)

    assert (again.new, again.changed) == (False, True)
    assert [r.text for r in rows("s")] == ["Hi"]
    assert log.version("s") == 2


def test_messages_of_two_chats_with_one_number_are_two(log: TranscriptLog) -> None:
    inbox = Inbox(log)

    receipts = [
        inbox.receive("s", "Hi", source=Source(platform="telegram", chat=c, message="7"))
        for c in ("1", "2")
    ]

    assert all(receipt.new for receipt in receipts)
    assert len({receipt.message for receipt in receipts}) == 2


def test_without_a_source_a_message_is_known_by_its_id(log: TranscriptLog) -> None:
    inbox = Inbox(log)

    receipts = [inbox.receive("s", "Hi", message="u1"), inbox.receive("s", "Hi", message="u1")]
    unnamed = [inbox.receive("s", "Hi"), inbox.receive("s", "Hi")]

    assert [r.new for r in receipts + unnamed] == [True, False, True, True]


def test_of_two_receivers_at_once_one_has_it_new(log: TranscriptLog, path: Path) -> None:
    receipts: list[Receipt] = []
    start = threading.Barrier(4)

    def receive() -> None:
        with TranscriptLog.open(path) as own:
            start.wait()
            receipts.append(Inbox(own).receive("s", "Hi", source=SOURCE))

    threads = [threading.Thread(target=receive) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(receipt.new for receipt in receipts) == [False, False, False, True]
    assert log.version("s") == 1


def test_edits_and_retractions(log: TranscriptLog, rows: Callable[[str], list[Row]]) -> None:
    inbox = Inbox(log)
    inbox.receive("s", "Helo", message="u1")
    inbox.receive("s", "Oops", message="u2")

    for _ in range(2):
        inbox.edit("s", "u1", "Hello", update="upd-1")
        inbox.retract("s", "u2")

    assert log.version("s") == 4
    first, second = rows("s")
    assert first.text == "Hello"
    assert second.origin == "synthetic"


def test_awaited(log: TranscriptLog) -> None:
    async def main() -> list[bool]:
        inbox = AsyncInbox(log)
        receipts = [await inbox.receive("s", t, source=SOURCE) for t in ("Hi", "Hi", "Hi!")]
        await inbox.edit("s", receipts[0].message, "Hello")
        await inbox.retract("s", receipts[0].message)
        return [receipt.new for receipt in receipts]

    assert asyncio.run(main()) == [True, False, False]
    assert log.version("s") == 4
