"""A delivery as the log tells it: what was attempted, taken, refused and revised.

A delivery holds takes. A take is one attempt's text: the earlier text up to where the attempt
starts over, and its own parts after it. What is visible of a take is what was attempted and not
definitely refused; evidence that it was taken beats evidence that it was refused, in any order. A
revision replaces what the takes up to its attempt said: the platform's message now reads otherwise.
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

DeliveryEvent = (
    DeliveryAttempted | StreamChunkDelivered | DeliveryConfirmed | DeliveryFailed | DeliveryRevised
)

IMPORT = "import:"
"""How the writer of a foreign source begins. Such a source notes some deliveries and not others: of an
answer without a note nothing is known."""


class Take(msgspec.Struct):
    """One attempt's text. Offsets are the event's own; `shift` maps them after a revision. `edit`:
    it was sent as one; `goes_on`: so it was, or it keeps the beginning of what was sent before.

    The text is kept in the parts that it came in and joined when somebody reads it, so that a
    stream of many chunks costs what its text is long.
    """

    attempt: int
    first: int
    edit: bool = False
    goes_on: bool = False
    taken: int = 0
    refused: tuple[tuple[int, int], ...] = ()
    confirmed: bool = False
    shift: int = 0
    settled: int = 0
    superseded: bool = False
    versions: list[int] = msgspec.field(default_factory=list)
    size: int = 0
    _parts: list[str] = msgspec.field(default_factory=list)

    @property
    def text(self) -> str:
        """What was attempted, whole."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def put(self, text: str) -> None:
        """Let the whole text be `text`."""
        self._parts, self.size = [text], len(text)

    def add(self, text: str) -> None:
        """Let the text go on with `text`."""
        self._parts.append(text)
        self.size += len(text)

    @property
    def visible(self) -> str:
        """What the user may have read of it."""
        if self.superseded:
            return ""
        if not self.refused:
            return self.text
        text, at, kept = self.text, 0, ""
        for lo, hi in sorted((max(lo, self.taken), hi) for lo, hi in self.refused):
            if lo < hi:
                kept += text[at:lo]
                at = max(at, hi)
        return kept + text[at:]

    @property
    def taken_text(self) -> str:
        """What the platform is known to have taken of it."""
        return "" if self.superseded else self.text[: self.taken]

    def place(self, offset: int) -> int:
        """Return where an event's offset stands in `text`."""
        return max(offset + self.shift, self.settled)

    def is_refused(self, start: int, end: int) -> bool:
        """Tell whether something between two places was refused."""
        return any(lo < end and start < hi for lo, hi in self.refused)


class Outgoing(msgspec.Struct):
    """One delivery. `message` as first named; `first`: the version of its first attempt, or of its
    first event while nothing was attempted; `said_at`: of its last attempt; `imported`: a foreign
    source says so, whose transcript is compared with it.
    """

    id: str
    first: int
    kind: str = "answer"
    turn: str = ""
    message: str | None = None
    takes: list[Take] = msgspec.field(default_factory=list)
    versions: list[int] = msgspec.field(default_factory=list)
    deleted: bool = False
    said_at: int = 0
    imported: bool = False
    _highest: int = 0

    def evolve(self, event: DeliveryEvent, version: int) -> None:
        """Take an event of this delivery in, in log order."""
        self.versions.append(version)
        if isinstance(event, DeliveryAttempted):
            self.imported = self.imported or event.writer.startswith(IMPORT)
            self._attempt(event, version)
            return
        attempt = self._highest if event.attempt is None else event.attempt
        take = self._newest(attempt)
        if take is None:
            if not isinstance(event, DeliveryRevised) or not event.text.strip():
                return
            take = self._enter(Take(event.attempt or 1, version))
        take.versions.append(version)
        if isinstance(event, StreamChunkDelivered):
            take.taken = max(take.taken, min(take.place(event.through), take.size))
        elif isinstance(event, DeliveryConfirmed):
            take.taken = max(take.taken, take.size)
            take.confirmed = True
        elif isinstance(event, DeliveryFailed):
            if event.definite:
                take.refused += ((take.place(event.offset), take.size),)
        else:
            self._revise(take, event.text)

    def erase(self, put: str) -> None:
        """Put `put` in the place of all text so far; what is taken or in doubt stays so."""
        for take in self.takes:
            if take.size and not take.superseded:
                whole = take.taken >= take.size
                take.shift += len(put) - take.size
                take.put(put)
                take.settled, take.refused = len(put), ()
                take.taken = len(put) if whole else 0

    def _attempt(self, event: DeliveryAttempted, version: int) -> None:
        if not self.takes:
            self.kind, self.first = event.kind, version
        self.message = self.message or event.message
        self.said_at = version
        take = self._newest(event.attempt)
        start = event.offset if take is None else take.place(event.offset)
        end = start + len(event.text)
        if take is not None and start == take.size:
            take.add(event.text)
        elif (
            take is not None
            and take.text[start:end] == event.text
            and not take.is_refused(start, end)
        ):
            pass
        else:
            earlier = take or self._before(event.attempt)
            kept = earlier.text[: earlier.place(event.offset)] if earlier else ""
            edit = event.op in ("edit", "draft")
            goes_on = edit or (earlier is not None and event.offset > 0)
            take = self._enter(Take(event.attempt, version, edit, goes_on))
            take.put(kept + event.text)
            take.shift = len(kept) - event.offset
        take.versions.append(version)

    def _enter(self, take: Take) -> Take:
        self.takes.append(take)
        self._highest = max(self._highest, take.attempt)
        return take

    def _newest(self, attempt: int) -> Take | None:
        """Return the newest take of an attempt."""
        if attempt > self._highest:
            return None
        for take in reversed(self.takes):
            if take.attempt == attempt:
                return take
        return None

    def _before(self, attempt: int) -> Take | None:
        """Return the newest take of the nearest attempt before `attempt`."""
        if attempt > self._highest:
            return self._newest(self._highest)
        return self._newest(max((t.attempt for t in self.takes if t.attempt < attempt), default=0))

    def _revise(self, take: Take, text: str) -> None:
        if not text.strip():
            self.deleted = True  # so it was there, but for what was refused
            refused = (lo for lo, hi in take.refused if hi > take.taken)
            take.taken = max(take.taken, min(refused, default=take.size))
            return
        for other in self.takes:
            if other is take or other.attempt > take.attempt:
                continue
            # What goes on with a message changes it. A second message that is revised says nothing
            # of a first one that nobody knows to have arrived.
            if take.goes_on or other.attempt == take.attempt or other.taken:
                other.superseded = True
        take.shift += len(text) - take.size
        take.put(text)
        take.taken, take.settled = len(text), len(text)
        take.superseded, take.refused = False, ()
