"""An audit: what is found in each session of a log, and the promise held in all of them.

    for audited in audit(log, Asked(), jobs=2): ...

A session that is stored up to its newest record is read there: its rows were held against the promise
before they were stored, and each is compared with its digest. Any other is folded from its records. One
of very many records is stored first: its fold would take memory by its length, and the store's goes on
from cut to cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import partial

import msgspec

from onrecord.projections.cold import fold
from onrecord.projections.conversation import Conversation
from onrecord.projections.findings import Finding, findings_of, in_order, set_aside
from onrecord.projections.promise import DeliveredNotProjected, check_reading
from onrecord.projections.promised import Reading
from onrecord.projections.stored.places import (
    Place,
    has_since,
    imported_from,
    is_on,
    places,
    reading,
    recorded_at,
    stored_in,
)
from onrecord.projections.sweeping import Progress, sweep
from onrecord.transcript.errors import OnRecordError
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Step
from onrecord.transcript.storage.journal import microseconds

MOST, WORST = 3, 10
"""Sessions that are told of each code, and of all."""


class Asked(msgspec.Struct, frozen=True):
    """Which findings are wanted. `since`: of events of which one at least was recorded then or later;
    `platform`: of sessions that have to do with it; `codes`: of these alone, all without any.
    `anew`: from the records alone, whatever is stored; `sources`: with places in an import's source.
    """

    since: datetime | None = None
    platform: str | None = None
    codes: frozenset[str] = frozenset()
    anew: bool = False
    sources: bool = False


class Audited(msgspec.Struct, frozen=True):
    """What was found in a session. `failed`: why it couldn't be audited, or that it breaks the promise.

    `sources`: by version where in the source of an import its record stood.
    """

    session: str
    findings: list[Finding]
    sources: dict[int, str] = {}
    failed: str = ""


class Tally(msgspec.Struct):
    """Findings, counted as they come. `sessions`: audited; `found`: how many findings.

    `by_code`, `in_sessions`: by code how many findings, in how many sessions; `most_in`: by code the
    sessions with most of it; `worst`: those with most of all, each with its counts by code.
    """

    sessions: int = 0
    found: int = 0
    with_findings: int = 0
    by_code: Counter[str] = msgspec.field(default_factory=Counter)
    in_sessions: Counter[str] = msgspec.field(default_factory=Counter)
    most_in: dict[str, list[tuple[str, int]]] = msgspec.field(default_factory=dict)
    worst: list[tuple[str, Counter[str]]] = msgspec.field(default_factory=list)
    failed: list[str] = msgspec.field(default_factory=list)

    def taking(self, audits: Iterable[Audited]) -> Iterator[Audited]:
        """Give what comes, and count it."""
        for audited in audits:
            self.take(audited)
            yield audited

    def take(self, audited: Audited) -> None:
        """Count a session's findings; each session comes once."""
        self.sessions += 1
        if audited.failed:
            self.failed.append(audited.failed)
        if not audited.findings:
            return
        codes = Counter(finding.code for finding in audited.findings)
        self.found += len(audited.findings)
        self.with_findings += 1
        self.by_code.update(codes)
        for code, count in codes.items():
            self.in_sessions[code] += 1
            most = self.most_in.setdefault(code, [])
            most.append((audited.session, count))
            most.sort(key=lambda one: -one[1])
            del most[MOST:]
        self.worst.append((audited.session, codes))
        self.worst.sort(key=lambda one: -one[1].total())
        del self.worst[WORST:]


def audit(
    log: TranscriptLog,
    asked: Asked,
    *,
    session: str | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Iterator[Audited]:
    """Audit all sessions, or one; give those that were asked for, in the log's order.

    A session that fails stops no other. Raise StorageError where the log itself does.
    """
    ask = partial(audit_session, asked=asked)
    yield from sweep(log, places(log, session), ask, jobs=jobs, progress=progress)


def audit_session(log: TranscriptLog, place: Place, asked: Asked) -> Iterator[Audited]:
    """Audit one session; give nothing where it isn't asked for."""
    platform = asked.platform
    if platform is not None and not reading(log, place, lambda c: is_on(c, place, platform)):
        return
    since = None if asked.since is None else microseconds(asked.since)
    if since is not None and not reading(log, place, lambda c: has_since(c, place, since)):
        yield Audited(place.name, [])
        return
    try:
        found = _found(log, place, anew=asked.anew)
    except OnRecordError as error:
        yield Audited(place.name, [], failed=_told(place, error))
        return
    if asked.codes:
        found = [finding for finding in found if finding.code in asked.codes]
    if since is not None and found:
        newest = [max(finding.versions, default=0) for finding in found]
        times = reading(log, place, lambda c: recorded_at(c, place, newest))
        found = [
            finding
            for finding, version in zip(found, newest, strict=True)
            if times.get(version, since) >= since
        ]
    yield Audited(place.name, found, _sources(log, place, found) if asked.sources else {})


def _told(place: Place, error: OnRecordError) -> str:
    if isinstance(error, DeliveredNotProjected):
        return str(error)
    return f"session {place.name!r} can't be audited: {error}"


def _sources(log: TranscriptLog, place: Place, found: Collection[Finding]) -> dict[int, str]:
    versions = {version for finding in found for version in finding.versions}
    return reading(log, place, lambda c: imported_from(c, place, versions))


def _found(log: TranscriptLog, place: Place, *, anew: bool) -> list[Finding]:
    if not anew and (place.is_stored or place.is_long):
        found = stored_in(log).sealed_findings(place.name)
        if found is not None:
            return found
    checked, aside = fold(log, place, _Checked)
    checked.check(place.name)
    found = findings_of(place.name, checked.conversation)
    found += (set_aside(place.name, version, why) for version, why in aside.items())
    return in_order(found)


class _Checked:
    """A fold with the promise's own reading beside it."""

    def __init__(self) -> None:
        self.conversation, self.reading = Conversation(), Reading()
        self._evolve, self._heed = self.conversation.evolve, self.reading.heed

    def take(self, recorded: Step) -> None:
        """Take the next record in, in both ways."""
        event, version = recorded.event, recorded.version
        self._evolve(event, version)
        self._heed(event, version)

    def check(self, session: str) -> None:
        """Hold the rows against the promise; raise DeliveredNotProjected."""
        check_reading(session, self.reading, self.conversation.rows(full=True), full=True)
