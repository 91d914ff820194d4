"""Which turn an event belongs to.

A user message for a turn that is finalised or rewound opens a new turn under the same name with a
`+`; what is recorded for the old name afterwards belongs to the new one. The log needs this to derive
ids from natural keys, and projections to group rows.
"""

from __future__ import annotations

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
        if event.conflicts_with is not None:
            turn = getattr(event, "turn", None)
            return self.resolve(turn) if turn else None
        if isinstance(event, UserMessageReceived):
            return self._receive(event)
        if isinstance(event, TranscriptRewound):
            self._rewind(self.resolve(event.to_turn))
            return None
        if (
            isinstance(event, DeliveryAttempted | AssistantMessageProduced)
            and event.message in self._turn_of
        ):
            return self._turn_of[event.message]
        turn = getattr(event, "turn", None)
        if not turn:
            return None
        name = self._begin(self.resolve(turn))
        if isinstance(event, AssistantMessageProduced):
            self._turn_of[event.message] = name
        if isinstance(event, TurnFinalized):
            self._done.add(name)
        return name

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

    def _rewind(self, to_turn: str) -> None:
        start = self._begun.get(to_turn)
        if start is not None:
            self._done.update(name for name, n in self._begun.items() if n >= start)

    def _begin(self, name: str) -> str:
        self._begun.setdefault(name, len(self._begun))
        return name
