"""Where sessions stand in the log and in the store, and what a sweep asks of their records.

A fold isn't needed for any of it: which platform a session is on, when a record was written, where in
its source it stood.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from onrecord.projections.stored import builds
from onrecord.projections.stored.projections import CODE, StoredProjections
from onrecord.transcript.codec import decode
from onrecord.transcript.errors import RecordDamaged
from onrecord.transcript.events import (
    DeliveryAttempted,
    Event,
    SessionStarted,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

T = TypeVar("T")

LONG = 20_000
"""Records from which on a session is stored, and read in parts, instead of folded in memory."""
AT_ONCE = 500
"""Versions that one statement looks for."""

_PLACES = (
    "SELECT s.name, s.session_key, s.version, coalesce(p.version, 0) FROM sessions s "
    "LEFT JOIN projected_sessions p ON p.session_key = s.session_key AND p.build = ? "
    "WHERE s.version > 0 AND s.name IS NOT NULL"
)
_SAYING_WHERE = (
    "SELECT type, event_version, payload FROM records WHERE session_key = ? "
    "AND type IN ('SessionStarted', 'UserMessageReceived', 'DeliveryAttempted') "
    "AND payload IS NOT NULL ORDER BY version"
)
_SINCE = (
    "SELECT version FROM records WHERE session_key = ? AND recorded_at >= ? "
    "ORDER BY version DESC LIMIT 1"
)
_STARTED = (
    "SELECT type, event_version, payload FROM records WHERE session_key = ? "
    "AND type = 'SessionStarted' AND payload IS NOT NULL ORDER BY version LIMIT 1"
)


class Place(msgspec.Struct, frozen=True, gc=False):
    """A session. `version`: its newest; `projected`: up to where it is stored, 0 if it isn't."""

    name: str
    key: bytes
    version: int
    projected: int = 0

    @property
    def is_stored(self) -> bool:
        """Tell whether all its records are projected."""
        return self.projected == self.version

    @property
    def is_long(self) -> bool:
        """Tell whether it is better stored than folded in memory."""
        return self.version > LONG


def places(log: TranscriptLog, session: str | None = None) -> list[Place]:
    """Return all sessions that have records, or the one of a name; the first begun first."""
    name = None if session is None else session.encode()

    def run(connection: Any) -> list[Place]:
        build = builds.live_build(connection, CODE)
        if name is None:
            found = connection.execute(f"{_PLACES} ORDER BY s.started_at, s.name", (build,))
        else:
            found = connection.execute(f"{_PLACES} AND s.name = ?", (build, name))
        return [Place(of.decode(), *rest) for of, *rest in found.fetchall()]

    return log.database.read("listing sessions", run)


def is_on(connection: Any, place: Place, platform: str) -> bool:
    """Tell whether anything of a session came from a platform or went to it."""
    said = platform.encode()
    cursor = connection.execute(_SAYING_WHERE, (place.key,))
    try:
        return any(
            isinstance(payload, bytes)
            and said in payload
            and platform in _platforms(_readable(type_, form, payload))
            for type_, form, payload in cursor
        )
    finally:
        cursor.close()


def _platforms(event: Event | None) -> Iterator[str]:
    if isinstance(event, SessionStarted):
        yield event.platform
    elif isinstance(event, UserMessageReceived):
        yield event.source.platform if event.source else ""
    elif isinstance(event, DeliveryAttempted):
        yield event.target.platform if event.target else ""


def _readable(type: str, form: int, payload: bytes) -> Event | None:
    """Return an event, None where it can't be read: a fold says so, and this isn't one."""
    try:
        return decode(type, form, None, payload)
    except (RecordDamaged, AttributeError, TypeError, ValueError):
        return None


def has_since(connection: Any, place: Place, since: int) -> bool:
    """Tell whether anything of a session was recorded at a time (µs since 1970 UTC) or later."""
    return connection.execute(_SINCE, (place.key, since)).fetchone() is not None


def started(connection: Any, place: Place) -> SessionStarted | None:
    """Return what a session began with, if it is said."""
    row = connection.execute(_STARTED, (place.key,)).fetchone()
    event = None if row is None else _readable(*row)
    return event if isinstance(event, SessionStarted) else None


def recorded_at(connection: Any, place: Place, versions: Collection[int]) -> dict[int, int]:
    """Return when records were written, by version: µs since 1970 UTC."""
    return dict(_of_versions(connection, place, versions, "version, recorded_at"))


def imported_from(connection: Any, place: Place, versions: Collection[int]) -> dict[int, str]:
    """Return where in the source of an import records stood, by version; of others nothing."""
    columns = "version, type, event_version, payload"
    found: dict[int, str] = {}
    for version, type_, form, payload in _of_versions(connection, place, versions, columns):
        event = None if payload is None else _readable(type_, form, payload)
        if event is not None and event.imported_from:
            found[version] = event.imported_from
    return found


def _of_versions(
    connection: Any, place: Place, versions: Iterable[int], columns: str
) -> Iterator[tuple[Any, ...]]:
    wanted = sorted(set(versions))
    for at in range(0, len(wanted), AT_ONCE):
        some = wanted[at : at + AT_ONCE]
        statement = (
            f"SELECT {columns} FROM records WHERE session_key = ? "
            f"AND version IN ({', '.join('?' * len(some))})"
        )
        yield from connection.execute(statement, (place.key, *some)).fetchall()


def reading(log: TranscriptLog, place: Place, run: Callable[[Any], T]) -> T:
    """Return what `run` makes of a connection, in a short read about a session."""
    return log.database.read(f"reading session {place.name!r}", run)


_projections: WeakKeyDictionary[TranscriptLog, StoredProjections] = WeakKeyDictionary()


def stored_in(log: TranscriptLog) -> StoredProjections:
    """Return the stored projections of a log, the same each time: which build is read is asked once."""
    if log not in _projections:
        _projections[log] = StoredProjections(log)
    return _projections[log]
