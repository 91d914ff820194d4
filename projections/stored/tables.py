"""The statements of stored projections, on the driver's connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from onrecord.projections.deliveries import DeliveryHistory
from onrecord.projections.findings import Finding
from onrecord.projections.rows import Row
from onrecord.projections.stored.names import digest
from onrecord.projections.stored.tail import Cut, Turn
from onrecord.transcript.errors import StorageFailed

T = TypeVar("T")

NAMES_AT_ONCE = 500
"""Names that one statement looks for."""
TURNS_AT_ONCE = 1_000
"""Turns whose rows are looked at before the next ones are read."""
DIGEST_BYTES = 16
PLACE_BITS = 32
"""Bits of a turn's key that are its place."""

_encode = msgspec.msgpack.Encoder().encode
decode_rows = msgspec.msgpack.Decoder(list[Row]).decode
_decode_deliveries = msgspec.msgpack.Decoder(list[DeliveryHistory]).decode
_decode_findings = msgspec.msgpack.Decoder(list[Finding]).decode


class State(msgspec.Struct, array_like=True, omit_defaults=True):
    """What of a session's projection goes on. `last`: the place of the last turn that counts, -1
    without one; `summary`: the row of the compaction that holds; `places`: the sum of the places of
    the turns that are shown; `aside`: version → why it can't be folded in.
    """

    tracked: bool = False
    last: int = -1
    summary: Row | None = None
    places: int = 0
    aside: dict[int, str] = {}


class Damaged(Exception):
    """What stands in the store isn't what was stored: somebody changed it, or the disk did."""


StoredTurn = tuple[int, bytes, bytes]
"""Place, rows and digest."""

_decode_state = msgspec.msgpack.Decoder(State).decode


class Standing(msgspec.Struct):
    """Where a session stands in the log, and in a build of the projections (`number` 0: not yet)."""

    key: bytes
    log_version: int
    number: int = 0
    version: int = 0
    turns: int = 0
    shown: int = 0
    state: State = msgspec.field(default_factory=State)


_STANDING = (
    "SELECT s.session_key, s.version, p.number, p.version, p.turns, p.shown, p.state FROM sessions s "
    "LEFT JOIN projected_sessions p ON p.session_key = s.session_key AND p.build = ? "
    "WHERE s.name = ?"
)
_BEHIND = (
    "SELECT s.name, s.version - coalesce(p.version, 0) FROM sessions s "
    "LEFT JOIN projected_sessions p ON p.session_key = s.session_key AND p.build = ? "
    "WHERE s.name IS NOT NULL AND s.version > coalesce(p.version, 0) ORDER BY s.started_at, s.name"
)
_CUT = (
    "SELECT place, first_version, generation FROM projected_turns "
    "WHERE id >= ? AND id <= ? AND clean = 1 ORDER BY id DESC LIMIT 1"
)
_TURN = (
    "INSERT INTO projected_turns (id, number, place, first_version, generation, clean, closed, "
    "shown, size, rows, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE "
    "SET first_version = excluded.first_version, generation = excluded.generation, "
    "clean = excluded.clean, closed = excluded.closed, shown = excluded.shown, "
    "size = excluded.size, rows = excluded.rows, digest = excluded.digest"
)
_TOLD = (
    "INSERT INTO {} (id, told) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET told = excluded.told"
)
_NAME = (
    "INSERT INTO projected_names (number, name, place) VALUES (?, ?, ?) "
    "ON CONFLICT (number, name) DO UPDATE SET place = excluded.place"
)
_BEGIN = (
    "INSERT INTO projected_sessions (build, session_key, version, turns, shown, state) "
    "VALUES (?, ?, 0, 0, 0, ?) ON CONFLICT (session_key, build) DO NOTHING"
)


def standing(connection: Any, build: int, session: str) -> Standing | None:
    """Return where the session stands, None if the log has none of that name."""
    row = connection.execute(_STANDING, (build, session.encode())).fetchone()
    if row is None:
        return None
    key, log_version, number, *rest = row
    if number is None:
        return Standing(key, log_version)
    version, turns, shown, state = rest
    going_on = _decoded(_decode_state, state)
    return Standing(key, log_version, number, version, turns, shown, going_on)


def _decoded(decode: Callable[[bytes], T], blob: bytes) -> T:
    """Return what was stored. Raise StorageFailed if nobody can have stored it so."""
    try:
        return decode(blob)
    except msgspec.MsgspecError as error:
        raise StorageFailed(
            f"what is stored of a projection can't be read ({error}); run `onrecord rebuild`"
        ) from error


def turn_id(number: int, place: int = 0) -> int:
    """Return the key of a stored turn: a session's turns lie together, in order."""
    return (number << PLACE_BITS) + place


def behind(connection: Any, build: int) -> list[tuple[str, int]]:
    """Return the sessions that have records which the build doesn't, and how many."""
    return [(name.decode(), n) for name, n in connection.execute(_BEHIND, (build,)).fetchall()]


def cut(connection: Any, there: Standing) -> Cut:
    """Return the latest place where a fold of the session may begin."""
    row = connection.execute(
        _CUT, (turn_id(there.number), turn_id(there.number, there.state.last))
    ).fetchone()
    if row is None or row[0] == 0:
        return Cut()
    place, first_version, generation = row
    return Cut(place, first_version - 1, there.state.tracked, generation)


def places(connection: Any, number: int, names: Iterable[str]) -> dict[str, int]:
    """Return the places of the names that were said."""
    by_digest = {digest(name): name for name in names}
    wanted = list(by_digest)
    found: dict[str, int] = {}
    for start in range(0, len(wanted), NAMES_AT_ONCE):
        part = wanted[start : start + NAMES_AT_ONCE]
        statement = (
            "SELECT name, place FROM projected_names WHERE number = ? "
            f"AND name IN ({','.join('?' * len(part))})"
        )
        for name, place in connection.execute(statement, (number, *part)).fetchall():
            found[by_digest[name]] = place
    return found


def soil(connection: Any, number: int, place: int) -> None:
    """Let no fold begin after a place (0 and below: nowhere but at the start)."""
    connection.execute(
        "UPDATE projected_turns SET clean = 0 WHERE id > ? AND id < ? AND clean = 1",
        (turn_id(number, max(place, 0)), turn_id(number + 1)),
    )


def begin(connection: Any, build: int, there: Standing) -> bool:
    """Enter a session into a build; tell whether nobody else did in the meantime."""
    connection.execute(_BEGIN, (build, there.key, _encode(State())))
    row = connection.execute(
        "SELECT number, version FROM projected_sessions WHERE session_key = ? AND build = ?",
        (there.key, build),
    ).fetchone()
    there.number = row[0]
    return bool(row[1] == 0)


def hold(connection: Any, there: Standing) -> bool:
    """Keep others from moving the session; tell whether it still stands where `there` says."""
    statement = "UPDATE projected_sessions SET version = version WHERE number = ? AND version = ?"
    return bool(connection.execute(statement, (there.number, there.version)).rowcount == 1)


def move(connection: Any, there: Standing) -> None:
    """Let the session, which is held, stand where `there` says."""
    connection.execute(
        "UPDATE projected_sessions SET version = ?, turns = ?, shown = ?, state = ? "
        "WHERE number = ?",
        (there.version, there.turns, there.shown, _encode(there.state), there.number),
    )


def hide_before(connection: Any, number: int, place: int) -> None:
    """Take the closed turns before a place out of the model's view: a summary stands for them."""
    connection.execute(
        "UPDATE projected_turns SET shown = 0 "
        "WHERE id >= ? AND id < ? AND closed = 1 AND shown = 1",
        (turn_id(number), turn_id(number, place)),
    )


def count_shown(connection: Any, there: Standing) -> None:
    """Note how many turns are shown, and which."""
    row = connection.execute(
        "SELECT count(*), coalesce(sum(place), 0) FROM projected_turns "
        "WHERE number = ? AND shown = 1",
        (there.number,),
    ).fetchone()
    there.shown, there.state.places = int(row[0]), int(row[1])


def store_turns(connection: Any, there: Standing, turns: Sequence[Turn]) -> None:
    """Store turns with their deliveries and findings, in the place of what was there of them."""
    number, rows = there.number, []
    for turn in turns:
        blob = _encode(turn.view.rows)
        closed = int(turn.view.facts.closed_at is not None)
        rows.append(
            (turn_id(number, turn.place), number, turn.place, turn.first_version, turn.generation,
             int(turn.clean), closed, int(turn.shown), len(turn.view.rows), blob,
             seal(there.key, turn.place, blob))
        )  # fmt: skip
    connection.executemany(_TURN, rows)
    for table, told in (
        ("projected_deliveries", [(turn, turn.deliveries) for turn in turns]),
        ("projected_findings", [(turn, turn.findings) for turn in turns]),
    ):
        new = [(turn_id(number, turn.place), _encode(some)) for turn, some in told if some]
        gone = [(turn_id(number, turn.place),) for turn, some in told if turn.stored and not some]
        if new:
            connection.executemany(_TOLD.format(table), new)
        if gone:
            connection.executemany(f"DELETE FROM {table} WHERE id = ?", gone)


def store_names(connection: Any, number: int, names: dict[str, int]) -> None:
    """Remember where names were said."""
    rows = [(number, digest(name), place) for name, place in names.items()]
    connection.executemany(_NAME, rows)


def seal(key: bytes, place: int, rows: bytes) -> bytes:
    """Return the digest of a turn's stored rows."""
    return sha256(key + place.to_bytes(8) + rows).digest()[:DIGEST_BYTES]


def turns(connection: Any, there: Standing, *, full: bool, last: int | None) -> list[StoredTurn]:
    """Return place, rows and digest of a session's turns, in order; of the last ones alone those
    that have `last` rows together. Raise Damaged if one is missing.
    """
    if last is not None:
        return _last_turns(connection, there, full=full, last=last)
    number = there.number
    of: tuple[int, ...] = (turn_id(number), turn_id(number + 1))
    where, order = "id >= ? AND id < ?", "id"
    if not full and there.shown < there.turns // 2:  # few: there is an index of them
        where, of, order = "number = ?", (number,), "place"
    if not full:
        where += " AND shown = 1"
    statement = f"SELECT place, rows, digest FROM projected_turns WHERE {where} ORDER BY {order}"
    found: list[StoredTurn] = connection.execute(statement, of).fetchall()
    counted = (len(found), sum(place for place, _, _ in found))
    whole = (there.turns, there.turns * (there.turns - 1) // 2)
    if counted != (whole if full else (there.shown, there.state.places)):
        raise Damaged("turns are missing from the store")
    return found


def _last_turns(connection: Any, there: Standing, *, full: bool, last: int) -> list[StoredTurn]:
    """Return the last turns; one after the other, so that a missing one is noticed."""
    statement = (
        "SELECT place, shown, size, digest, rows FROM projected_turns "
        "WHERE id >= ? AND id < ? ORDER BY id DESC"
    )
    of = (turn_id(there.number), turn_id(there.number + 1))
    wanted = there.turns if full else there.shown
    found: list[StoredTurn] = []
    size, expected = 0, there.turns
    cursor = connection.execute(statement, of)
    try:
        while size < last and len(found) < wanted:
            row = cursor.fetchone()
            expected -= 1
            if row is None or row[0] != expected:
                raise Damaged(f"turn {expected} is missing from the store")
            place, shown, rows_of_turn, sealed, rows = row
            if full or shown:
                found.append((place, rows, sealed))
                size += rows_of_turn
    finally:
        cursor.close()
    return found[::-1]


def all_turns(connection: Any, number: int) -> list[StoredTurn]:
    """Return whatever turns are stored of a session, in order."""
    found: list[StoredTurn] = connection.execute(
        "SELECT place, rows, digest FROM projected_turns WHERE id >= ? AND id < ? ORDER BY id",
        (turn_id(number), turn_id(number + 1)),
    ).fetchall()
    return found


def check_seals(connection: Any, there: Standing) -> None:
    """Raise Damaged unless all stored rows of a session are those that were stored."""
    statement = (
        "SELECT id, place, rows, digest FROM projected_turns WHERE id >= ? AND id < ? "
        "ORDER BY id LIMIT ?"
    )
    at, end, expected = turn_id(there.number), turn_id(there.number + 1), 0
    while True:
        some = connection.execute(statement, (at, end, TURNS_AT_ONCE)).fetchall()
        for at, place, blob, sealed in some:  # noqa: B007 - the last one is gone on from
            if place != expected or seal(there.key, place, blob) != sealed:
                raise Damaged(f"the stored rows of turn {expected} are missing or were changed")
            expected += 1
        if len(some) < TURNS_AT_ONCE:
            break
        at += 1
    if expected != there.turns:
        raise Damaged(f"the stored rows of turn {expected} are missing")


def shown_places(connection: Any, number: int) -> set[int]:
    """Return which of the stored turns the model is shown."""
    statement = "SELECT place FROM projected_turns WHERE number = ? AND shown = 1"
    return {int(row[0]) for row in connection.execute(statement, (number,)).fetchall()}


def within(
    connection: Any, build: int, session: str, run: Callable[[Any, Standing], T]
) -> tuple[Standing, T] | None:
    """Return where a session stands and what `run` finds, all at one moment; None if not stored."""
    connection.execute(connection.dialect.snapshot)
    try:
        there = standing(connection, build, session)
        if there is None or there.number == 0:
            return None
        return there, run(connection, there)
    finally:
        connection.execute("ROLLBACK")


def deliveries(connection: Any, number: int) -> list[DeliveryHistory]:
    """Return the deliveries of a session, by first attempt."""
    told = _told(connection, "projected_deliveries", number, _decode_deliveries)
    return sorted(told, key=lambda history: history.versions[0])


def deliveries_from(connection: Any, there: Standing, at: int) -> tuple[int, list[DeliveryHistory]]:
    """Return the deliveries of some turns from a key on, and from where to go on; none at the end.

    Raise StorageFailed if what is stored of the session was removed.
    """
    statement = (
        "SELECT id, told FROM projected_deliveries WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
    )
    of = (at, turn_id(there.number + 1), TURNS_AT_ONCE)
    rows = connection.execute(statement, of).fetchall()
    alive = "SELECT 1 FROM projected_sessions WHERE number = ?"
    if connection.execute(alive, (there.number,)).fetchone() is None:
        raise StorageFailed("the projections were made anew while they were read; do it again")
    told = [one for _, blob in rows for one in _decoded(_decode_deliveries, blob)]
    return rows[-1][0] + 1 if rows else at, told


def findings(connection: Any, number: int) -> list[Finding]:
    """Return the findings of a session, by turn."""
    return _told(connection, "projected_findings", number, _decode_findings)


def _told(connection: Any, table: str, number: int, decode: Callable[[bytes], list[T]]) -> list[T]:
    statement = f"SELECT told FROM {table} WHERE id >= ? AND id < ? ORDER BY id"
    rows = connection.execute(statement, (turn_id(number), turn_id(number + 1))).fetchall()
    return [one for row in rows for one in _decoded(decode, row[0])]


def drop_session(connection: Any, number: int) -> None:
    """Remove what is stored of a session in a build."""
    of = (turn_id(number), turn_id(number + 1))
    for table in ("turns", "deliveries", "findings"):
        connection.execute(f"DELETE FROM projected_{table} WHERE id >= ? AND id < ?", of)
    for table in ("names", "sessions"):
        connection.execute(f"DELETE FROM projected_{table} WHERE number = ?", (number,))
