"""Which turn an event belongs to.

A user message for a turn that is finalised or rewound opens a new turn under the same name with a
`+`; what is recorded for the old name afterwards belongs to the new one. The log needs this to derive
ids from natural keys, and projections to group rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    Event,
    TranscriptRewound,
    TurnFinalized,
    UserMessageReceived,
)


class TurnNames:
    """The turns of one session: in which order they began, which are over, what they are called."""

    def __init__(self) -> None:
        self._begun: dict[str, int] = {}
        self._current: dict[str, str] = {}
        self._done: set[str] = set()
        self._turn_of: dict[str, str] = {}

    def resolve(self, turn: str) -> str:
        """Return the turn that `turn` names now."""
        return self._current.get(turn, turn)

    def turn_of(self, message: str) -> str | None:
        """Return the turn of a message that the session knows."""
        return self._turn_of.get(message)

    def evolve(self, event: Event) -> str | None:
        """Take an event in, in log order; return its turn, None where it has none of its own."""
        if event.conflicts_with is None:
            return _HANDLERS.get(type(event), TurnNames._mention)(self, event)
        turn = getattr(event, "turn", None)
        return self.resolve(turn) if turn else None

    def _mention(self, event: Event) -> str | None:
        turn = getattr(event, "turn", None)
        return self._begin(self.resolve(turn)) if turn else None

    def _receive(self, event: UserMessageReceived) -> str:
        known = self._turn_of.get(event.message)
        if known is not None:
            return known
        asked = event.turn or event.message
        name = self.resolve(asked)
        if name in self._done:
            while name in self._begun:
                name += "+"
            self._current[asked] = name
        self._turn_of[event.message] = name
        return self._begin(name)

    def _produce(self, event: AssistantMessageProduced) -> str | None:
        known = self._turn_of.get(event.message)
        if known is None and event.turn:
            known = self._turn_of[event.message] = self._begin(self.resolve(event.turn))
        return known

    def _attempt(self, event: DeliveryAttempted) -> str | None:
        known = self._turn_of.get(event.message) if event.message else None
        return self._mention(event) if known is None else known

    def _finalize(self, event: TurnFinalized) -> str | None:
        turn = self._mention(event)
        if turn is not None:
            self._done.add(turn)
        return turn

    def _rewind(self, event: TranscriptRewound) -> None:
        start = self._begun.get(self.resolve(event.to_turn))
        if start is not None:
            self._done.update(name for name, n in self._begun.items() if n >= start)

    def _begin(self, name: str) -> str:
        if name not in self._begun:
            self._begun[name] = len(self._begun)
        return name


_HANDLERS: dict[type[Event], Callable[[TurnNames, Any], str | None]] = {
    UserMessageReceived: TurnNames._receive,
    AssistantMessageProduced: TurnNames._produce,
    DeliveryAttempted: TurnNames._attempt,
    TurnFinalized: TurnNames._finalize,
    TranscriptRewound: TurnNames._rewind,
}
