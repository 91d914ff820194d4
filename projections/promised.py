"""What the transcript must hold, told from the events alone.

This is the promise's own reading of the log. It shares nothing with the fold: no state, no
function; the rules are written down a second time on purpose, in another shape (a mask over each
text instead of intervals), so that one mistake can't be made in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from onrecord.transcript.events import (
    AssistantMessageProduced,
    ContentErased,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    DeliveryRevised,
    Event,
    StreamChunkDelivered,
    TranscriptCompacted,
    TranscriptRewound,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.recorded import Recorded

OPEN, REFUSED, TAKEN = 0, 1, 2
_REFUSE = bytes([REFUSED, REFUSED, TAKEN])  # evidence that it was taken isn't undone


@dataclass(frozen=True, slots=True)
class Promised:
    """A text that must stand in an assistant row. `first`: the version of its first attempt,
    `began`: of its delivery's, or of the first of its message. `erased`: what was said before it is
    erased, so that its row may be another's too. `lone`: the delivery has no other text, by which
    it could be of another message.
    """

    delivery: str
    turn: str
    text: str
    first: int
    began: int
    message: str | None = None
    erased: bool = False
    lone: bool = True


@dataclass(slots=True)
class _Text:
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


@dataclass(slots=True)
class _Sent:
    """One delivery."""

    id: str
    turn: str | None
    message: str | None
    notice: bool
    began: int
    texts: list[_Text] = field(default_factory=list)
    highest: int = 0
    attempted_at: int = 0
    erased: bool = False

    def latest(self, attempt: int | None) -> _Text | None:
        """Return the newest text of an attempt (None: of the highest)."""
        for text in reversed(self.texts):
            if text.attempt == (self.highest if attempt is None else attempt):
                return text
        return None

    def enter(self, text: _Text) -> _Text:
        self.texts.append(text)
        self.highest = max(self.highest, text.attempt)
        return text

    def attempted(self, event: DeliveryAttempted, version: int) -> None:
        own = self.latest(event.attempt)
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
            lower = [t for t in self.texts if t.attempt < event.attempt]
            before = max(lower, key=lambda t: (t.attempt, t.first)) if lower else None
        kept = before.whole()[: before.at(event.offset)] if before else ""
        text = kept + event.text
        apart = (before is None or event.offset <= 0) and event.op not in {"edit", "draft"}
        new = _Text(event.attempt, version, apart, [text], bytearray(len(text)))
        new.moved = len(kept) - event.offset
        self.enter(new)

    def settled(self, event: Event, version: int) -> None:
        attempt: int | None = getattr(event, "attempt", None)
        text = self.latest(attempt)
        if isinstance(event, DeliveryRevised):
            self._revised(event, text, version)
        elif text is None:
            return
        elif isinstance(event, StreamChunkDelivered):
            text.accept(min(text.at(event.through), len(text.mask)))
        elif isinstance(event, DeliveryConfirmed):
            text.accept(len(text.mask))
        elif isinstance(event, DeliveryFailed) and event.definite:
            at = text.at(event.offset)
            text.mask[at:] = text.mask[at:].translate(_REFUSE + bytes(253))

    def _revised(self, event: DeliveryRevised, text: _Text | None, version: int) -> None:
        if not event.text.strip():
            if text is not None:
                refused = text.mask.find(REFUSED)
                text.accept(len(text.mask) if refused < 0 else refused)
            return
        if text is None:
            text = self.enter(_Text(event.attempt or 1, version, True, [], bytearray()))
        for other in self.texts:
            # what a second send reads now says nothing of a first one that may have arrived
            arrived = TAKEN in other.mask or other.attempt == text.attempt or self.erased
            if other is text or other.attempt > text.attempt:
                continue
            other.gone = other.gone or arrived or not text.apart
        text.gone = False
        text.rewrite(event.text)


@dataclass(slots=True)
class Reading:
    """One reading of a session's events, in order."""

    begun: dict[str, int] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)
    spoken: dict[str, int] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    home: dict[str, str] = field(default_factory=dict)
    users: set[str] = field(default_factory=set)
    produced: dict[str, tuple[str, str]] = field(default_factory=dict)
    sent: dict[str, _Sent] = field(default_factory=dict)
    undone: set[str] = field(default_factory=set)
    summaries: list[tuple[int, int]] = field(default_factory=list)
    alone: dict[str, str] = field(default_factory=dict)
    naming: dict[str, list[_Sent]] = field(default_factory=dict)

    def take(self, recorded: Recorded) -> None:
        """Take the next record in."""
        event, version = recorded.event, recorded.version
        if isinstance(event, UserMessageReceived):
            if event.conflicts_with is None and event.message not in self.users:
                self.users.add(event.message)
                self._user(event, version)
            return
        turn = getattr(event, "turn", None)
        turn = self.renamed.get(turn, turn) if turn else None
        if isinstance(event, AssistantMessageProduced):
            turn = self.home.get(event.message, turn)
        if isinstance(event, DeliveryAttempted):
            self._attempted(event, turn, version)
            return
        if event.conflicts_with is not None:
            return
        if turn is not None:
            self._begin(turn)
        if isinstance(event, TurnFinalized):
            self.closed.setdefault(turn or "", version)
        elif isinstance(event, AssistantMessageProduced) and turn is not None:
            self._produced(event, turn, version)
        elif isinstance(
            event, StreamChunkDelivered | DeliveryConfirmed | DeliveryFailed | DeliveryRevised
        ):
            sent = self.sent.get(event.delivery)
            if sent is None:
                sent = self.sent[event.delivery] = _Sent(event.delivery, None, None, False, version)
                self._by_itself(event.delivery, version)
            sent.settled(event, version)
        elif isinstance(event, TranscriptCompacted):
            self._compacted(event, version)
        elif isinstance(event, TranscriptRewound):
            self._rewound(event)
        elif isinstance(event, ContentErased):
            self._erased(event)

    def _begin(self, turn: str) -> None:
        self.begun.setdefault(turn, len(self.begun))

    def _user(self, event: UserMessageReceived, version: int) -> None:
        if event.message in self.home:
            self.spoken[self.home[event.message]] = version
            return
        name = asked = event.turn or event.message
        name = self.renamed.get(name, name)
        if name in self.closed or name in self.undone:
            while name in self.begun:
                name += "+"
            self.renamed[asked] = name
        self._begin(name)
        self.spoken[name] = version
        self._arrived(event.message, name)

    def _produced(self, event: AssistantMessageProduced, turn: str, version: int) -> None:
        if event.message in self.produced:
            return
        self.produced[event.message] = (turn, event.text)
        if event.text.strip():
            self.spoken[turn] = version
        self._arrived(event.message, turn)

    def _arrived(self, message: str, turn: str) -> None:
        """A message is in its turn, and so is what was sent of it before."""
        home = self.home.setdefault(message, turn)
        for sent in self.naming.get(message, ()):
            if not sent.notice:
                self.spoken[home] = max(self.spoken.get(home, 0), sent.attempted_at)

    def _by_itself(self, delivery: str, version: int) -> None:
        name = f"delivery:{delivery}"
        while name in self.begun:
            name += "+"
        self._begin(name)
        self.closed[name] = version
        self.alone[delivery] = name

    def _attempted(self, event: DeliveryAttempted, turn: str | None, version: int) -> None:
        known = self.home.get(event.message) if event.message else None
        if event.conflicts_with is not None:
            return
        if known is None and turn is not None:
            self._begin(turn)
        sent = self.sent.get(event.delivery)
        if sent is None:
            sent = _Sent(event.delivery, turn, None, event.kind == "notice", version)
            self.sent[event.delivery] = sent
            if known is None and turn is None:
                self._by_itself(event.delivery, version)
        if not sent.texts:
            sent.notice, sent.began = event.kind == "notice", version
        if known is None and turn is not None and self.alone.pop(sent.id, None) is not None:
            sent.turn = turn
        if event.message and (sent.message is None or sent.attempted_at == 0):
            sent.message = event.message
            self.naming.setdefault(event.message, []).append(sent)
        sent.attempted_at = version
        sent.attempted(event, version)
        own = self.turn_of(sent)
        if not sent.notice:
            self.spoken[own] = version

    def turn_of(self, sent: _Sent) -> str:
        """Return a delivery's own turn: its message's, else the one that it named, else its own."""
        if sent.message is not None and sent.message in self.home:
            return self.home[sent.message]
        if sent.id in self.alone:
            return self.alone[sent.id]
        return sent.turn or ""

    def _compacted(self, event: TranscriptCompacted, version: int) -> None:
        through = self.renamed.get(event.through_turn, event.through_turn)
        if through in self.begun and event.summary.strip():
            self.summaries.append((version, self.begun[through]))

    def _rewound(self, event: TranscriptRewound) -> None:
        to_turn = self.renamed.get(event.to_turn, event.to_turn)
        if to_turn in self.begun:
            place = self.begun[to_turn]
            self.undone.update(islice(self.begun, place, None))
            self.summaries = [s for s in self.summaries if not self._is_gone(to_turn, s)]

    def _is_gone(self, turn: str, summary: tuple[int, int]) -> bool:
        """Tell whether a summary stands for a turn: begun up to its last, closed, silent since."""
        version, last = summary
        closed, spoken = self.closed.get(turn, version), self.spoken.get(turn, 0)
        return self.begun[turn] <= last and closed < version and spoken < version

    def _erased(self, event: ContentErased) -> None:
        turn = event.target.get("turn")
        turn = self.renamed.get(str(turn), str(turn)) if turn else None
        message = event.target.get("message")
        named = [sent for sent in self.sent.values() if message and sent.message == message]
        words = {text.seen().strip() for sent in named for text in sent.texts}
        homes = {self.turn_of(sent) for sent in named}
        if message in self.produced:
            homes.add(self.produced[str(message)][0])
        for sent in self.sent.values():
            own = self.turn_of(sent)
            unnamed = message and sent.message is None and own in homes
            if (
                event.target.get("session")
                or own == turn
                or (message and sent.message == message)
                or (unnamed and self._is_of(sent, str(message), words))
            ):
                sent.erased = True
                for text in sent.texts:
                    text.rewrite("")

    def _is_of(self, sent: _Sent, message: str, words: set[str]) -> bool:
        """Tell whether a delivery without a message may be of one, by its words."""
        _, produced = self.produced.get(message, ("", ""))
        return any(
            text.seen().strip() in words or (produced.strip() and _alike(produced, text.seen()))
            for text in sent.texts
        )

    def out(self) -> set[str]:
        """Return the turns that the model doesn't see any more."""
        if not self.summaries:
            return set(self.undone)
        newest = self.summaries[-1]
        return self.undone | {turn for turn in self.begun if self._is_gone(turn, newest)}

    def texts(self) -> list[Promised]:
        """Return every text that must stand, in order of first attempt, each once a delivery."""
        answers = [sent for sent in self.sent.values() if not sent.notice]
        began: dict[tuple[str, str | None], int] = {}
        for sent in answers:
            if sent.message is not None and sent.texts:
                key = (self.turn_of(sent), sent.message)
                began[key] = min(began.get(key, sent.began), sent.began)
        promised = [
            Promised(
                sent.id, turn, text.seen(), text.first,
                began.get((turn, sent.message), sent.began), sent.message, sent.erased,
                len(sent.texts) == 1,
            )
            for sent in answers
            for turn in (self.turn_of(sent),)
            for text in sent.texts
            if not text.gone and text.seen().strip()
        ]  # fmt: skip
        return sorted(promised, key=lambda text: text.first)


def read(records: Iterable[Recorded]) -> Reading:
    """Read a session's records."""
    reading = Reading()
    for recorded in records:
        reading.take(recorded)
    return reading


def _alike(a: str, b: str) -> bool:
    a, b = a.strip(), b.strip()
    return a.startswith(b) or b.startswith(a)
