"""Searching without an index: each session is folded and its rows are looked at, one after the other."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator
from datetime import datetime

from onrecord.projections.promise import DeliveredNotProjected, check_reading
from onrecord.projections.search.hits import Hit, said
from onrecord.projections.search.query import Query, fold
from onrecord.projections.transcript import folded
from onrecord.transcript.errors import RecordDamaged
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage.journal import microseconds

Tell = Callable[[str], None]
"""Is told in a sentence what a person should know of a search."""


def scan(log: TranscriptLog, query: Query, tell: Tell) -> list[Hit]:
    """Return the newest rows of the log that have all words. Raise StorageError."""
    names = [head.name for head in log.sessions()] if query.session is None else [query.session]
    found = (hit for name in names for hit in _of(log, name, query, tell))
    return heapq.nlargest(query.limit, found, key=lambda hit: hit.at)


def _of(log: TranscriptLog, session: str, query: Query, tell: Tell) -> Iterator[Hit]:
    times: dict[int, datetime] = {}

    def noted() -> Iterator[Recorded]:
        for recorded in log.read(session):
            times[recorded.version] = recorded.recorded_at
            yield recorded

    try:
        conversation, reading = folded(noted())
        check_reading(session, reading, conversation.rows(full=True), full=True)
    except (DeliveredNotProjected, RecordDamaged) as error:
        tell(f"session {session!r} isn't searched: {error}")
        return
    out = conversation.taken_out()
    for view in conversation.views():
        for row in view.rows:
            at = times[row.versions[0]]
            text = fold(said(row))
            if (
                all(word in text for word in query.words)
                and (query.role is None or row.role == query.role)
                and (query.since is None or microseconds(at) >= query.since)
            ):
                yield Hit(session=session, row=row, at=at, in_view=view.facts.name not in out)


def left_out(session: str, versions: Collection[int]) -> str:
    """Say which records of a session aren't searched."""
    told = ", ".join(map(str, sorted(versions)[:3])) + (" …" if len(versions) > 3 else "")
    return (
        f"session {session!r}: what stands at version {told} can't be read and isn't searched; "
        "`onrecord verify` says what is damaged"
    )
