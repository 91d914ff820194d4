"""A session once more, event by event: what each of them changed in the rows that a model sees.

    replay = Replay()
    for recorded in log.read("chat-1"):
        step = replay.take(recorded)

A step costs what the turns cost that its event changed, however long the session is; an event that
is skipped costs what it takes to fold it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

import msgspec

from onrecord.projections.conversation import Compaction, Conversation
from onrecord.projections.differences import (
    Difference,
    Message,
    compare_messages,
    compare_rows,
)
from onrecord.projections.rows import Row
from onrecord.projections.telling import time_of
from onrecord.transcript.events import Event
from onrecord.transcript.recorded import Recorded

Sent: TypeAlias = Callable[[Sequence[Row]], list[Message]]


class Replayed(msgspec.Struct, frozen=True):
    """One event and what it changed.

    `at`: when it happened; `delay`: seconds since the event before, None for the first and for what
    has no time of its own. `turn`: that of
    the event, empty without one. `changes`: rows (or messages) that came into the model's view,
    changed, or left it. `closed`: turns that it closed, each with how it ended.
    """

    record: Recorded
    at: datetime
    delay: float | None
    turn: str
    changes: tuple[Difference, ...]
    closed: tuple[tuple[str, str], ...]


class Replay:
    """The fold of a session, and the rows as they stood before the event to come.

    `only`: the turns whose rows are looked at, all without it. `sent`: gives the messages that a
    model is sent for all rows; then the changes are those of the messages, and each step costs what
    it takes to make them.
    """

    def __init__(self, only: Collection[str] | None = None, sent: Sent | None = None) -> None:
        self.conversation = Conversation()
        self._only = only
        self._sent = sent
        self._messages = [] if sent is None else sent([])
        self._skipped = False
        self._at: datetime | None = None
        self._rows: dict[str, list[Row]] = {}
        self._closed: set[str] = set()
        self._hidden = 0
        self._compaction: Compaction | None = None
        self._summary: list[Row] = []

    def take(self, recorded: Recorded) -> Replayed:
        """Take the session's next record in; return what it changed."""
        if self._skipped:
            self._catch_up()
        conversation = self.conversation
        conversation.apply(recorded)
        delay = self._delay(time_of(recorded))
        at = self._at or recorded.recorded_at
        turns = self._touched()
        found = (
            self._row_changes(turns) if self._sent is None else self._message_changes(self._sent)
        )
        changes = tuple(one for one in found if one.kind != "same")
        turn = turn_of(conversation, recorded.event)
        return Replayed(recorded, at, delay, turn, changes, tuple(self._newly_closed(turns)))

    def skip(self, recorded: Recorded) -> None:
        """Take the session's next record in, whatever it changes."""
        self.conversation.apply(recorded)
        self._delay(time_of(recorded))
        self._skipped = True

    def _catch_up(self) -> None:
        """Let the rows be as they stand after what was skipped."""
        self._skipped = False
        turns = self._touched()
        self._summary = self._summary_row()
        self._rows.update((name, self._shown(name)) for name in turns)
        self._closed.update(dict(self._newly_closed(turns)))
        if self._sent is not None:
            self._messages = self._sent(self.conversation.rows())

    def _row_changes(self, turns: Iterable[str]) -> Iterator[Difference]:
        before, self._summary = self._summary, self._summary_row()
        after = list(self._summary)
        for name in turns:
            before += self._rows.get(name, ())
            shown = self._rows[name] = self._shown(name)
            after += shown
        return compare_rows(before, after)

    def _message_changes(self, sent: Sent) -> Iterator[Difference]:
        before, self._messages = self._messages, sent(self.conversation.rows())
        return compare_messages(before, self._messages)

    def _delay(self, at: datetime | None) -> float | None:
        before, self._at = self._at, at or self._at
        return None if at is None or before is None else (at - before).total_seconds()

    def _touched(self) -> list[str]:
        """Return the turns whose rows may be others now, in order."""
        conversation = self.conversation
        changed: Collection[str] = conversation.take_changed()
        compaction, hidden = conversation.compaction(), len(conversation.hidden)
        if compaction is not self._compaction or hidden != self._hidden:
            self._compaction, self._hidden = compaction, hidden
            changed = conversation.turns
        if self._only is not None:
            changed = [name for name in self._only if name in changed]
        return sorted(changed, key=lambda name: conversation.turns[name].order)

    def _summary_row(self) -> list[Row]:
        return [] if self._compaction is None else [self._compaction.row()]

    def _shown(self, name: str) -> list[Row]:
        conversation, compaction = self.conversation, self._compaction
        if name in conversation.hidden:
            return []
        if compaction is not None and compaction.stands_for(conversation.turns[name]):
            return []
        return conversation.view_of(name).rows

    def _newly_closed(self, turns: Iterable[str]) -> Iterator[tuple[str, str]]:
        for name in turns:
            final = self.conversation.turns[name].final
            if final is not None and name not in self._closed:
                self._closed.add(name)
                yield name, final[1].outcome


def turn_of(conversation: Conversation, event: Event) -> str:
    """Return the turn that an event is of, empty without one. The event is taken in already."""
    delivery = conversation.deliveries.get(getattr(event, "delivery", ""))
    return conversation.turn_of_event(event) if delivery is None else delivery.turn
