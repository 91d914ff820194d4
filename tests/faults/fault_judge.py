"""What must hold once a disk that failed works again: nothing acknowledged lost, nothing there twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from failing_turns import ALL

from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.verify import verify

Line = list[str]


@dataclass
class Told:
    """What the child said of an append: the last it heard of it, and whether its text went out."""

    acked: bool = False
    stored: str = "not tried"
    sent: bool = False
    refusals: list[str] = field(default_factory=list)


def judge(url: str, lines: Sequence[Line]) -> list[str]:
    """Return what should hold of the log after what a child said and doesn't."""
    told, faults = _heard(lines)
    with TranscriptLog.open(url) as log:
        faults += _stands(log, told)
        for append in ALL:
            if not told[append.number].acked:
                records = log.append(append.session, *append.events, durable=append.durable)
                if [record.id for record in records] != append.ids:
                    faults.append(f"append {append.number}, tried again, returns {records}")
    with TranscriptLog.open(url) as log:
        there = _ids(log)
        faults += [
            f"append {append.number} stands {[there[id] for id in append.ids]} times in the end"
            for append in ALL
            if any(there[id] != 1 for id in append.ids)
        ]
        faults += _unsound(log)
    return faults


def _heard(lines: Sequence[Line]) -> tuple[dict[int, Told], list[str]]:
    """Return what was said of each append, and what of it contradicts itself."""
    told = {append.number: Told() for append in ALL}
    faults: list[str] = []
    for what, *rest in lines:
        if what == "read":
            faults += _misread(rest[0], {int(id) for id in rest[1:]}, told)
            continue
        if what in ("unopened", "unread"):
            continue
        about = told[int(rest[0])]
        if what == "try":
            about.stored = "unknown"
        elif what == "acked":
            about.acked = True
        elif what == "sent":
            about.sent = True
            if not about.acked:
                faults.append(f"append {rest[0]} was sent before it was acknowledged")
        elif what == "failed":
            name, about.stored, may_send, _ = rest[1:]
            about.refusals.append(name)
            if may_send == "True":
                faults.append(f"append {rest[0]} failed with {name}, and may be sent")
    return told, faults


def _misread(session: str, ids: set[int], told: dict[int, Told]) -> Iterator[str]:
    for append in ALL:
        if append.session != session:
            continue
        found = [id.int in ids for id in append.ids]
        about = told[append.number]
        if about.acked and not all(found):
            yield f"append {append.number} was acknowledged, and the same process doesn't read it"
        if not about.acked and about.stored == "no" and any(found):
            yield f"append {append.number} wasn't stored, it was said, and the same process reads it"


def _stands(log: TranscriptLog, told: dict[int, Told]) -> Iterator[str]:
    there = _ids(log)
    for append in ALL:
        about, times = told[append.number], [there[id] for id in append.ids]
        if about.acked and times != [1] * len(times):
            yield f"append {append.number} was acknowledged and stands {times} times"
        if not about.acked and about.stored in ("no", "not tried") and any(times):
            yield f"append {append.number} stands {times} times, and stored was {about.stored!r}"
        if times not in ([0] * len(times), [1] * len(times)):
            yield f"append {append.number} stands in parts, or twice: {times}"
    yield from _unsound(log)


def _ids(log: TranscriptLog) -> Counter[UUID]:
    return Counter(record.id for record in log.read_all())


def _unsound(log: TranscriptLog) -> Iterator[str]:
    for fault in verify(log).faults:
        yield f"the evidence doesn't hold: {fault}"
    for session in {append.session for append in ALL}:
        versions = [record.version for record in log.read(session)]
        if versions != list(range(1, len(versions) + 1)):
            yield f"session {session!r} has the versions {versions}"
