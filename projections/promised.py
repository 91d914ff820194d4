"""What the transcript must hold, told from the events alone.

This is the promise's own reading of the log. It shares nothing with the fold: no state, no
function; the rules are written down a second time on purpose, in another shape (a mask over each
text instead of intervals), so that one mistake can't be made in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

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
    `began`: of its delivery's first event.
    """

    delivery: str
    turn: str
    text: str
    first: int
    began: int
    message: str | None = None


@dataclass(slots=True)
class _Text:
    """One text of a delivery, a mask over its characters, and where later offsets stand in it."""

    attempt: int
    first: int
    text: str
    mask: bytearray
    rewritten: int = 0
    moved: int = 0
    gone: bool = False

    def at(self, offset: int) -> int:
        return max(self.rewritten, offset + self.moved)

    def rewrite(self, text: str) -> None:
        self.moved += len(text) - len(self.text)
        self.rewritten = len(text)
        self.text, self.mask = text, bytearray([TAKEN]) * len(text)

    def seen(self) -> str:
        if REFUSED not in self.mask:
            return self.text
        marks = zip(self.text, self.mask, strict=True)
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

    def latest(self, attempt: int | None) -> _Text | None:
        texts = [t for t in self.texts if attempt is None or t.attempt == attempt]
        return max(texts, key=lambda t: (t.attempt, t.first)) if texts else None

    def attempted(self, event: DeliveryAttempted, version: int) -> None:
        own = self.latest(event.attempt)
        if own is not None:
            at = own.at(event.offset)
            end = at + len(event.text)
            if at == len(own.text):
                own.text += event.text
                own.mask += bytes(len(event.text))
                return
            if own.text[at:end] == event.text and REFUSED not in own.mask[at:end]:
                return
        before = own
        if before is None:
            lower = [t for t in self.texts if t.attempt < event.attempt]
            before = max(lower, key=lambda t: (t.attempt, t.first)) if lower else None
        kept = before.text[: before.at(event.offset)] if before else ""
        text = kept + event.text
        new = _Text(event.attempt, version, text, bytearray(len(text)))
        new.moved = len(kept) - event.offset
        self.texts.append(new)

    def settled(self, event: Event, version: int) -> None:
        attempt: int | None = getattr(event, "attempt", None)
        text = self.latest(attempt)
        if isinstance(event, DeliveryRevised):
            if not event.text.strip():
                return
            if text is None:
                text = _Text(attempt or 1, version, "", bytearray())
                self.texts.append(text)
            for other in self.texts:
                if other is not text and other.attempt <= text.attempt:
                    other.gone = True
            text.gone = False
            text.rewrite(event.text)
        elif text is None:
            return
        elif isinstance(event, StreamChunkDelivered):
            through = min(text.at(event.through), len(text.text))
            text.mask[:through] = bytes([TAKEN]) * through
        elif isinstance(event, DeliveryConfirmed):
            text.mask[:] = bytes([TAKEN]) * len(text.text)
        elif isinstance(event, DeliveryFailed) and event.definite:
            at = text.at(event.offset)
            text.mask[at:] = text.mask[at:].translate(_REFUSE + bytes(253))


@dataclass(slots=True)
class Reading:
    """One reading of a session's events, in order."""

    begun: list[str] = field(default_factory=list)
    closed: dict[str, int] = field(default_factory=dict)
    spoken: dict[str, int] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    home: dict[str, str] = field(default_factory=dict)
    produced: dict[str, tuple[str, str]] = field(default_factory=dict)
    sent: dict[str, _Sent] = field(default_factory=dict)
    undone: set[str] = field(default_factory=set)
    summaries: list[tuple[int, set[str]]] = field(default_factory=list)
    alone: dict[str, str] = field(default_factory=dict)

    def take(self, recorded: Recorded) -> None:
        """Take the next record in."""
        event, version = recorded.event, recorded.version
        if isinstance(event, UserMessageReceived):
            if event.conflicts_with is None and event.message not in self.home:
                self._user(event, version)
            return
        turn = getattr(event, "turn", None)
        turn = self.renamed.get(turn, turn) if turn else None
        if isinstance(event, DeliveryAttempted):
            self._attempted(event, turn, version)
            return
        if turn is not None and turn not in self.begun:
            self.begun.append(turn)
        if event.conflicts_with is not None:
            return
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

    def _user(self, event: UserMessageReceived, version: int) -> None:
        name = asked = event.turn or event.message
        name = self.renamed.get(name, name)
        if name in self.closed or name in self.undone:
            while name in self.begun:
                name += "+"
            self.renamed[asked] = name
        if name not in self.begun:
            self.begun.append(name)
        self.home[event.message] = name
        self.spoken[name] = version

    def _produced(self, event: AssistantMessageProduced, turn: str, version: int) -> None:
        if event.message in self.produced:
            return
        self.produced[event.message] = (turn, event.text)
        if event.message not in self.home:
            self.home[event.message] = turn
        if event.text.strip():
            self.spoken[turn] = version
        for sent in self.sent.values():
            if sent.message == event.message and not sent.notice and sent.texts:
                first = max(text.first for text in sent.texts)
                home = self.home[event.message]
                self.spoken[home] = max(self.spoken.get(home, 0), first)

    def _by_itself(self, delivery: str, version: int) -> None:
        name = delivery
        while name in self.begun:
            name += "+"
        self.begun.append(name)
        self.closed[name] = version
        self.alone[delivery] = name

    def _attempted(self, event: DeliveryAttempted, turn: str | None, version: int) -> None:
        known = self.home.get(event.message) if event.message else None
        if known is None and turn is not None and turn not in self.begun:
            self.begun.append(turn)
        if event.conflicts_with is not None:
            return
        sent = self.sent.get(event.delivery)
        if sent is None:
            sent = _Sent(event.delivery, turn, event.message, event.kind == "notice", version)
            self.sent[event.delivery] = sent
            if known is None and turn is None:
                self._by_itself(event.delivery, version)
        if not sent.texts:
            sent.notice = event.kind == "notice"
        sent.message = sent.message or event.message
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
            upto = self.begun[: self.begun.index(through) + 1]
            self.summaries.append((version, {turn for turn in upto if turn in self.closed}))

    def _rewound(self, event: TranscriptRewound) -> None:
        to_turn = self.renamed.get(event.to_turn, event.to_turn)
        if to_turn in self.begun:
            self.undone.update(self.begun[self.begun.index(to_turn) :])
            self.summaries = [s for s in self.summaries if to_turn not in self._gone(s)]

    def _gone(self, summary: tuple[int, set[str]]) -> set[str]:
        version, turns = summary
        return {turn for turn in turns if self.spoken.get(turn, 0) < version}

    def _erased(self, event: ContentErased) -> None:
        turn = event.target.get("turn")
        turn = self.renamed.get(str(turn), str(turn)) if turn else None
        message = event.target.get("message")
        home, words = self.produced.get(str(message), (None, ""))
        for sent in self.sent.values():
            own = self.turn_of(sent)
            unnamed = message and own == home and sent.message is None
            if (
                event.target.get("session")
                or own == turn
                or (message and sent.message == message)
                or (unnamed and any(_alike(words, text.seen()) for text in sent.texts))
            ):
                for text in sent.texts:
                    text.rewrite("")

    def out(self) -> set[str]:
        """Return the turns that the model doesn't see any more."""
        return self.undone | (self._gone(self.summaries[-1]) if self.summaries else set[str]())

    def texts(self) -> list[Promised]:
        """Return every text that must stand, in order of first attempt, each once a delivery."""
        promised = [
            Promised(sent.id, self.turn_of(sent), text.seen(), text.first, sent.began, sent.message)
            for sent in self.sent.values()
            if not sent.notice
            for text in sent.texts
            if not text.gone and text.seen().strip()
        ]
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
