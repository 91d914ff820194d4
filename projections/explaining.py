"""One turn explained: its events in three lanes, and a paragraph for each of its findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby

import msgspec

from onrecord.projections.accounts import account_of
from onrecord.projections.case import Case
from onrecord.projections.codes import MEANINGS, UNKNOWN
from onrecord.projections.conversation import Conversation
from onrecord.projections.differences import Difference, Kind
from onrecord.projections.findings import Finding, findings_of
from onrecord.projections.replaying import Replay, Replayed
from onrecord.projections.telling import Lane, lane_of, quote, time_of, words_of
from onrecord.transcript.events import DeliveryAttempted, StreamChunkDelivered
from onrecord.transcript.recorded import Recorded

EVENTS_OF_A_STREAM = 4
"""Events of one stream that follow on each other and are told one by one; more are told as one."""

Read = Callable[[], Iterable[Recorded]]


class Moment(msgspec.Struct, frozen=True):
    """An event of the turn, or the parts of a stream, and what it changed in the rows.

    `first`, `last`: versions; `said`: what it says; `source`: where it stood in the source that it
    was imported from; `closed`: the turns that it closed, with how they ended.
    """

    first: int
    last: int
    at: datetime
    lane: Lane
    said: str
    source: str
    changes: tuple[Difference, ...]
    closed: tuple[tuple[str, str], ...]


class Evidence(msgspec.Struct, frozen=True):
    """An event that shows a finding. `at`: None where nobody knows."""

    version: int
    type: str
    at: datetime | None
    said: str
    source: str


class Paragraph(msgspec.Struct, frozen=True):
    """A finding explained. `saw`: what the user saw; `next`: what the model gets with its next
    request; `advice`: what to do.
    """

    code: str
    meaning: str
    happened: str
    evidence: tuple[Evidence, ...]
    saw: str
    next: str
    advice: str


class Explanation(msgspec.Struct, frozen=True):
    """A turn explained; `turn` is empty for findings of a session that are of none of its turns."""

    session: str
    turn: str
    moments: tuple[Moment, ...]
    paragraphs: tuple[Paragraph, ...]


def explain(session: str, read: Read, turn: str | None = None) -> list[Explanation]:
    """Explain a turn; without one those that have findings, or the last one if none has.

    `read` gives the session's records from the first on, each time. A turn that isn't there gives
    an empty list.
    """
    conversation = Conversation()
    for recorded in read():
        conversation.apply(recorded)
    found = findings_of(session, conversation)
    turns = _chosen(conversation, found, turn)
    steps = _steps(read(), conversation, found, turns)
    return [
        Explanation(
            session,
            name,
            tuple(_moments(steps[name])),
            tuple(
                _paragraph(finding, conversation, {s.record.version: s.record for s in steps[name]})
                for finding in found
                if finding.turn == name
            ),
        )
        for name in turns
    ]


def turns_of(read: Read) -> list[str]:
    """Return the names of a session's turns, in order."""
    conversation = Conversation()
    for recorded in read():
        conversation.apply(recorded)
    return list(conversation.turns)


def _chosen(
    conversation: Conversation, found: Sequence[Finding], turn: str | None
) -> Collection[str]:
    if turn is not None:
        return [turn] if turn in conversation.turns else []
    with_findings = {finding.turn for finding in found}
    chosen = [name for name in conversation.turns if name in with_findings]
    chosen += sorted(with_findings.difference(conversation.turns))
    return chosen or list(conversation.turns)[-1:]


def _steps(
    records: Iterable[Recorded],
    conversation: Conversation,
    found: Iterable[Finding],
    turns: Collection[str],
) -> Mapping[str, list[Replayed]]:
    """Return of each turn the steps that are of it, changed its rows, or show a finding of it."""
    steps: dict[str, list[Replayed]] = {turn: [] for turn in turns}
    shown_by: dict[int, set[str]] = {}
    for finding in found:
        for version in finding.versions:
            shown_by.setdefault(version, set()).add(finding.turn)
    contradicted = {event.conflicts_with: conversation.turn_of_event(event)
                    for _, event in conversation.conflicts}  # fmt: skip
    replay = Replay(only=steps)
    for recorded in records:
        step = replay.take(recorded)
        delivery = conversation.deliveries.get(getattr(recorded.event, "delivery", ""))
        concerned = {step.turn if delivery is None else delivery.turn}
        concerned |= shown_by.get(recorded.version, set())
        concerned.update(turn for change in step.changes for turn in _turns_of(change))
        concerned.update(name for name, _ in step.closed)
        if (other := contradicted.get(recorded.id)) is not None:
            concerned.add(other)
        for name in concerned.intersection(steps):
            steps[name].append(_of_turn(step, name))
    return steps


def _turns_of(change: Difference) -> Iterator[str]:
    for side in (change.before, change.after):
        turn = getattr(side, "turn", "")
        if turn:
            yield turn


def _of_turn(step: Replayed, turn: str) -> Replayed:
    """Leave out of a step what it changed in other turns."""
    changes = tuple(one for one in step.changes if turn in _turns_of(one))
    closed = tuple(one for one in step.closed if one[0] == turn)
    return msgspec.structs.replace(step, changes=changes, closed=closed)


def _moments(steps: Iterable[Replayed]) -> Iterator[Moment]:
    """Yield what a timeline tells: event by event, and many parts of one stream at once."""
    for stream, several in groupby(steps, _stream_of):
        run = list(several)
        if stream and len(run) > EVENTS_OF_A_STREAM:
            yield _moment(run, _stream_words(stream, run))
        else:
            yield from (_moment([step], words_of(step.record.event)) for step in run)


def _stream_of(step: Replayed) -> str:
    event = step.record.event
    if isinstance(event, DeliveryAttempted | StreamChunkDelivered) and not event.conflicts_with:
        return event.delivery
    return ""


def _stream_words(delivery: str, run: Sequence[Replayed]) -> str:
    events = [step.record.event for step in run]
    parts = [event.text for event in events if isinstance(event, DeliveryAttempted)]
    through = [event.through for event in events if isinstance(event, StreamChunkDelivered)]
    taken = f", platform took up to {max(through)}" if through else ""
    text = "".join(parts)
    return f"sends {quote(text)}, {len(text)} characters in {len(parts)} parts{taken} [{delivery}]"


def _moment(run: Sequence[Replayed], said: str) -> Moment:
    first, last = run[0].record, run[-1].record
    sources = dict.fromkeys(
        s.record.event.imported_from for s in run if s.record.event.imported_from
    )
    return Moment(
        first.version,
        last.version,
        run[0].at,
        lane_of(first.event),
        said,
        " … ".join(dict.fromkeys([*list(sources)[:1], *list(sources)[-1:]])),
        tuple(_net(change for step in run for change in step.changes)),
        tuple(closed for step in run for closed in step.closed),
    )


def _net(changes: Iterable[Difference]) -> Iterator[Difference]:
    """Yield what several changes of rows come to."""
    rows: dict[str, Difference] = {}
    for change in changes:
        ident = str(getattr(change.after or change.before, "id", ""))
        earlier = rows.get(ident)
        before = change.before if earlier is None else earlier.before
        kind: Kind = "added" if before is None else "removed" if change.after is None else "changed"
        rows[ident] = Difference(kind, before, change.after)
    yield from (one for one in rows.values() if one.before is not one.after)


def _paragraph(
    finding: Finding, conversation: Conversation, records: Mapping[int, Recorded]
) -> Paragraph:
    case = Case(finding, conversation, records)
    happened, advice = account_of(case)
    return Paragraph(
        code=finding.code,
        meaning=MEANINGS.get(finding.code, UNKNOWN).short,
        happened=happened,
        evidence=tuple(_evidence(records[v]) for v in finding.versions if v in records),
        saw=case.saw(),
        next=case.next(),
        advice=advice,
    )


def _evidence(record: Recorded) -> Evidence:
    event = record.event
    return Evidence(
        record.version, record.type, time_of(record), words_of(event), event.imported_from
    )
