"""The transcript's rows: a fold over the events of one session.

    conversation = Conversation()
    for recorded in log.read("chat-1"):
        conversation.apply(recorded)
    rows = conversation.rows()

The fold gathers facts turn by turn; a turn's rows are a pure function of its facts
(`onrecord.projections.turn_rows`), built when asked for and kept until the turn changes. So the
fold can go on from where it stood, and gives the same rows as a fold from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import msgspec

from onrecord.projections.calls import Calls
from onrecord.projections.erasure import ERASED, erase_message, erase_results, erase_turn
from onrecord.projections.lines import Facts, Place, Said
from onrecord.projections.outgoing import IMPORT, Outgoing
from onrecord.projections.rows import Row
from onrecord.projections.turn_rows import TurnView, view
from onrecord.transcript.events import (
    AssistantMessageProduced,
    ContentErased,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    DeliveryRevised,
    Event,
    RecoveryApplied,
    SourceFaultFound,
    StreamChunkDelivered,
    ToolResultReceived,
    TranscriptCompacted,
    TranscriptRewound,
    TurnFinalized,
    UserMessageEdited,
    UserMessageReceived,
    UserMessageRetracted,
)
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.turns import TurnNames


class Compaction(msgspec.Struct):
    """A summary, and the place of the last turn that it can stand for."""

    version: int
    summary: str
    through: int
    void: bool = False

    def stands_for(self, facts: Facts) -> bool:
        """Tell whether a turn is one of them: closed at that moment, silent since [10]."""
        closed_at = facts.closed_at
        return (
            facts.order <= self.through
            and closed_at is not None
            and closed_at < self.version
            and facts.said_at < self.version
        )

    def row(self) -> Row:
        """Return the summary's row."""
        ident = f"s{self.version}"
        return Row(role="summary", id=ident, text=self.summary, versions=(self.version,))


class Conversation(msgspec.Struct):
    """One session, folded. `version` is that of the last event taken in.

    A fold may begin in the middle of a session, at a turn from which on nothing names what lies
    before: `first_order` turns do, and `tracked` tells whether there are deliveries among them.
    """

    first_order: int = 0
    tracked: bool = False
    version: int = 0
    turns: dict[str, Facts] = msgspec.field(default_factory=dict)
    deliveries: dict[str, Outgoing] = msgspec.field(default_factory=dict)
    calls: Calls = msgspec.field(default_factory=Calls)
    conflicts: list[tuple[int, Event]] = msgspec.field(default_factory=list)
    source_faults: list[tuple[int, SourceFaultFound]] = msgspec.field(default_factory=list)
    compactions: list[Compaction] = msgspec.field(default_factory=list)
    hidden: set[str] = msgspec.field(default_factory=set)
    _names: TurnNames = msgspec.field(default_factory=TurnNames)
    _naming: dict[str, list[Outgoing]] = msgspec.field(default_factory=dict)
    _contradicting: dict[str, list[int]] = msgspec.field(default_factory=dict)
    _withdrawn: dict[str, int] = msgspec.field(default_factory=dict)
    _views: dict[str, TurnView] = msgspec.field(default_factory=dict)
    _changed: set[str] = msgspec.field(default_factory=set)
    _last: str | None = None

    def apply(self, recorded: Recorded) -> None:
        """Take the session's next record in; one of an unknown type makes no row."""
        self.evolve(recorded.event, recorded.version)

    def evolve(self, event: Event, version: int) -> None:
        """Take the session's next event in, which stands at `version`."""
        turn = self._names.evolve(event)
        self.version = version
        if event.conflicts_with is not None:
            self.conflicts.append((version, event))
            self._contradicting.setdefault(getattr(event, "delivery", ""), []).append(version)
            return
        if turn is not None:
            facts = self.turns.get(turn) or self._open(turn, version)
            facts.last = version
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event, version, turn)

    def _open(self, turn: str, version: int, *, counts: bool = True) -> Facts:
        order = self.first_order + len(self.turns)
        facts = self.turns[turn] = Facts(turn, version, order, counts, last=version)
        self._changed.add(turn)
        if counts:
            if self._last is not None:
                self._touch(self._last)  # which isn't the last one any more
            self._last = turn
        return facts

    def rows(self, *, full: bool = False) -> list[Row]:
        """Return the rows: the model's view, or with `full` everything that was ever said."""
        views = self.views()
        if full:
            return [row for shown in views for row in shown.rows]
        compaction = self.compaction()
        swallowed = self._swallowed(compaction) if compaction else set[str]()
        rows = [] if compaction is None else [compaction.row()]
        for shown in views:
            if shown.facts.name not in self.hidden and shown.facts.name not in swallowed:
                rows.extend(shown.rows)
        return rows

    def views(self) -> list[TurnView]:
        """Return all turns in order, each with its rows."""
        return [self.view_of(name) for name in self.turns]

    def view_of(self, name: str) -> TurnView:
        """Return one turn with its rows: the same object as long as nothing of it changes."""
        known = self._views.get(name)
        if known is None:
            facts = self.turns[name]
            place = Place(name == self._last, self.tracked)
            known = self._views[name] = view(facts, place, self.calls)
        return known

    def take_changed(self) -> set[str]:
        """Return the turns whose view may be another than when this was last asked."""
        changed, self._changed = self._changed, set()
        return changed

    def compaction(self) -> Compaction | None:
        """Return the newest compaction that still holds."""
        return next((c for c in reversed(self.compactions) if not c.void), None)

    def taken_out(self) -> set[str]:
        """Return the turns that compaction or rewind took out of the model's view."""
        compaction = self.compaction()
        return self.hidden | (self._swallowed(compaction) if compaction else set[str]())

    def _swallowed(self, compaction: Compaction) -> set[str]:
        return {name for name, facts in self.turns.items() if compaction.stands_for(facts)}

    def records_of(self, delivery: Outgoing) -> list[int]:
        """Return the versions of a delivery's events, those among them that contradict others."""
        return sorted(delivery.versions + self._contradicting.get(delivery.id, []))

    def orphans(self) -> list[tuple[int, str, str]]:
        """Return version, turn and call of the results whose call isn't in the session."""
        return self.calls.orphans()

    def is_call_of(self, call: str, turn: str) -> bool:
        """Tell whether the call was made in the turn."""
        return self.calls.is_of(call, self._names.resolve(turn))

    def has_produced(self, message: str) -> bool:
        """Tell whether the model's message is known: said again, it changes nothing."""
        turn = self.turn_of(message)
        return turn is not None and turn in self.turns and message in self.turns[turn].produced

    def turn_of(self, message: str) -> str | None:
        """Return the turn of a message, the user's or the assistant's."""
        return self._names.turn_of(message)

    def turn_of_event(self, event: Event) -> str:
        """Return the turn that a record speaks of: its message's, else the one that it names."""
        message, turn = getattr(event, "message", None), getattr(event, "turn", None)
        return self.turn_of(str(message)) or (self._names.resolve(turn) if turn else "")

    def _touch(self, turn: str) -> Facts:
        """Return a turn's facts, for a change."""
        self._views.pop(turn, None)
        self._changed.add(turn)
        return self.turns[turn]

    def _touch_all(self) -> None:
        self._views.clear()
        self._changed.update(self.turns)

    # One method an event type: (event, version, turn).

    def _received(self, event: UserMessageReceived, version: int, turn: str) -> None:
        facts = self._touch(turn)
        if event.message not in facts.users:
            said = Said(event.message, event.text, [version], event.sender or "")
            facts.users[event.message] = said
            if (withdrawn := self._withdrawn.get(event.message)) is not None:
                said.retracted = True
                said.versions.append(withdrawn)
            facts.said_at = version
        self._gather(event.message, turn)

    def _edited(self, event: UserMessageEdited, version: int, _: object) -> None:
        if (said := self._said(event.message)) is not None:
            said.text = event.text
            said.versions.append(version)

    def _retracted(self, event: UserMessageRetracted, version: int, _: object) -> None:
        if (said := self._said(event.message)) is not None:
            said.retracted = True
            said.versions.append(version)
        else:
            self._withdrawn.setdefault(event.message, version)

    def _said(self, message: str) -> Said | None:
        turn = self.turn_of(message)
        return None if turn is None else self._touch(turn).users.get(message)

    def _produced(self, event: AssistantMessageProduced, version: int, turn: str) -> None:
        facts = self._touch(turn)
        if event.message in facts.produced:
            return
        facts.produced[event.message] = (version, event)
        if event.text.strip():
            facts.said_at = version
        self._gather(event.message, turn)
        for other in self.calls.ask(event, version, turn):
            self._touch(other)

    def _gather(self, message: str, turn: str) -> None:
        """Let what was sent of a message before it was known go to its turn."""
        for delivery in self._naming.get(message, ()):
            if delivery.turn != turn:
                self._move(delivery, turn)

    def _result(self, event: ToolResultReceived, version: int, turn: str) -> None:
        caller = self.calls.answer(event, version, turn)
        if caller is not None:
            self._touch(caller)

    def _recovered(self, event: RecoveryApplied, version: int, turn: str) -> None:
        self._touch(turn).recovered.append((version, event))

    def _finalized(self, event: TurnFinalized, version: int, turn: str) -> None:
        facts = self._touch(turn)
        facts.final = facts.final or (version, event)

    def _attempted(self, event: DeliveryAttempted, version: int, turn: str | None) -> None:
        delivery = self.deliveries.get(event.delivery)
        if delivery is None:
            self._track(event)
            delivery = self._begin(Outgoing(event.delivery, version), turn)
        unnamed = delivery.message is None
        delivery.evolve(event, version)
        if unnamed and delivery.message is not None:
            self._naming.setdefault(delivery.message, []).append(delivery)
        home = self.turn_of(delivery.message) if delivery.message else None
        if home is None and not self.turns[delivery.turn].counts:
            # An outcome came first, or a part without a turn.
            known = event.message is not None and self.turn_of(event.message) is not None
            home = turn if event.turn and not known else None
        if home is not None and home != delivery.turn:
            self._move(delivery, home)
            return
        facts = self._touch(delivery.turn)
        facts.last = max(facts.last, version)
        if delivery.kind != "notice":
            facts.said_at = version

    def _outcome(
        self,
        event: StreamChunkDelivered | DeliveryConfirmed | DeliveryFailed | DeliveryRevised,
        version: int,
        _: object,
    ) -> None:
        delivery = self.deliveries.get(event.delivery)
        if delivery is None:
            self._track(event)
            delivery = self._begin(Outgoing(event.delivery, version), None)
        delivery.evolve(event, version)
        self._touch(delivery.turn)

    def _track(self, event: Event) -> None:
        """Note that the session has deliveries: what has none from then on wasn't delivered."""
        if not self.tracked and not event.writer.startswith(IMPORT):
            self.tracked = True
            self._touch_all()

    def _begin(self, delivery: Outgoing, turn: str | None) -> Outgoing:
        """Enter a delivery; without a turn it is a closed turn of its own, named by it [1]."""
        self.deliveries[delivery.id] = delivery
        if turn is None:
            turn = f"delivery:{delivery.id}"
            while turn in self.turns:
                turn += "+"
            self._open(turn, delivery.first, counts=False)
        delivery.turn = turn
        self._touch(turn).deliveries[delivery.id] = delivery
        return delivery

    def _move(self, delivery: Outgoing, turn: str) -> None:
        """Put a delivery into the turn of its message, whatever turn it named [4]."""
        self._touch(delivery.turn).deliveries.pop(delivery.id, None)
        delivery.turn = turn
        facts = self._touch(turn)
        facts.deliveries[delivery.id] = delivery
        if delivery.kind != "notice":
            facts.said_at = max(facts.said_at, delivery.said_at)

    def _compacted(self, event: TranscriptCompacted, version: int, _: object) -> None:
        through = self.turns.get(self._names.resolve(event.through_turn))
        if through is not None and event.summary.strip():  # else nothing is known to be summarised
            self.compactions.append(Compaction(version, event.summary, through.order))

    def _rewound(self, event: TranscriptRewound, *_: object) -> None:
        to_turn = self.turns.get(self._names.resolve(event.to_turn))
        if to_turn is None:
            return
        self.hidden.update(islice(self.turns, to_turn.order - self.first_order, None))
        for compaction in self.compactions:
            compaction.void = compaction.void or compaction.stands_for(to_turn)

    def _source_fault(self, event: SourceFaultFound, version: int, _: object) -> None:
        self.source_faults.append((version, event))

    def _erased(self, event: ContentErased, *_: object) -> None:
        target = event.target
        turns = list(self.turns) if target.get("session") else []
        if turn := target.get("turn"):
            turns.append(self._names.resolve(str(turn)))
        for name in turns:
            if name in self.turns:
                erase_turn(self._touch(name))
        erase_results(self.calls.results, set(turns))
        if message := target.get("message"):
            sent = self._naming.get(str(message), ())
            homes = dict.fromkeys(delivery.turn for delivery in sent)
            if home := self.turn_of(str(message)):
                homes[home] = None
            for name in homes:
                erase_message(self.turns[name], str(message), self.view_of(name).lines)
            turns.extend(homes)
        self._touch_all()  # a result may stand in another turn than its own
        for compaction in self.compactions:
            if any(self.turns[n].order <= compaction.through for n in turns if n in self.turns):
                compaction.summary = ERASED


_Handler = Callable[[Any, Any, int, Any], None]
_HANDLERS: dict[type[Event], _Handler] = {
    UserMessageReceived: Conversation._received,
    UserMessageEdited: Conversation._edited,
    UserMessageRetracted: Conversation._retracted,
    AssistantMessageProduced: Conversation._produced,
    ToolResultReceived: Conversation._result,
    RecoveryApplied: Conversation._recovered,
    TurnFinalized: Conversation._finalized,
    DeliveryAttempted: Conversation._attempted,
    StreamChunkDelivered: Conversation._outcome,
    DeliveryConfirmed: Conversation._outcome,
    DeliveryFailed: Conversation._outcome,
    DeliveryRevised: Conversation._outcome,
    TranscriptCompacted: Conversation._compacted,
    TranscriptRewound: Conversation._rewound,
    ContentErased: Conversation._erased,
    SourceFaultFound: Conversation._source_fault,
}


def project(records: Iterable[Recorded], *, full: bool = False) -> list[Row]:
    """Return the rows of one session's records: a pure function, without a check of the promise."""
    conversation = Conversation()
    for recorded in records:
        conversation.apply(recorded)
    return conversation.rows(full=full)
