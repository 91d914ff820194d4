"""How each delivery of a session stands: where a sender that comes after a crash would go on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    Event,
    StreamChunkDelivered,
    Target,
    UserMessageReceived,
)

BY_RECOVERY = "recovery"
"""Evidence of a failure that stands for a caller's decision: left in doubt, or not sent any more."""
ANSWERED = "answer"
"""Evidence of a failure that the platform itself said; other bytes, or a later time, may help."""
REFUSED = "refused"
"""Evidence of a failure that the platform itself said, and after which nothing is left to try."""


class Standing(msgspec.Struct):
    """The latest attempt of a delivery, for a sender that goes on with it.

    `last`: its newest part; `shown`: where each platform message begins, and its id; `failure`: what
    is known of the newest part's failure; `formats_refused`: markups that the platform didn't take;
    `messages`: the platform's ids, as the confirmation says.
    """

    delivery: str
    turn: str | None = None
    message: str | None = None
    target: Target | None = None
    attempt: int = 0
    last: DeliveryAttempted | None = None
    shown: list[tuple[int, str]] = msgspec.field(default_factory=list)
    failure: DeliveryFailed | None = None
    formats_refused: list[str | None] = msgspec.field(default_factory=list)
    given_up: set[int] = msgspec.field(default_factory=set)
    confirmed: bool = False
    messages: list[str] = msgspec.field(default_factory=list)

    def evolve(self, event: Event) -> None:
        """Take an event of this delivery in, in log order."""
        if isinstance(event, DeliveryAttempted):
            self.turn, self.message = self.turn or event.turn, self.message or event.message
            self.target = self.target or event.target
            self.attempt, self.last, self.failure = event.attempt, event, None
            self.confirmed = False
        elif isinstance(event, DeliveryFailed):
            if event.evidence == BY_RECOVERY:
                self.given_up.add(event.attempt or self.attempt)
            elif event.attempt in (None, self.attempt):
                self.failure = event
                if event.evidence == ANSWERED and event.not_before is None and self.last:
                    self.formats_refused.append(self.last.format)
        elif isinstance(event, StreamChunkDelivered):
            if event.attempt in (None, self.attempt):
                self.failure = None
            if event.platform_message:
                self._show(event)
        elif isinstance(event, DeliveryConfirmed) and event.attempt in (None, self.attempt):
            self.confirmed, self.failure = True, None
            self.messages = event.platform_messages

    def _show(self, event: StreamChunkDelivered) -> None:
        name, last = event.platform_message or "", self.last
        if last is not None and all(name != known for _, known in self.shown):
            # An edit into a message that wasn't sent by this delivery (a placeholder) begins at 0.
            start = last.offset if last.op != "edit" or self.shown else 0
            self.shown.append((start, name))

    @property
    def refused(self) -> bool:
        """Tell whether the platform refused the latest attempt, and nothing is left to try."""
        return self.failure is not None and self.failure.evidence == REFUSED

    @property
    def not_before(self) -> datetime | None:
        """Return when the platform takes the next try, None for at once."""
        return self.failure.not_before if self.failure else None


def standings(events: Iterable[Event]) -> tuple[dict[str, Standing], dict[str, Target]]:
    """Fold a session's events; return deliveries by name, and by message where its answer goes."""
    found: dict[str, Standing] = {}
    origins: dict[str, Target] = {}
    for event in events:
        if event.conflicts_with is not None:
            continue
        if isinstance(event, UserMessageReceived) and event.source is not None:
            came = event.source
            origins[event.message] = Target(
                platform=came.platform, account=came.account, chat=came.chat
            )
        name = getattr(event, "delivery", None)
        if isinstance(name, str):
            found.setdefault(name, Standing(name)).evolve(event)
    for standing in found.values():
        _show_placeholder(standing, found)
    return found, origins


def _show_placeholder(standing: Standing, found: dict[str, Standing]) -> None:
    """Name the message that a first edit went into, which only its placeholder's delivery says."""
    if standing.shown or standing.last is None or standing.last.op != "edit":
        return
    for name in (standing.delivery, standing.message):
        placeholder = found.get(placeholder_of(name)) if name else None
        if placeholder is not None and placeholder.messages:
            standing.shown.append((0, placeholder.messages[0]))
            return


def placeholder_of(name: str) -> str:
    """Return the delivery that shows a placeholder for a delivery or message."""
    return f"{name}/placeholder"
