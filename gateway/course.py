"""What is known of a delivery under way, and the events that are said about it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid5

import msgspec

from onrecord.gateway.outcomes import Outcome, State
from onrecord.gateway.platform import Abilities, Op, Request
from onrecord.transcript.codec import NAMESPACE
from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    DeliveryRevised,
    Event,
    StreamChunkDelivered,
    Target,
)
from onrecord.transcript.mending import storable

TRIES = 4
"""Times that one part is tried at most."""
HELD = timedelta(seconds=1)
"""Age from which the outcome of an edit is said with the next attempt; a younger one waits for more."""
LONGEST_WAIT = 60.0
"""Seconds that a sender sleeps for a rate limit; a later time is handed to the caller."""


class Shown(msgspec.Struct):
    """A message of the platform that holds the delivery's text from `start` on."""

    start: int
    platform_message: str | None


class Standpoint(msgspec.Struct):
    """Where a delivery stands, and the events that it would write from there.

    `text` is what was attempted so far and not refused; `waiting_text` what isn't attempted yet.
    """

    session: str
    delivery: str
    target: Target
    abilities: Abilities
    render: Callable[[str, str | None], str]
    turn: str | None = None
    message: str | None = None
    kind: str = "answer"
    writer: str = "gateway"
    tries: int = TRIES
    longest_wait: float = LONGEST_WAIT
    text: str = ""
    attempt: int = 1
    shown: list[Shown] = msgspec.field(default_factory=list)
    waiting_text: str = ""
    state: State = "open"
    not_before: datetime | None = None
    error: Exception | None = None
    plain: int = 0
    evidence: str = "answer"
    finishing: bool = False
    resumed: bool = False
    revises: bool = False
    held: StreamChunkDelivered | None = None
    held_from: datetime | None = None

    def outcome(self) -> Outcome:
        """Return how the delivery stands now."""
        return Outcome(
            self.delivery,
            self.state,
            self.text,
            self.waiting_text,
            tuple(s.platform_message for s in self.shown if s.platform_message),
            self.attempt,
            self.not_before,
            self.error,
        )

    def _attempt(
        self, part: str, offset: int, start: int | None, shown: Shown | None
    ) -> tuple[DeliveryAttempted, Request]:
        op: Op = "edit" if shown is not None else "send"
        form = self.abilities.formats[min(self.plain, len(self.abilities.formats) - 1)]
        # What is sent is what is stored: the log replaces lone surrogates one by one.
        content = storable((self.text[start:] if start is not None else "") + part)
        if self.abilities.count(content) > self.abilities.limit:
            content = content.strip()
        wire = self.render(content, form)
        digest = hashlib.sha256(wire.encode("utf-8", "surrogatepass")).hexdigest()
        key = uuid5(NAMESPACE, f"{self.session}\0{self.delivery}\0{offset}\0{op}\0{digest}").hex
        event = DeliveryAttempted(
            delivery=self.delivery, text=part, offset=offset, turn=self.turn, message=self.message,
            kind=self.kind, attempt=self.attempt, target=self.target, op=op, format=form,
            wire=digest, at=self._now(), writer=self.writer,
        )  # fmt: skip
        message = shown.platform_message if shown else None
        return event, Request(op, self.target, content, wire, key, form, message)

    def _hold(self, outcome: StreamChunkDelivered, now: datetime) -> None:
        """Keep the outcome of an edit back: the next one says more, a confirmation all."""
        self.held = outcome
        self.held_from = self.held_from or now

    def _let_go(self, going_on: DeliveryAttempted | None = None) -> tuple[Event, ...]:
        """Return the outcome that is kept back, to be said before what comes now.

        Before a part that is `going_on` where it ended, only once it waited long enough.
        """
        held, since = self.held, self.held_from
        if held is None or since is None:
            return ()
        if going_on and going_on.attempt == held.attempt and self._now() - since < HELD:
            return ()
        self.held = self.held_from = None
        return (held,)

    def _confirmation(self, now: datetime) -> DeliveryConfirmed:
        return DeliveryConfirmed(
            delivery=self.delivery,
            platform_messages=[s.platform_message for s in self.shown if s.platform_message],
            evidence=self.evidence, attempt=self.attempt, at=now, writer=self.writer,
        )  # fmt: skip

    def _revised(self, now: datetime) -> DeliveryRevised:
        return DeliveryRevised(
            delivery=self.delivery, text=self.text, attempt=self.attempt, at=now,
            writer=self.writer,
        )  # fmt: skip

    def _failure(
        self,
        event: DeliveryAttempted,
        reason: str,
        *,
        definite: bool = True,
        not_before: datetime | None = None,
        evidence: str | None = None,
    ) -> DeliveryFailed:
        return DeliveryFailed(
            delivery=event.delivery, offset=event.offset, reason=reason, definite=definite,
            not_before=not_before, evidence=evidence, attempt=event.attempt, at=self._now(),
            writer=self.writer,
        )  # fmt: skip

    @staticmethod
    def _now() -> datetime:
        return datetime.now(UTC)
