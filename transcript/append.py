"""What an append does within its transaction: once and not twice, in the right place, in order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

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
from onrecord.transcript.offsets import DeliveryOffsets
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage import journal, leasing
from onrecord.transcript.turns import TurnNames

ANY: Final = -1
"""Any version of the session will do."""
DRAFTS_AT_ONCE = 100_000
"""Events that one append may have."""
SESSIONS_KEPT = 256
"""Sessions whose turn names and offsets are kept in memory by a log."""

_KEYED_BY_TURN = frozenset(
    name for name, cls in KNOWN.items() if cls.natural_key and "turn" in cls.natural_key
)
_EVOLVING = tuple(
    name
    for name, cls in KNOWN.items()
    if "turn" in cls.__struct_fields__ or cls is TranscriptRewound
)


@dataclass(frozen=True, slots=True)
class Draft:
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


def append(
    connection: Any,
    states: States,
    session: str,
    drafts: Iterable[Draft],
    expected_version: int,
    lease: Lease | None,
) -> Outcome:
    """Write what isn't there yet; return where each event stands."""
    if lease is not None:
        drafts = tuple(drafts)
        if any(draft.event.intent for draft in drafts):
            leasing.check(connection, lease)
    head = journal.head(connection, session, create=True)
    assert head is not None
    before = head.version
    state = states.at(connection, head)
    generation = 0 if lease is None else lease.generation
    outcome = Outcome([])
    for draft in drafts:
        if len(outcome.records) >= DRAFTS_AT_ONCE:
            raise BadEvent(f"more than {DRAFTS_AT_ONCE} events in one append; split it")
        try:
            placed = _place(connection, session, _identified(session, draft, state))
            if isinstance(placed, Recorded):
                outcome.records.append(placed)
                continue
            if expected_version not in (ANY, before):
                raise wrong_version(session, expected_version, before)
            outcome.records.append(_write(connection, head, state, placed, generation))
        except OnRecordError as error:
            error.facts["line"] = draft.line
            raise
        outcome.new += 1
    return outcome


def wrong_version(session: str, expected: int, actual: int) -> WrongExpectedVersion:
    """Return the error for a session that isn't where the caller took it to be."""
    return WrongExpectedVersion(
        f"session {session!r} is at version {actual}, not {expected}; read it again and decide anew",
        session=session, expected=expected, actual=actual,
    )  # fmt: skip


def _identified(session: str, draft: Draft, state: State) -> Draft:
    event = draft.event
    if event.id is not None:
        return draft
    turn = None
    if event.type in _KEYED_BY_TURN:
        turn = state.turns.resolve(event.turn)  # type: ignore[attr-defined]
    if isinstance(event, StreamChunkDelivered):
        latest = state.offsets.attempt(event.delivery)
        own: Event = codec.with_attempt(session, event, latest)
    else:
        own = msgspec.structs.replace(event, id=codec.derive_id(session, event, turn))
    return Draft(own, draft.payload, draft.recorded_at, draft.line)


def _place(connection: Any, session: str, draft: Draft) -> Recorded | Draft:
    """Return the record that the event is already, or the draft that is to be written."""
    event = draft.event
    assert event.id is not None
    there = journal.find(connection, event.id)
    if there is None:
        return draft
    if same(session, there, event):
        return there
    if event.intent:
        raise KeyConflict(
            f"id {event.id} stands for another {there.type} in session {there.session!r}, version "
            f"{there.version}; what was to be recorded now: {event.type} in session {session!r}. "
            f"Fields that differ: {', '.join(_differing(there.event, event)) or 'session'}; give the "
            "new one a key of its own",
            session=session, id=event.id, existing=there.event, given=event,
        )  # fmt: skip
    id = codec.conflict_id(session, event.id, event)
    again = journal.find(connection, id)
    if again is not None:
        return again
    own = msgspec.structs.replace(event, id=id, conflicts_with=event.id)
    return Draft(own, codec.encode(own), draft.recorded_at, draft.line)


def same(session: str, there: Recorded, event: Event) -> bool:
    """Tell whether the event says what the record of its id says."""
    if there.type != event.type:
        return False
    if there.session != session and not _known_everywhere(event):
        return False
    if there.payload is None:
        return True  # erased: there is nothing left to compare with
    return codec.compared_content(there.event) == codec.compared_content(event)


def _known_everywhere(event: Event) -> bool:
    return getattr(event, "source", None) is not None


def _differing(there: Event, given: Event) -> list[str]:
    one, other = codec.to_map(there), codec.to_map(given)
    names = given.compared if given.compared is not None else sorted(one.keys() | other.keys())
    return [n for n in names if n not in codec.ENVELOPE and one.get(n) != other.get(n)]


def _write(
    connection: Any, head: journal.Head, state: State, draft: Draft, generation: int
) -> Recorded:
    event = draft.event
    if isinstance(event, DeliveryAttempted):
        state.offsets.check(head.session, event)
    record = journal.insert(
        connection,
        head,
        event,
        draft.payload,
        event_version=VOCABULARY_VERSION,
        recorded_at=journal.now() if draft.recorded_at is None else draft.recorded_at,
        generation=generation,
    )
    state.evolve(event)
    state.version = head.version
    return record
