"""What comes in: recorded once, on receipt, before anything runs.

Acknowledge a message to the platform after `receive` has returned, not before: then it comes again
when the process dies in between, and `Receipt.new` says whether it is the first time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID, uuid4, uuid5

from onrecord.transcript import failpoints
from onrecord.transcript.codec import NAMESPACE
from onrecord.transcript.events import (
    Event,
    Source,
    UserMessageEdited,
    UserMessageReceived,
    UserMessageRetracted,
)
from onrecord.transcript.recorded import Recorded

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog

RECEIPT = "receipt"
"""The field of a received message that tells its first receipt from a later one."""


@dataclass(frozen=True)
class Receipt:
    """What became of an incoming message.

    `new`: it wasn't known; run a turn for it. Otherwise it came before, in this session or another,
    and `session`, `turn` and `message` are those of that time. `recorded` is its record. `changed`:
    it came again with other content; the first counts, the other is on record too, as a conflict.
    """

    new: bool
    session: str
    turn: str
    message: str
    recorded: Recorded
    changed: bool = False


def message_id(source: Source) -> str:
    """Return the message id that stands for a source where the caller names none."""
    parts = (source.platform, source.account, source.chat, source.message)
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


class _Inbox:
    def __init__(self, log: TranscriptLog, *, writer: str = "gateway") -> None:
        self.log = log
        self.writer = writer

    def _received(
        self,
        text: str,
        *,
        source: Source | None = None,
        message: str | None = None,
        turn: str | None = None,
        parts: Sequence[Any] = (),
        sender: str | None = None,
        reply_to: str | None = None,
        at: datetime | None = None,
    ) -> UserMessageReceived:
        return UserMessageReceived(
            message=message or (message_id(source) if source else uuid4().hex),
            text=text, turn=turn, parts=list(parts), sender=sender, reply_to=reply_to,
            source=source, at=at or datetime.now(UTC), writer=self.writer, extra={RECEIPT: uuid4().hex[:12]},
        )  # fmt: skip

    def _edited(
        self, session: str, message: str, text: str, update: str | None, at: datetime | None
    ) -> UserMessageEdited:
        return UserMessageEdited(
            id=_update_id(session, "edited", message, update), message=message, text=text,
            at=at or datetime.now(UTC), writer=self.writer,
        )  # fmt: skip

    def _retracted(self, session: str, message: str, at: datetime | None) -> UserMessageRetracted:
        # Final, so that one record says it all.
        return UserMessageRetracted(
            id=_update_id(session, "retracted", message, ""), message=message,
            at=at or datetime.now(UTC), writer=self.writer,
        )  # fmt: skip


class Inbox(_Inbox):
    """Takes messages in, blocking."""

    def receive(self, session: str, text: str, **about: Any) -> Receipt:
        """Record a message; return once it is durable.

        `about`: `source` (the platform's name for it, by which a redelivery is known in every
        session), `message` (its id in the session, derived from `source` if absent), `turn` (the turn that it
        adds to; absent, it is a turn of its own), `parts`, `sender`, `reply_to`, `at`.
        """
        event = self._received(text, **about)
        failpoints.hit("received")
        (record,) = self.log.append(session, event)
        failpoints.hit("received-committed")
        first = record
        if record.event.conflicts_with is not None:
            first = self.log.find(record.event.conflicts_with) or record
        return _receipt(event, record, first)

    def edit(
        self,
        session: str,
        message: str,
        text: str,
        *,
        update: str | None = None,
        at: datetime | None = None,
    ) -> Recorded:
        """Record a message's new wording. `update`: the platform's name for this edit, if any."""
        return self.log.append(session, self._edited(session, message, text, update, at))[0]

    def retract(self, session: str, message: str, *, at: datetime | None = None) -> Recorded:
        """Record that a message was taken back."""
        return self.log.append(session, self._retracted(session, message, at))[0]


class AsyncInbox(_Inbox):
    """As `Inbox`, awaited."""

    async def receive(self, session: str, text: str, **about: Any) -> Receipt:
        """Record a message; return once it is durable. See `Inbox.receive`."""
        event = self._received(text, **about)
        failpoints.hit("received")
        (record,) = await self.log.aio.append(session, event)
        failpoints.hit("received-committed")
        first = record
        if record.event.conflicts_with is not None:
            first = await self.log.aio.find(record.event.conflicts_with) or record
        return _receipt(event, record, first)

    async def edit(
        self,
        session: str,
        message: str,
        text: str,
        *,
        update: str | None = None,
        at: datetime | None = None,
    ) -> Recorded:
        """Record a message's new wording. `update`: the platform's name for this edit, if any."""
        event = self._edited(session, message, text, update, at)
        return (await self.log.aio.append(session, event))[0]

    async def retract(self, session: str, message: str, *, at: datetime | None = None) -> Recorded:
        """Record that a message was taken back."""
        return (await self.log.aio.append(session, self._retracted(session, message, at)))[0]


def _update_id(session: str, what: str, message: str, update: str | None) -> UUID | None:
    if update is None:
        return None
    return uuid5(NAMESPACE, f"{what}\0{session}\0{message}\0{update}")


def _receipt(given: Event, record: Recorded, first: Recorded) -> Receipt:
    event = cast("UserMessageReceived", first.event)
    mine = event.extra.get(RECEIPT) == given.extra[RECEIPT]
    return Receipt(
        new=mine, session=first.session, turn=event.turn or event.message, message=event.message,
        recorded=first, changed=record is not first,
    )  # fmt: skip
