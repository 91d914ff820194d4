"""Holding what is stored against the log: the rows as read back, deliveries and findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from onrecord.projections.conversation import Conversation
from onrecord.projections.deliveries import DeliveryHistory, deliveries
from onrecord.projections.findings import Finding, findings_of, in_order
from onrecord.projections.promise import DeliveredNotProjected, check_reading
from onrecord.projections.promised import Reading
from onrecord.projections.rows import Row
from onrecord.projections.stored import tables
from onrecord.projections.stored.tables import Standing
from onrecord.transcript.errors import RecordDamaged
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """Something stored that doesn't follow from the log. `detail`: one sentence."""

    session: str
    turn: str
    detail: str


class Stored(msgspec.Struct):
    """What is stored of a session: by turn its rows and digest, and which turns the model sees."""

    there: Standing
    turns: list[tables.StoredTurn]
    shown: set[int]
    deliveries: list[DeliveryHistory]
    findings: list[Finding]


def read(connection: Any, there: Standing) -> Stored:
    """Return all that is stored of a session."""
    return Stored(
        there,
        tables.all_turns(connection, there.number),
        tables.shown_places(connection, there.number),
        tables.deliveries(connection, there.number),
        tables.findings(connection, there.number),
    )


def check(log: TranscriptLog, session: str, stored: Stored) -> Iterator[Fault]:
    """Compare what is stored with a fold of the log, and hold the rows against the promise."""
    there = stored.there
    try:
        records = list(_records(log, session, there))
    except RecordDamaged as error:
        yield Fault(session=session, turn="", detail=f"its log can't be read: {error}")
        return
    conversation, reading = Conversation(), Reading()
    for record in records:
        conversation.apply(record)
        reading.take(record)
    for version, reason in there.state.aside.items():
        detail = f"version {version} can't be projected and was left out: {reason}"
        yield Fault(session=session, turn="", detail=detail)
    yield from _rows(session, stored, conversation, reading)
    yield from _beside(session, stored, conversation, records)


def _records(log: TranscriptLog, session: str, there: Standing) -> Iterator[Recorded]:
    """Return the records that are projected: without those that were set aside."""
    after = 0
    for version in (*sorted(there.state.aside), there.version + 1):
        if version > after + 1:
            yield from log.read(session, after=after, limit=version - after - 1)
        after = version


def _rows(
    session: str, stored: Stored, conversation: Conversation, reading: Reading
) -> Iterator[Fault]:
    by_place = {place: (blob, sealed) for place, blob, sealed in stored.turns}
    out = conversation.taken_out()
    full: list[Row] = []
    for view in conversation.views():
        name, place = view.facts.name, view.facts.order
        blob, sealed = by_place.pop(place, (b"", b""))
        if not blob:
            yield Fault(session=session, turn=name, detail="its rows aren't in the store")
            continue
        try:
            rows = tables.decode_rows(blob)
        except msgspec.MsgspecError as error:
            yield Fault(session=session, turn=name, detail=f"its rows can't be read: {error}")
            continue
        full += rows
        if tables.seal(stored.there.key, place, blob) != sealed:
            yield Fault(session=session, turn=name, detail="its rows aren't those that were stored")
        elif rows != view.rows:
            yield Fault(session=session, turn=name, detail="its rows don't follow from the log")
        if (place in stored.shown) == (name in out):
            said = "hidden from" if name not in out else "shown to"
            yield Fault(session=session, turn=name, detail=f"it is {said} the model")
    for place in by_place:
        yield Fault(session=session, turn="", detail=f"turn {place} is stored and not in the log")
    try:
        check_reading(session, reading, full, full=True)
    except DeliveredNotProjected as error:
        detail = f"the stored rows break the promise: {error}"
        yield Fault(session=session, turn="", detail=detail)


def _beside(
    session: str, stored: Stored, conversation: Conversation, records: list[Recorded]
) -> Iterator[Fault]:
    compaction = conversation.compaction()
    if stored.there.state.summary != (compaction.row() if compaction else None):
        yield Fault(session=session, turn="", detail="the stored summary isn't the log's")
    told = sorted(deliveries(records), key=lambda history: history.versions[0])
    if stored.deliveries != told:
        yield Fault(session=session, turn="", detail="stored deliveries don't follow from the log")
    if in_order(stored.findings) != findings_of(session, conversation):
        yield Fault(session=session, turn="", detail="stored findings don't follow from the log")
