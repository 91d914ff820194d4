"""The statements of the log, on the driver's connection."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from onrecord.transcript import evidence
from onrecord.transcript.codec import decode
from onrecord.transcript.events import Event, UnknownEvent
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage.dialect import per_dialect

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
_LAST = per_dialect(
    lambda say: f"SELECT coalesce(max(r.position), 0) FROM records r WHERE {say.settled}"
)
_BY_ID = f"{_FROM}WHERE r.id = ?"
_HEAD = "SELECT session_key, version, chain FROM sessions WHERE name = ?"
_NEW_SESSION = "INSERT INTO sessions VALUES (?, ?, 0, ?, ?, ?)"
_INSERT = (
    "INSERT INTO records (position, session_key, version, id, type, event_version, recorded_at, generation, "
    "commitment, leaf, chain, salt, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
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
    """Where a session stands within a transaction."""

    session: str
    key: bytes
    version: int
    chain: bytes


@dataclass(frozen=True, slots=True)
class SessionHead:
    """A session of the log: its name, version (number of records), times (UTC) and chain."""

    name: str
    version: int
    started_at: datetime
    updated_at: datetime
    chain: bytes = b""


def recorded(row: tuple[Any, ...]) -> Recorded:
    """Return the record of a row."""
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
    name = session.encode()
    row = connection.execute(_HEAD, (name,)).fetchone()
    if row is not None:
        return Head(session, *row)
    if not create:
        return None
    key, at = os.urandom(16), now()
    connection.execute(_NEW_SESSION, (key, name, evidence.START, at, at))
    return Head(session, key, 0, evidence.START)


def insert(
    connection: Any,
    head: Head,
    event: Event,
    payload: bytes,
    *,
    event_version: int,
    recorded_at: int,
    generation: int,
) -> Recorded:
    """Write the next record of the session, and move its head."""
    id = event.id
    assert id is not None, "an event without an id can't be written"
    version, id_bytes, type_ = head.version + 1, id.bytes, event.type
    salt = os.urandom(evidence.SALT_BYTES)
    commitment = evidence.commit(salt, payload)
    leaf = evidence.leaf(
        head.key, version, id_bytes, type_, event_version, recorded_at, generation, commitment
    )
    chain = evidence.link(head.chain, leaf)
    position = connection.next_position()
    cursor = connection.execute(
        _INSERT,
        (
            position, head.key, version, id_bytes, type_, event_version, recorded_at, generation,
            commitment, leaf, chain, salt, payload,
        ),
    )  # fmt: skip
    head.version, head.chain = version, chain
    return Recorded(
        session=head.session,
        version=version,
        position=cursor.lastrowid if position is None else position,
        id=id,
        type=type_,
        event=event,
        recorded_at=moment(recorded_at),
        generation=generation,
        event_version=event_version,
        payload=payload,
        commitment=commitment,
        leaf=leaf,
        chain=chain,
    )


def find(connection: Any, id: UUID) -> Recorded | None:
    """Return the record of an id."""
    row = connection.execute(_BY_ID, (id.bytes,)).fetchone()
    return None if row is None else recorded(row)


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
