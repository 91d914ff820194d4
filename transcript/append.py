"""What an append does within its transaction: once and not twice, in the right place, in order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import msgspec

from onrecord.transcript import codec
from onrecord.transcript.errors import (
    BadEvent,
    KeyConflict,
    OnRecordError,
    WrongExpectedVersion,
)
from onrecord.transcript.events import (
    KNOWN,
    VOCABULARY_VERSION,
    DeliveryAttempted,
    Event,
    StreamChunkDelivered,
    TranscriptRewound,
)
from onrecord.transcript.leases import Lease
from onrecord.transcript.offsets import DeliveryOffsets, holds
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage import journal, leasing
from onrecord.transcript.turns import TurnNames

ANY: Final = -1
"""Any version of the session will do."""
DRAFTS_AT_ONCE = 100_000
"""Events that one append may have."""
SESSIONS_KEPT = 1024
"""Sessions whose turn names and offsets are kept in memory by a log."""
ROWS_HELD = 1024
"""Records that are planned before they are written."""

_KEYED_BY_TURN = frozenset(
    name for name, cls in KNOWN.items() if cls.natural_key and "turn" in cls.natural_key
)
_EVOLVING = tuple(
    name
    for name, cls in KNOWN.items()
    if "turn" in cls.__struct_fields__ or cls is TranscriptRewound
)


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event made storable, before it has a place.

    Only where it is imported: `recorded_at` (µs), and the `line` of the file, for messages.
    """

    event: Event
    payload: bytes
    recorded_at: int | None = None
    line: int = 0


@dataclass(slots=True)
class State:
    """What appends need to know of a session, up to `version`; `key` tells it from one of its name."""

    key: bytes
    version: int = 0
    turns: TurnNames = field(default_factory=TurnNames)
    offsets: DeliveryOffsets = field(default_factory=DeliveryOffsets)

    def evolve(self, event: Event) -> None:
        """Take an event in, in log order."""
        self.turns.evolve(event)
        self.offsets.evolve(event)


class States:
    """The states of the sessions used last. Only used within a write transaction."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, State] = OrderedDict()

    def at(self, connection: Any, head: journal.Head) -> State:
        """Return the state of the session as it stands, with what other processes wrote."""
        state = self._kept.get(head.session)
        if state is None or state.key != head.key or state.version > head.version:
            state = State(head.key)
        if state.version < head.version:
            journal.evolve(connection, head, state.version, _EVOLVING, state.evolve)
            state.version = head.version
        self._kept[head.session] = state
        self._kept.move_to_end(head.session)
        while len(self._kept) > SESSIONS_KEPT:
            self._kept.popitem(last=False)
        return state

    def forget(self, session: str) -> None:
        """Drop a state that may be ahead of the log: its transaction didn't happen."""
        self._kept.pop(session, None)


@dataclass(slots=True)
class Outcome:
    """What an append did: a record for each event given, and how many of them are new."""

    records: list[Recorded]
    new: int = 0


class Append:
    """Events that someone wants appended to a session, and what became of it.

    Given as `events`, or as `drafts` that are prepared. `outcome` or `error` is there once `done`.
    """

    __slots__ = ("done", "drafts", "durable", "error", "events", "expected_version", "lease",
                 "outcome", "session")  # fmt: skip

    def __init__(
        self,
        session: str,
        events: Sequence[Event] = (),
        *,
        drafts: Any = None,
        expected_version: int = ANY,
        durable: bool = True,
        lease: Lease | None = None,
    ) -> None:
        self.session = session
        self.events = events
        self.drafts = drafts
        self.expected_version = expected_version
        self.durable = durable
        self.lease = lease
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.done = False

    def answer(self) -> Outcome:
        """Return the outcome, or raise the error."""
        if self.error is not None:
            raise self.error
        assert self.outcome is not None, "an append was asked for its outcome before it had one"
        return self.outcome


class Transaction:
    """The appends of one transaction: planned one by one, so that a bad one has written nothing."""

    def __init__(
        self, connection: Any, states: States, given: Sequence[tuple[str, Iterable[Draft]]]
    ) -> None:
        """Begin with what is `given` to be appended, by session: it is looked up at once."""
        self._connection = connection
        self._states = states
        sessions = {session for session, _ in given}
        ids = [
            draft.event.id
            for _, drafts in given
            if isinstance(drafts, list)  # of a stream each is looked up in its turn
            for draft in drafts
            if draft.event.id is not None
        ]
        self._heads, self._absent = journal.look_up(connection, sessions, ids)
        self._rows: list[journal.Row] = []
        self._planned: dict[UUID, Recorded] = {}
        self._held: set[Lease] = set()
        self.wrote = False

    def append(
        self, session: str, drafts: Iterable[Draft], expected_version: int, lease: Lease | None
    ) -> Outcome:
        """Plan what isn't there yet; return where each event stands, once it is written.

        Raise OnRecordError, and nothing of this append will be written, unless it has more than
        ROWS_HELD events.
        """
        if lease is not None:
            drafts = tuple(drafts)
            self._check(lease, drafts)
        head = self._heads[session]
        before, chain, planned = head.version, head.chain, len(self._rows)
        state = self._states.at(self._connection, head)
        generation = 0 if lease is None else lease.generation
        outcome = Outcome([])
        for draft in drafts:
            try:
                if len(outcome.records) >= DRAFTS_AT_ONCE:
                    raise BadEvent(f"more than {DRAFTS_AT_ONCE} events in one append; split it")
                placed = self._place(head, state, _identified(session, draft, state))
                if isinstance(placed, Recorded):
                    outcome.records.append(placed)
                    continue
                if expected_version not in (ANY, before):
                    raise wrong_version(session, expected_version, before)
                outcome.records.append(self._plan(head, state, placed, generation))
            except OnRecordError as error:
                error.facts["line"] = draft.line
                if outcome.new:
                    self._take_back(planned)
                    head.version, head.chain = before, chain
                    self._states.forget(session)
                raise
            outcome.new += 1
            if len(self._rows) >= ROWS_HELD:
                self.write()
                planned = 0
        return outcome

    def write(self) -> None:
        """Write what is planned."""
        if self._rows:
            fresh = [head for head in self._heads.values() if head.fresh and head.version]
            journal.insert(self._connection, fresh, self._rows)
            self.wrote = True
            self._absent.difference_update(self._planned)
            self._rows = []
            self._planned = {}

    def _take_back(self, planned: int) -> None:
        """Drop what the failed append planned, and write the rest: its session is read anew."""
        for row in self._rows[planned:]:
            del self._planned[row.record.id]
        del self._rows[planned:]
        self.write()

    def _check(self, lease: Lease, drafts: tuple[Draft, ...]) -> None:
        if lease not in self._held and any(draft.event.intent for draft in drafts):
            leasing.check(self._connection, lease)
            self._held.add(lease)

    def _find(self, id: UUID) -> Recorded | None:
        planned = self._planned.get(id)
        if planned is not None or id in self._absent:
            return planned
        if not journal.is_there(self._connection, id):
            return None
        return journal.find(self._connection, id)

    def _place(self, head: journal.Head, state: State, draft: Draft) -> Recorded | Draft:
        """Return the record that the event is already, or the draft that is to be written."""
        event = draft.event
        assert event.id is not None
        there = self._find(event.id)
        if there is None:
            return self._part_of(head, state, event) or draft
        if same(head.session, there, event):
            return there
        if event.intent:
            raise _conflict(head.session, there, event)
        id = codec.conflict_id(head.session, event.id, event)
        again = self._find(id)
        if again is not None:
            return again
        own = msgspec.structs.replace(event, id=id, conflicts_with=event.id)
        return Draft(own, codec.encode(own), draft.recorded_at, draft.line)

    def _part_of(self, head: journal.Head, state: State, event: Event) -> Recorded | None:
        """Return the part that a text was joined into when it was first said, if it was."""
        if not (isinstance(event, DeliveryAttempted) and state.offsets.reached(event)):
            return None
        for record in self._attempts(head):
            part = record.event
            assert isinstance(part, DeliveryAttempted)
            ours = (part.delivery, part.attempt) == (event.delivery, event.attempt)
            if ours and part.offset <= event.offset:
                return record if holds(part, event) else None
        return None

    def _attempts(self, head: journal.Head) -> Iterator[Recorded]:
        before = head.version + 1
        for row in reversed(self._rows):
            record = row.record
            if record.session == head.session:
                before = record.version
                if record.type == DeliveryAttempted.__name__:
                    yield record
        yield from journal.earlier(self._connection, head, before, DeliveryAttempted.__name__)

    def _plan(self, head: journal.Head, state: State, draft: Draft, generation: int) -> Recorded:
        event = draft.event
        if isinstance(event, DeliveryAttempted):
            state.offsets.check(head.session, event)
        row = journal.follow(
            head,
            event,
            draft.payload,
            event_version=VOCABULARY_VERSION,
            recorded_at=journal.now() if draft.recorded_at is None else draft.recorded_at,
            generation=generation,
        )
        self._rows.append(row)
        self._planned[row.record.id] = row.record
        state.evolve(event)
        state.version = head.version
        return row.record


def wrong_version(session: str, expected: int, actual: int) -> WrongExpectedVersion:
    """Return the error for a session that isn't where the caller took it to be."""
    return WrongExpectedVersion(
        f"session {session!r} is at version {actual}, not {expected}; read it again and decide anew",
        session=session, expected=expected, actual=actual,
    )  # fmt: skip


def _follows_from_state(event: Event) -> bool:
    """Tell whether the id of an event depends on what its session holds."""
    if event.id is not None:
        return False
    if isinstance(event, StreamChunkDelivered):
        return event.attempt is None
    return event.type in _KEYED_BY_TURN


def prepared(session: str, event: Event, text_limit: int) -> Draft:
    """Return an event made storable, with its id if that follows from the event alone.

    Raise BadEvent, EventTooLarge.
    """
    draft = Draft(*codec.prepare(event, text_limit))
    return draft if _follows_from_state(draft.event) else _identified(session, draft, None)


def imported(session: str, event: Event, text_limit: int, recorded_at: int | None) -> Draft:
    """Return an event made storable whose turn is called what it says, with its id.

    Raise BadEvent, EventTooLarge.
    """
    return _identified(session, Draft(*codec.prepare(event, text_limit), recorded_at), None)


def _identified(session: str, draft: Draft, state: State | None) -> Draft:
    event = draft.event
    if event.id is not None:
        return draft
    if isinstance(event, StreamChunkDelivered):
        latest = 1 if state is None else state.offsets.attempt(event.delivery)
        own: Event = codec.with_attempt(session, event, latest)
    else:
        turn = None
        if state is not None and event.type in _KEYED_BY_TURN:
            turn = state.turns.resolve(event.turn)  # type: ignore[attr-defined]
        own = msgspec.structs.replace(event, id=codec.derive_id(session, event, turn))
    return Draft(own, draft.payload, draft.recorded_at, draft.line)


def _conflict(session: str, there: Recorded, event: Event) -> KeyConflict:
    return KeyConflict(
        f"id {event.id} stands for another {there.type} in session {there.session!r}, version "
        f"{there.version}; what was to be recorded now: {event.type} in session {session!r}. "
        f"Fields that differ: {', '.join(_differing(there.event, event)) or 'session'}; give the "
        "new one a key of its own",
        session=session, id=event.id, existing=there.event, given=event,
    )  # fmt: skip


def same(session: str, there: Recorded, event: Event) -> bool:
    """Tell whether the event says what the record of its id says."""
    if there.type != event.type:
        return False
    if there.session != session and not _known_everywhere(event):
        return False
    if there.payload is None:
        return True  # erased: there is nothing left to compare with
    if isinstance(event, DeliveryAttempted) and isinstance(there.event, DeliveryAttempted):
        return holds(there.event, event)
    return codec.compared_content(there.event) == codec.compared_content(event)


def _known_everywhere(event: Event) -> bool:
    return getattr(event, "source", None) is not None


def _differing(there: Event, given: Event) -> list[str]:
    one, other = codec.to_map(there), codec.to_map(given)
    names = given.compared if given.compared is not None else sorted(one.keys() | other.keys())
    return [n for n in names if n not in codec.ENVELOPE and one.get(n) != other.get(n)]
