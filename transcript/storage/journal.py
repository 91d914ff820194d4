"""The statements of the log, on the driver's connection."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from msgspec.structs import force_setattr

from onrecord.transcript import evidence
from onrecord.transcript.codec import decode
from onrecord.transcript.errors import RecordDamaged, StorageFailed
from onrecord.transcript.events import Event, UnknownEvent
from onrecord.transcript.recorded import Recorded, Step
from onrecord.transcript.storage.dialect import per_dialect

ROWS_AT_ONCE = (64, 16, 1)
"""Records that one statement inserts, as many as there are: each of these is prepared once."""
AMONG = 64
"""Values that one statement looks for."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_RECORD = (
    "r.position, s.name, r.version, r.id, r.type, r.event_version, r.recorded_at, r.generation, "
    "r.commitment, r.leaf, r.chain, r.payload"
)
_FROM = f"SELECT {_RECORD} FROM records r JOIN sessions s ON s.session_key = r.session_key "
_OF_SESSION = (
    f"SELECT {_RECORD} FROM sessions s JOIN records r ON r.session_key = s.session_key "
    "WHERE s.name = ? AND r.version > ? ORDER BY r.version LIMIT ?"
)
_ALL = per_dialect(
    lambda say: f"{_FROM}WHERE r.position > ? AND {say.settled} ORDER BY r.position LIMIT ?"
)
_STANDS = per_dialect(
    lambda say: (
        "SELECT r.position, s.name, r.version, r.type FROM records r "
        "JOIN sessions s ON s.session_key = r.session_key "
        f"WHERE r.position > ? AND {say.settled} ORDER BY r.position LIMIT ?"
    )
)
_LAST = per_dialect(
    lambda say: f"SELECT coalesce(max(r.position), 0) FROM records r WHERE {say.settled}"
)
_STEPS = (
    "SELECT version, type, event_version, generation, recorded_at, payload FROM records "
    "WHERE session_key = ? AND version > ? ORDER BY version LIMIT ?"
)
_BY_ID = f"{_FROM}WHERE r.id = ?"
_HEAD = "SELECT session_key, version, chain FROM sessions WHERE name = ?"
_HEAD_AND_ID = (
    "SELECT session_key, version, chain, EXISTS (SELECT 1 FROM records WHERE id = ?) FROM sessions "
    "WHERE name = ?"
)
_HEADS = "SELECT name, session_key, version, chain FROM sessions WHERE name IN "
_IDS = "SELECT id FROM records WHERE id IN "
_IS_THERE = "SELECT 1 FROM records WHERE id = ?"
_NEW_SESSION = "INSERT INTO sessions VALUES (?, ?, 0, ?, ?, ?)"
_COLUMNS = (
    "position, session_key, version, id, type, event_version, recorded_at, generation, commitment, "
    "leaf, chain, salt, payload"
)
_PLACES = f"({', '.join('?' * 13)})"
_EARLIER = (
    f"{_FROM}WHERE r.session_key = ? AND r.version < ? AND r.type = ? AND r.payload IS NOT NULL "
    "ORDER BY r.version DESC LIMIT ?"
)
_SESSIONS = (
    "SELECT name, version, started_at, updated_at, chain FROM sessions "
    "WHERE version > 0 AND name IS NOT NULL ORDER BY started_at, name"
)


def moment(microseconds: int) -> datetime:
    """Return the time of microseconds since 1970 UTC."""
    return EPOCH + timedelta(microseconds=microseconds)


def microseconds(at: datetime) -> int:
    """Return the microseconds since 1970 UTC of a time."""
    return (at - EPOCH) // timedelta(microseconds=1)


def now() -> int:
    """Return the microseconds since 1970 UTC."""
    return time.time_ns() // 1000


@dataclass(slots=True)
class Head:
    """Where a session stands within a transaction; `fresh`: it isn't in the database yet."""

    session: str
    key: bytes
    version: int
    chain: bytes
    fresh: bool = False


class Row(NamedTuple):
    """A record before it is written: what goes into the columns after its position."""

    record: Recorded
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SessionHead:
    """A session of the log: its name, version (number of records), times (UTC) and chain."""

    name: str
    version: int
    started_at: datetime
    updated_at: datetime
    chain: bytes = b""


def recorded(row: tuple[Any, ...]) -> Recorded:
    """Return the record of a row. Raise StorageFailed if it can't be one: the file is damaged."""
    try:
        return _recorded(row)
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise StorageFailed(
            f"the record at position {row[0]!r} can't be read: {error}; run `onrecord verify`"
        ) from error


def _recorded(row: tuple[Any, ...]) -> Recorded:
    position, name, version, id_, type_, event_version, at, generation, *rest = row
    commitment, leaf, chain, payload = rest
    id = UUID(bytes=id_)
    event: Event
    if payload is None:
        event = UnknownEvent(id=id, name=type_)  # erased: the structure stays
    else:
        event = decode(type_, event_version, id, payload)
    return Recorded(
        session="" if name is None else name.decode(),
        version=version,
        position=position,
        id=id,
        type=type_,
        event=event,
        recorded_at=moment(at),
        generation=generation,
        event_version=event_version,
        payload=payload,
        commitment=commitment,
        leaf=leaf,
        chain=chain,
    )


def head(connection: Any, session: str, *, create: bool) -> Head | None:
    """Return where the session stands; with `create` a new one is made at version 0."""
    row = connection.execute(_HEAD, (session.encode(),)).fetchone()
    if row is not None:
        return Head(session, *row)
    if not create:
        return None
    made = _fresh(session)
    insert(connection, [made], [])
    return made


def look_up(
    connection: Any, sessions: Collection[str], ids: Sequence[UUID]
) -> tuple[dict[str, Head], set[UUID]]:
    """Return where sessions stand, and which of the ids aren't there.

    A session that isn't there is `fresh`, at version 0.
    """
    if len(sessions) == len(ids) == 1:
        (session,), (id,) = sessions, ids
        row = connection.execute(_HEAD_AND_ID, (id.bytes, session.encode())).fetchone()
        if row is not None:
            key, version, chain, is_there = row
            return {session: Head(session, key, version, chain)}, set() if is_there else {id}
    return _heads(connection, sessions), set(ids) - existing(connection, ids)


def _heads(connection: Any, sessions: Collection[str]) -> dict[str, Head]:
    if len(sessions) == 1:
        (session,) = sessions
        return {session: head(connection, session, create=False) or _fresh(session)}
    names = [session.encode() for session in sessions]
    found = {name: row for name, *row in _among(connection, _HEADS, names)}
    return {
        session: Head(session, *found[name]) if name in found else _fresh(session)
        for session, name in zip(sessions, names, strict=True)
    }


def _fresh(session: str) -> Head:
    return Head(session, os.urandom(16), 0, evidence.START, fresh=True)


def existing(connection: Any, ids: Sequence[UUID]) -> set[UUID]:
    """Return which of the ids are there."""
    found = _among(connection, _IDS, [id.bytes for id in ids])
    return {UUID(bytes=id_) for (id_,) in found}


def is_there(connection: Any, id: UUID) -> bool:
    """Tell whether there is a record of an id."""
    return connection.execute(_IS_THERE, (id.bytes,)).fetchone() is not None


def _among(connection: Any, statement: str, values: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
    """Give the rows for any number of values, by statements of two lengths: each is prepared once."""
    for at in range(0, len(values), AMONG):
        piece = values[at : at + AMONG]
        length = AMONG if len(piece) > 8 else 8
        piece = (*piece, *(piece[-1],) * (length - len(piece)))
        yield from connection.execute(f"{statement}({', '.join('?' * length)})", piece).fetchall()


def follow(
    head: Head,
    event: Event,
    payload: bytes,
    *,
    event_version: int,
    recorded_at: int,
    generation: int,
) -> Row:
    """Move the head on by a record; return it, to be written. It has no position until then."""
    id = event.id
    assert id is not None, "an event without an id can't be written"
    version, id_bytes, type_ = head.version + 1, id.bytes, event.type
    salt = os.urandom(evidence.SALT_BYTES)
    commitment = evidence.commit(salt, payload)
    leaf = evidence.leaf(
        head.key, version, id_bytes, type_, event_version, recorded_at, generation, commitment
    )
    chain = evidence.link(head.chain, leaf)
    head.version, head.chain = version, chain
    return Row(
        Recorded(
            head.session, version, 0, id, type_, event, moment(recorded_at), generation,
            event_version, payload, commitment, leaf, chain,
        ),
        (
            head.key, version, id_bytes, type_, event_version, recorded_at, generation, commitment,
            leaf, chain, salt, payload,
        ),
    )  # fmt: skip


def insert(connection: Any, fresh: Iterable[Head], rows: Sequence[Row]) -> None:
    """Write new sessions and records, and give the records their positions."""
    at = now()
    for head in fresh:
        values = (head.key, head.session.encode(), evidence.START, at, at)
        connection.execute(_NEW_SESSION, values)
        head.fresh = False
    start = 0
    for count in ROWS_AT_ONCE:
        while len(rows) - start >= count:
            _insert(connection, rows[start : start + count])
            start += count


@cache
def _insertion(count: int) -> str:
    return f"INSERT INTO records ({_COLUMNS}) VALUES {', '.join([_PLACES] * count)}"


def _insert(connection: Any, rows: Sequence[Row]) -> None:
    first = connection.next_position()
    values: list[Any] = [first, *rows[0].values]
    for row in rows[1:]:
        values.append(connection.next_position())
        values += row.values
    last = connection.execute(_insertion(len(rows)), values).lastrowid
    # What one statement inserts gets positions one after the other: on SQLite nobody
    # else writes, on PostgreSQL they were reserved.
    for position, row in enumerate(rows, last - len(rows) + 1 if first is None else first):
        force_setattr(row.record, "position", position)


def find(connection: Any, id: UUID) -> Recorded | None:
    """Return the record of an id."""
    row = connection.execute(_BY_ID, (id.bytes,)).fetchone()
    return None if row is None else recorded(row)


def earlier(connection: Any, head: Head, before: int, type: str) -> Iterator[Recorded]:
    """Give the session's records of a type before a version, the latest first, erased ones not."""
    while True:
        values = (head.key, before, type, AMONG)
        rows = connection.execute(_EARLIER, values).fetchall()
        for row in rows:
            record = recorded(row)
            before = record.version
            yield record
        if len(rows) < AMONG:
            return


def of_session(connection: Any, session: str, after: int, limit: int) -> list[Recorded]:
    """Return records of a session after a version."""
    rows = connection.execute(_OF_SESSION, (session.encode(), after, limit)).fetchall()
    return [recorded(row) for row in rows]


def of_all(connection: Any, after: int, limit: int) -> list[Recorded]:
    """Return records of the log after a position."""
    return [
        recorded(row)
        for row in connection.execute(_ALL(connection.dialect), (after, limit)).fetchall()
    ]


def steps(connection: Any, key: bytes, after: int, limit: int) -> list[Step]:
    """Return what a fold needs of a session's records after a version; their events have no ids.

    Raise RecordDamaged if one can't be read.
    """
    rows = connection.execute(_STEPS, (key, after, limit)).fetchall()
    try:
        return [
            Step(
                version,
                UnknownEvent(name=type_) if payload is None else decode(type_, form, None, payload),
                generation,
                at,
            )
            for version, type_, form, generation, at, payload in rows
        ]
    except (AttributeError, TypeError, ValueError) as error:
        raise RecordDamaged(
            f"a record after version {after} can't be read: {error}; run `onrecord verify`"
        ) from error


def places(connection: Any, after: int, limit: int) -> list[tuple[int, str, int, str]]:
    """Return position, session, version and type of the records after a position."""
    return [
        (position, "" if name is None else name.decode(), version, type_)
        for position, name, version, type_ in connection.execute(
            _STANDS(connection.dialect), (after, limit)
        ).fetchall()
    ]


def last_position(connection: Any) -> int:
    """Return the position of the newest record, 0 if there is none."""
    return int(connection.execute(_LAST(connection.dialect)).fetchone()[0])


def evolve(
    connection: Any, head: Head, after: int, types: Iterable[str], take: Callable[[Event], None]
) -> None:
    """Give the session's events of some types after a version to `take`, in order."""
    names = tuple(types)
    cursor = connection.execute(
        "SELECT type, event_version, id, payload FROM records WHERE session_key = ? "
        f"AND version > ? AND payload IS NOT NULL AND type IN ({','.join('?' * len(names))}) "
        "ORDER BY version",
        (head.key, after, *names),
    )
    for type_, event_version, id_, payload in cursor:
        take(decode(type_, event_version, UUID(bytes=id_), payload))


def sessions(connection: Any) -> list[SessionHead]:
    """Return the sessions that have records, the first begun first."""
    return [
        SessionHead(name.decode(), version, moment(started), moment(updated), chain)
        for name, version, started, updated, chain in connection.execute(_SESSIONS).fetchall()
    ]
