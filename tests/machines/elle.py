"""Whether a history of many processes is one that a log may have, in the manner of Elle.

Ids are unique and a read returns a session's whole list, so the final list gives the order of all, and
every operation can be held against it. Times are of one clock that all processes share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

Outcome = Literal["ok", "fail", "unclear"]


@dataclass(frozen=True)
class Operation:
    """An append of ids to a session, or a read that returned them.

    `invoked`, `finished`: nanoseconds; a process that was killed leaves an operation unfinished, and
    its outcome unclear. The same ids may be appended again, by another operation.
    """

    client: str
    kind: Literal["append", "read"]
    session: str
    ids: tuple[str, ...]
    invoked: int
    finished: int | None
    outcome: Outcome


@dataclass(frozen=True)
class Seen:
    """A record as someone who reads the whole log sees it."""

    position: int
    session: str
    version: int
    id: str


@dataclass
class History:
    """What was done, what stands in the end, and what each follower saw, across its restarts."""

    operations: list[Operation] = field(default_factory=list)
    sessions: dict[str, list[Seen]] = field(default_factory=dict)
    everything: list[Seen] = field(default_factory=list)
    followed: dict[str, list[Seen]] = field(default_factory=dict)


@dataclass(frozen=True)
class Anomaly:
    """What no log may show: its name, and where it shows."""

    name: str
    detail: str


@dataclass
class _Writing:
    """All operations that append the same ids."""

    session: str
    ids: tuple[str, ...]
    invoked: int
    acknowledged: int | None = None
    outcomes: set[Outcome] = field(default_factory=set)


def anomalies(history: History) -> list[Anomaly]:
    """Return what is wrong with a history; nothing, if a log may show it."""
    writings = _writings(history.operations)
    return [
        *_order_of_the_log(history),
        *_what_stands(history, writings),
        *_reads(history, writings),
        *_real_time(history, writings),
        *_followers(history),
    ]


def _writings(operations: Sequence[Operation]) -> dict[tuple[str, ...], _Writing]:
    found: dict[tuple[str, ...], _Writing] = {}
    for done in operations:
        if done.kind == "read":
            continue
        writing = found.setdefault(done.ids, _Writing(done.session, done.ids, done.invoked))
        writing.invoked = min(writing.invoked, done.invoked)
        writing.outcomes.add(done.outcome)
        if done.outcome == "ok":
            assert done.finished is not None
            first = writing.acknowledged
            writing.acknowledged = done.finished if first is None else min(first, done.finished)
    return found


def _order_of_the_log(history: History) -> Iterator[Anomaly]:
    for session, records in history.sessions.items():
        versions = [record.version for record in records]
        if versions != list(range(1, len(versions) + 1)):
            yield Anomaly("gap", f"{session} has the versions {versions}")
        if records != [record for record in history.everything if record.session == session]:
            yield Anomaly("reordered", f"{session} stands in another order in the whole log")
    for one, other in pairwise(history.everything):
        if one.position >= other.position:
            yield Anomaly("reordered", f"{other} comes after {one}")


def _what_stands(
    history: History, writings: Mapping[tuple[str, ...], _Writing]
) -> Iterator[Anomaly]:
    times = Counter(record.id for record in history.everything)
    where = {record.id: record for record in history.everything}
    for writing in writings.values():
        stands = [times[id] for id in writing.ids]
        if max(stands) > 1:
            yield Anomaly("duplicate", f"{writing.ids} stand {stands} times")
        elif "ok" in writing.outcomes and min(stands) == 0:
            yield Anomaly("lost", f"{writing.ids} were acknowledged and stand {stands} times")
        elif writing.outcomes == {"fail"} and max(stands) > 0:
            yield Anomaly("resurrected", f"{writing.ids} weren't stored, it was said: {stands}")
        elif min(stands) != max(stands):
            yield Anomaly("torn", f"{writing.ids} stand {stands} times")
        elif max(stands) == 1:
            places = [(where[id].session, where[id].version) for id in writing.ids]
            first = where[writing.ids[0]].version
            if places != [(writing.session, first + n) for n in range(len(places))]:
                yield Anomaly("torn", f"{writing.ids} stand at {places}")
    said = {id for writing in writings.values() for id in writing.ids}
    for id in times.keys() - said:
        yield Anomaly("phantom", f"nobody appended {id}")


def _reads(history: History, writings: Mapping[tuple[str, ...], _Writing]) -> Iterator[Anomaly]:
    """Hold that a read is a beginning of the final list, as it may have been at its time."""
    finals = {
        name: tuple(record.id for record in records) for name, records in history.sessions.items()
    }
    begun = {id: writing.invoked for writing in writings.values() for id in writing.ids}
    for done in history.operations:
        if done.kind != "read" or done.outcome != "ok":
            continue
        assert done.finished is not None
        if done.ids != finals.get(done.session, ())[: len(done.ids)]:
            yield Anomaly("no prefix", f"{done.client} read {len(done.ids)} of {done.session}")
        elif any(begun.get(id, 0) > done.finished for id in done.ids):
            yield Anomaly("read ahead", f"{done.client} read {done.session} before it was written")


def _real_time(history: History, writings: Mapping[tuple[str, ...], _Writing]) -> Iterator[Anomaly]:
    """Hold that what was over before something began comes before it."""
    yield from _stale_reads(history, writings)
    position = {record.id: record.position for record in history.everything}
    standing = [writing for writing in writings.values() if writing.ids[0] in position]
    over = sorted(
        (writing.acknowledged, position[writing.ids[0]])
        for writing in standing
        if writing.acknowledged is not None
    )
    newest, place = 0, 0
    for writing in sorted(standing, key=lambda writing: writing.invoked):
        while place < len(over) and over[place][0] < writing.invoked:
            newest = max(newest, over[place][1])
            place += 1
        if position[writing.ids[0]] < newest:
            detail = f"{writing.ids} stand before what was acknowledged before they were said"
            yield Anomaly("reordered", detail)


def _stale_reads(
    history: History, writings: Mapping[tuple[str, ...], _Writing]
) -> Iterator[Anomaly]:
    version = {record.id: record.version for record in history.everything}
    known: dict[str, list[tuple[int, int]]] = {}
    for writing in writings.values():
        last = version.get(writing.ids[-1])
        if writing.acknowledged is not None and last is not None:
            known.setdefault(writing.session, []).append((writing.acknowledged, last))
    reads = [done for done in history.operations if done.kind == "read" and done.outcome == "ok"]
    for done in reads:
        assert done.finished is not None
        known.setdefault(done.session, []).append((done.finished, len(done.ids)))
    for session, lengths in known.items():
        lengths.sort()
        newest, place = 0, 0
        for done in sorted(reads, key=lambda done: done.invoked):
            if done.session != session:
                continue
            while place < len(lengths) and lengths[place][0] < done.invoked:
                newest = max(newest, lengths[place][1])
                place += 1
            if len(done.ids) < newest:
                detail = f"{done.client} read {len(done.ids)} of {session}, and {newest} were known"
                yield Anomaly("stale read", detail)


def _followers(history: History) -> Iterator[Anomaly]:
    for name, seen in history.followed.items():
        times = Counter(record.position for record in seen)
        twice = [position for position, count in times.items() if count > 1]
        missed = [record for record in history.everything if record.position not in times]
        if twice:
            yield Anomaly("seen twice", f"{name} saw {twice[:5]} again")
        if missed:
            yield Anomaly("missed", f"{name} never saw {missed[:5]}, {len(missed)} in all")
        if any(one.position > other.position for one, other in pairwise(seen)):
            yield Anomaly("seen out of order", f"{name} saw a position after a later one")
        if set(seen) - set(history.everything):
            yield Anomaly("seen wrongly", f"{name} saw what doesn't stand there")
