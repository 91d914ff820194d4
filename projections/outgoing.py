"""A delivery as the log tells it: what was attempted, taken, refused and revised.

A delivery holds takes. A take is one attempt's text: the earlier text up to where the attempt
starts over, and its own parts after it. What is visible of a take is what was attempted and not
definitely refused; evidence that it was taken beats evidence that it was refused, in any order. A
revision replaces what the takes up to its attempt said: the platform's message now reads otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    DeliveryRevised,
    StreamChunkDelivered,
)

DeliveryEvent = (
    DeliveryAttempted | StreamChunkDelivered | DeliveryConfirmed | DeliveryFailed | DeliveryRevised
)


@dataclass(slots=True)
class Take:
    """One attempt's text. Offsets are the event's own; `shift` maps them after a revision."""

    attempt: int
    text: str
    first: int
    edit: bool = False
    taken: int = 0
    refused: list[tuple[int, int]] = field(default_factory=list)
    confirmed: bool = False
    shift: int = 0
    settled: int = 0
    superseded: bool = False
    versions: list[int] = field(default_factory=list)

    @property
    def visible(self) -> str:
        """What the user may have read of it."""
        if self.superseded:
            return ""
        if not self.refused:
            return self.text
        hidden = [(max(lo, self.taken), hi) for lo, hi in self.refused]
        return "".join(
            c for i, c in enumerate(self.text) if not any(lo <= i < hi for lo, hi in hidden)
        )

    @property
    def taken_text(self) -> str:
        """What the platform is known to have taken of it."""
        return "" if self.superseded else self.text[: self.taken]

    def place(self, offset: int) -> int:
        """Return where an event's offset stands in `text`."""
        return max(offset + self.shift, self.settled)


@dataclass(slots=True)
class Outgoing:
    """One delivery. `message` as first named; `first`: the version of its first event."""

    id: str
    first: int
    kind: str = "answer"
    turn: str | None = None
    message: str | None = None
    takes: list[Take] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    deleted: bool = False

    def evolve(self, event: DeliveryEvent, version: int) -> None:
        """Take an event of this delivery in, in log order."""
        self.versions.append(version)
        if isinstance(event, DeliveryAttempted):
            self._attempt(event, version)
            return
        take = self._take(event.attempt, exact=True)
        if take is None:
            if isinstance(event, DeliveryRevised) and event.text.strip():
                take = Take(event.attempt or 1, "", version)
                self.takes.append(take)
            else:
                return
        take.versions.append(version)
        if isinstance(event, StreamChunkDelivered):
            take.taken = max(take.taken, min(take.place(event.through), len(take.text)))
        elif isinstance(event, DeliveryConfirmed):
            take.taken = max(take.taken, len(take.text))
            take.confirmed = True
        elif isinstance(event, DeliveryFailed):
            if event.definite:
                take.refused.append((take.place(event.offset), len(take.text)))
        else:
            self._revise(take, event.text)

    def erase(self, put: str) -> None:
        """Put `put` in the place of all text so far; what is taken or in doubt stays so."""
        for take in self.takes:
            if take.text and not take.superseded:
                whole = take.taken >= len(take.text)
                take.shift += len(put) - len(take.text)
                take.text, take.settled, take.refused = put, len(put), []
                take.taken = len(put) if whole else 0

    def _attempt(self, event: DeliveryAttempted, version: int) -> None:
        if not self.takes:
            self.kind = event.kind
        self.message = self.message or event.message
        take = self._take(event.attempt, exact=True)
        start = event.offset if take is None else take.place(event.offset)
        end = start + len(event.text)
        if take is not None and start == len(take.text):
            take.text += event.text
        elif (
            take is not None
            and take.text[start:end] == event.text
            and not any(lo < end and start < hi for lo, hi in take.refused)
        ):
            pass
        else:
            earlier = take or self._take(event.attempt - 1) or Take(0, "", version)
            text = earlier.text[: earlier.place(event.offset)] + event.text
            take = Take(event.attempt, text, version, edit=event.op in ("edit", "draft"))
            take.shift = len(text) - len(event.text) - event.offset
            self.takes.append(take)
        take.versions.append(version)

    def _take(self, attempt: int | None, *, exact: bool = False) -> Take | None:
        """Return the newest take of `attempt` (None: the latest), or of the nearest before it."""
        if not self.takes:
            return None
        if attempt is None:
            return max(self.takes, key=lambda take: (take.attempt, take.first))
        same = [t for t in self.takes if (t.attempt == attempt if exact else t.attempt <= attempt)]
        return max(same, key=lambda take: (take.attempt, take.first), default=None)

    def _revise(self, take: Take, text: str) -> None:
        if not text.strip():
            self.deleted = True
            take.taken = len(take.text)
            return
        for other in self.takes:
            other.superseded = other.superseded or (
                other is not take and other.attempt <= take.attempt
            )
        take.shift += len(text) - len(take.text)
        take.text, take.taken, take.settled = text, len(text), len(text)
        take.superseded, take.refused = False, []
