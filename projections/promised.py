"""What the transcript must hold, told from the events alone.

This is the promise's own reading of the log. It shares nothing with the fold: no state, no
function; the rules are written down a second time on purpose, in another shape (a mask over each
text instead of intervals: `onrecord.projections.sent`), so that one mistake can't be made in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from onrecord.projections.sent import Outcome, Sent
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


class Promised(msgspec.Struct, frozen=True, gc=False):
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


class Reading(msgspec.Struct):
    """One reading of a session's events, in order; or of those from a turn on that nothing later
    reaches behind. `produced` and `sent_in`: by turn.
    """

    begun: dict[str, int] = msgspec.field(default_factory=dict)
    closed: dict[str, int] = msgspec.field(default_factory=dict)
    spoken: dict[str, int] = msgspec.field(default_factory=dict)
    renamed: dict[str, str] = msgspec.field(default_factory=dict)
    home: dict[str, str] = msgspec.field(default_factory=dict)
    users: set[str] = msgspec.field(default_factory=set)
    produced: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    sent: dict[str, Sent] = msgspec.field(default_factory=dict)
    sent_in: dict[str, dict[str, Sent]] = msgspec.field(default_factory=dict)
    undone: set[str] = msgspec.field(default_factory=set)
    summaries: list[tuple[int, int]] = msgspec.field(default_factory=list)
    alone: dict[str, str] = msgspec.field(default_factory=dict)
    naming: dict[str, list[Sent]] = msgspec.field(default_factory=dict)

    def take(self, recorded: Recorded) -> None:
        """Take the next record in."""
        self.heed(recorded.event, recorded.version)

    def heed(self, event: Event, version: int) -> None:
        """Take the next event in, which stands at `version`."""
        if event.conflicts_with is None:
            _HEEDED.get(type(event), Reading._mentioned)(self, event, version)

    def _mentioned(self, event: Event, _: int) -> None:
        turn: str | None = getattr(event, "turn", None)
        if turn:
            self._begin(self.renamed.get(turn, turn))

    def _begin(self, turn: str) -> None:
        self.begun.setdefault(turn, len(self.begun))

    def _user(self, event: UserMessageReceived, version: int) -> None:
        if event.message in self.users:
            return
        self.users.add(event.message)
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

    def _produced(self, event: AssistantMessageProduced, version: int) -> None:
        turn = self.home.get(event.message) or self.renamed.get(event.turn, event.turn)
        self._begin(turn)
        words = self.produced.setdefault(turn, {})
        if event.message in words:
            return
        words[event.message] = event.text
        if event.text.strip():
            self.spoken[turn] = version
        self._arrived(event.message, turn)

    def _arrived(self, message: str, turn: str) -> None:
        """A message is in its turn, and so is what was sent of it before."""
        home = self.home.setdefault(message, turn)
        for sent in self.naming.get(message, ()):
            self._place(sent)
            if not sent.notice:
                self.spoken[home] = max(self.spoken.get(home, 0), sent.attempted_at)

    def _by_itself(self, delivery: str, version: int) -> None:
        name = f"delivery:{delivery}"
        while name in self.begun:
            name += "+"
        self._begin(name)
        self.closed[name] = version
        self.alone[delivery] = name

    def _finalized(self, event: TurnFinalized, version: int) -> None:
        turn = self.renamed.get(event.turn, event.turn)
        self._begin(turn)
        self.closed.setdefault(turn, version)

    def _settled(self, event: Outcome, version: int) -> None:
        sent = self.sent.get(event.delivery)
        if sent is None:
            sent = self.sent[event.delivery] = Sent(event.delivery, None, None, False, version)
            self._by_itself(event.delivery, version)
            self._place(sent)
        sent.settled(event, version)

    def _attempted(self, event: DeliveryAttempted, version: int) -> None:
        turn = self.renamed.get(event.turn, event.turn) if event.turn else None
        known = self.home.get(event.message) if event.message else None
        if known is None and turn is not None:
            self._begin(turn)
        sent = self.sent.get(event.delivery)
        if sent is None:
            sent = Sent(event.delivery, turn, None, event.kind == "notice", version)
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
        self._place(sent)
        if not sent.notice:
            self.spoken[sent.own] = version

    def _place(self, sent: Sent) -> None:
        """Note a delivery's own turn: its message's, else the one that it named, else its own."""
        own = self.alone.get(sent.id, sent.turn or "")
        if sent.message is not None:
            own = self.home.get(sent.message, own)
        if sent.id not in self.sent_in.get(own, ()):
            self.sent_in.get(sent.own, {}).pop(sent.id, None)
            self.sent_in.setdefault(own, {})[sent.id] = sent
            sent.own = own

    def _compacted(self, event: TranscriptCompacted, version: int) -> None:
        through = self.renamed.get(event.through_turn, event.through_turn)
        if through in self.begun and event.summary.strip():
            self.summaries.append((version, self.begun[through]))

    def _rewound(self, event: TranscriptRewound, _: int) -> None:
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

    def _erased(self, event: ContentErased, _: int) -> None:
        turn = event.target.get("turn")
        turn = self.renamed.get(str(turn), str(turn)) if turn else None
        message = event.target.get("message")
        named = [sent for sent in self.sent.values() if message and sent.message == message]
        words = {text.seen().strip() for sent in named for text in sent.texts}
        homes = {sent.own for sent in named}
        if message and self._wording(str(message)) is not None:
            homes.add(self.home[str(message)])
        for sent in self.sent.values():
            unnamed = message and sent.message is None and sent.own in homes
            if (
                event.target.get("session")
                or sent.own == turn
                or (message and sent.message == message)
                or (unnamed and self._is_of(sent, str(message), words))
            ):
                sent.erased = True
                for text in sent.texts:
                    text.rewrite("")

    def _is_of(self, sent: Sent, message: str, words: set[str]) -> bool:
        """Tell whether a delivery without a message may be of one, by its words."""
        produced = self._wording(message) or ""
        return any(
            text.seen().strip() in words or (produced.strip() and _alike(produced, text.seen()))
            for text in sent.texts
        )

    def _wording(self, message: str) -> str | None:
        """Return the text of a produced message."""
        return self.produced.get(self.home.get(message, ""), {}).get(message)

    def is_out(self, turn: str) -> bool:
        """Tell whether the model doesn't see a turn any more."""
        if turn in self.undone:
            return True
        return (
            bool(self.summaries) and turn in self.begun and self._is_gone(turn, self.summaries[-1])
        )

    def texts(self, turns: Iterable[str] | None = None) -> list[Promised]:
        """Return every text that must stand, in order of first attempt, each once a delivery.

        `turns`: only what must stand in these.
        """
        wanted = self.sent_in if turns is None else turns
        promised = [text for turn in wanted for text in self._texts_of(turn)]
        return sorted(promised, key=lambda text: text.first)

    def _texts_of(self, turn: str) -> Iterator[Promised]:
        answers = [sent for sent in self.sent_in.get(turn, {}).values() if not sent.notice]
        began: dict[str | None, int] = {}
        for sent in answers:
            if sent.message is not None and sent.texts:
                began[sent.message] = min(began.get(sent.message, sent.began), sent.began)
        for sent in answers:
            for text in sent.texts:
                if not text.gone and (seen := text.seen()).strip():
                    yield Promised(
                        sent.id, turn, seen, text.first, began.get(sent.message, sent.began),
                        sent.message, sent.erased, len(sent.texts) == 1,
                    )  # fmt: skip


_HEEDED: dict[type[Event], Callable[[Reading, Any, int], None]] = {
    UserMessageReceived: Reading._user,
    AssistantMessageProduced: Reading._produced,
    TurnFinalized: Reading._finalized,
    DeliveryAttempted: Reading._attempted,
    StreamChunkDelivered: Reading._settled,
    DeliveryConfirmed: Reading._settled,
    DeliveryFailed: Reading._settled,
    DeliveryRevised: Reading._settled,
    TranscriptCompacted: Reading._compacted,
    TranscriptRewound: Reading._rewound,
    ContentErased: Reading._erased,
}


def read(records: Iterable[Recorded]) -> Reading:
    """Read a session's records."""
    reading = Reading()
    for recorded in records:
        reading.take(recorded)
    return reading


def _alike(a: str, b: str) -> bool:
    a, b = a.strip(), b.strip()
    return a.startswith(b) or b.startswith(a)
