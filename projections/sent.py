"""A delivery as the promise reads it: each of its texts, with a mask over the characters.

Like all of the promise's reading it shares nothing with the fold (`onrecord.projections.outgoing`):
the rules are written down a second time on purpose, in another shape.
"""

from __future__ import annotations

import msgspec

from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    DeliveryRevised,
    StreamChunkDelivered,
)

OPEN, REFUSED, TAKEN = 0, 1, 2
Outcome = StreamChunkDelivered | DeliveryConfirmed | DeliveryFailed | DeliveryRevised
_REFUSE = bytes([REFUSED, REFUSED, TAKEN])  # evidence that it was taken isn't undone


class Text(msgspec.Struct):
    """One text of a delivery, a mask over its characters, and where later offsets stand in it.

    `apart`: it started over as a message of its own. `sure`: how much of the mask's beginning is
    known to be taken, so that nobody writes it twice.
    """

    attempt: int
    first: int
    apart: bool
    pieces: list[str]
    mask: bytearray
    rewritten: int = 0
    moved: int = 0
    sure: int = 0
    gone: bool = False

    def at(self, offset: int) -> int:
        return max(self.rewritten, offset + self.moved)

    def whole(self) -> str:
        if len(self.pieces) != 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def go_on(self, text: str) -> None:
        self.pieces.append(text)
        self.mask += bytes(len(text))

    def accept(self, through: int) -> None:
        if through > self.sure:
            self.mask[self.sure : through] = bytes([TAKEN]) * (through - self.sure)
            self.sure = through

    def rewrite(self, text: str) -> None:
        self.moved += len(text) - len(self.mask)
        self.rewritten = self.sure = len(text)
        self.pieces, self.mask = [text], bytearray([TAKEN]) * len(text)

    def seen(self) -> str:
        if REFUSED not in self.mask:
            return self.whole()
        marks = zip(self.whole(), self.mask, strict=True)
        return "".join(char for char, mark in marks if mark != REFUSED)


class Sent(msgspec.Struct):
    """One delivery. `turn`: as named; `own`: where it belongs; `newest`: the text of an attempt."""

    id: str
    turn: str | None
    message: str | None
    notice: bool
    began: int
    texts: list[Text] = msgspec.field(default_factory=list)
    newest: dict[int, Text] = msgspec.field(default_factory=dict)
    highest: int = 0
    attempted_at: int = 0
    erased: bool = False
    own: str = ""

    def enter(self, text: Text) -> Text:
        self.texts.append(text)
        self.newest[text.attempt] = text
        self.highest = max(self.highest, text.attempt)
        return text

    def attempted(self, event: DeliveryAttempted, version: int) -> None:
        own = self.newest.get(event.attempt)
        if own is not None:
            at = own.at(event.offset)
            end = at + len(event.text)
            if at == len(own.mask):
                own.go_on(event.text)
                return
            if own.whole()[at:end] == event.text and REFUSED not in own.mask[at:end]:
                return
        before = own
        if before is None:
            before = self.newest.get(self._below(event.attempt))
        kept = before.whole()[: before.at(event.offset)] if before else ""
        text = kept + event.text
        apart = (before is None or event.offset <= 0) and event.op not in {"edit", "draft"}
        new = Text(event.attempt, version, apart, [text], bytearray(len(text)))
        new.moved = len(kept) - event.offset
        self.enter(new)

    def _below(self, attempt: int) -> int:
        if attempt > self.highest:
            return self.highest
        return max((lower for lower in self.newest if lower < attempt), default=0)

    def settled(self, event: Outcome, version: int) -> None:
        text = self.newest.get(self.highest if event.attempt is None else event.attempt)
        if isinstance(event, DeliveryRevised):
            self._revised(event, text, version)
        elif text is None:
            return
        elif isinstance(event, StreamChunkDelivered):
            text.accept(min(text.at(event.through), len(text.mask)))
        elif isinstance(event, DeliveryConfirmed):
            text.accept(len(text.mask))
        elif event.definite:
            at = text.at(event.offset)
            text.mask[at:] = text.mask[at:].translate(_REFUSE + bytes(253))

    def _revised(self, event: DeliveryRevised, text: Text | None, version: int) -> None:
        if not event.text.strip():
            if text is not None:
                refused = text.mask.find(REFUSED)
                text.accept(len(text.mask) if refused < 0 else refused)
            return
        if text is None:
            text = self.enter(Text(event.attempt or 1, version, True, [], bytearray()))
        for other in self.texts:
            # what a second send reads now says nothing of a first one that may have arrived
            arrived = TAKEN in other.mask or other.attempt == text.attempt or self.erased
            if other is text or other.attempt > text.attempt:
                continue
            other.gone = other.gone or arrived or not text.apart
        text.gone = False
        text.rewrite(event.text)
