"""The statements of the search index: what isn't in it yet, writing a session's rows, finding them.

The rows are those of the stored projections: a turn has the same key here as there, and was indexed if
its digest is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from onrecord.transcript.storage.word_tables import take_turns

GRAM = 3
"""Characters of a gram; a shorter word is looked for in each row."""
GRAMS_ASKED = 32
"""Grams of a word that are asked for: the text is looked at itself besides."""
GRAMS_LIMIT = 80_000
"""Different grams that a tsvector takes for sure: 1 MB, at 12 bytes each."""
VERSIONS_AT_ONCE = 500
"""Versions that one statement looks for."""
_PLACE_BITS = 32
_BETWEEN = "turn >= ? AND turn < ?"

# Erased since it was indexed: nothing of such a session is found until it is indexed again.
_NOT_ERASED = (
    "NOT EXISTS (SELECT 1 FROM records e WHERE e.session_key = s.session_key "
    "AND e.version > i.version AND e.type = 'ContentErased')"
)
_HERE = (
    "FROM sessions s LEFT JOIN projected_sessions p ON p.session_key = s.session_key "
    "AND p.build = ? LEFT JOIN onrecord_search_sessions i ON i.number = p.number WHERE s.name IS NOT NULL"
)


class Place(NamedTuple):
    """Where a session stands in the stored projections (`number`, `version`), and whether something of
    it was `erased` since it was indexed.
    """

    key: bytes
    number: int
    version: int
    erased: bool


class Entry(NamedTuple):
    """A row of a turn: which one, whose, when it was recorded (µs since 1970 UTC), what it says."""

    n: int
    role: str
    at: int
    folded: str


class Turn(NamedTuple):
    """A stored turn as it is indexed."""

    id: int
    digest: bytes
    entries: list[Entry]


def behind(connection: Any, build: int, session: str | None) -> list[tuple[str, int]]:
    """Return the sessions that aren't indexed as far as they go, and how many records they lack."""
    statement = (
        f"SELECT s.name, s.version - coalesce(i.version, 0) {_HERE} "
        "AND s.version > 0 AND s.version <> coalesce(i.version, 0)"
    )
    of: tuple[Any, ...] = (build,)
    if session is not None:
        statement, of = f"{statement} AND s.name = ?", (build, session.encode())
    return [
        (name.decode(), max(count, 0))
        for name, count in connection.execute(f"{statement} ORDER BY s.started_at", of).fetchall()
    ]


def place(connection: Any, build: int, session: str) -> Place | None:
    """Return where a session stands, None if it isn't stored in this build."""
    row = connection.execute(
        f"SELECT s.session_key, p.number, p.version, NOT ({_NOT_ERASED}) {_HERE} "
        "AND p.number IS NOT NULL AND s.name = ?",
        (build, session.encode()),
    ).fetchone()
    if row is None:
        return None
    key, number, version, erased = row
    return Place(key, number, version, bool(erased))


def changed(connection: Any, number: int, after: int, limit: int) -> list[tuple[int, bytes, bytes]]:
    """Return key, rows and digest of a session's turns after a key that aren't indexed as they are."""
    found: list[tuple[int, bytes, bytes]] = connection.execute(
        "SELECT p.id, p.rows, p.digest FROM projected_turns p "
        "LEFT JOIN onrecord_search_turns t ON t.id = p.id WHERE p.id > ? AND p.id < ? "
        "AND (t.digest IS NULL OR t.digest <> p.digest) ORDER BY p.id LIMIT ?",
        (after, (number + 1) << _PLACE_BITS, limit),
    ).fetchall()
    return found


def times(connection: Any, key: bytes, versions: Sequence[int]) -> dict[int, int]:
    """Return when records of a session were recorded, by version."""
    found: dict[int, int] = {}
    for start in range(0, len(versions), VERSIONS_AT_ONCE):
        some = versions[start : start + VERSIONS_AT_ONCE]
        statement = (
            "SELECT version, recorded_at FROM records WHERE session_key = ? "
            f"AND version IN ({', '.join('?' * len(some))})"
        )
        found.update(connection.execute(statement, (key, *some)).fetchall())
    return found


def store(connection: Any, number: int, turns: Sequence[Turn], version: int) -> None:
    """Index turns of a session in the place of what was indexed of them.

    `version`: up to which the session is indexed then; 0: it isn't yet.
    """
    take_turns(connection)
    change = -_remove(connection, *_among([turn.id for turn in turns])) if turns else 0
    if turns:
        change += _insert(connection, turns)
        connection.executemany(
            "INSERT INTO onrecord_search_turns (id, digest) VALUES (?, ?) "
            "ON CONFLICT (id) DO UPDATE SET digest = excluded.digest",
            [(turn.id, turn.digest) for turn in turns],
        )
    _advance(connection, number, version, change)


def _advance(connection: Any, number: int, version: int, change: int) -> None:
    connection.execute(
        "INSERT INTO onrecord_search_sessions (number, version, size) VALUES (?, ?, ?) ON CONFLICT (number) "
        "DO UPDATE SET version = excluded.version, size = onrecord_search_sessions.size + excluded.size",
        (number, version, change),
    )


def set_unmerged(connection: Any) -> None:
    """Remember that what was removed has to leave the index's pages, too."""
    connection.execute("UPDATE onrecord_search_index SET unmerged = 1")


def is_unmerged(connection: Any) -> bool:
    """Tell whether something that was removed may still stand in the index's pages."""
    return bool(connection.execute("SELECT unmerged FROM onrecord_search_index").fetchone()[0])


def strays(connection: Any, build: int) -> list[int]:
    """Return the sessions in the index that a build hasn't, or that have no name any more."""
    statement = (
        "SELECT i.number FROM onrecord_search_sessions i WHERE NOT EXISTS ("
        "SELECT 1 FROM projected_sessions p JOIN sessions s ON s.session_key = p.session_key "
        "WHERE p.number = i.number AND p.build = ? AND s.name IS NOT NULL)"
    )
    return [int(row[0]) for row in connection.execute(statement, (build,)).fetchall()]


def remove_some(connection: Any, number: int, limit: int) -> bool:
    """Remove a part of what is indexed of a session; return whether there is more of it."""
    take_turns(connection)
    first = number << _PLACE_BITS
    row = connection.execute(
        "SELECT max(id) FROM (SELECT id FROM onrecord_search_turns WHERE id >= ? AND id < ? "
        "ORDER BY id LIMIT ?) AS portion",
        (first, (number + 1) << _PLACE_BITS, limit),
    ).fetchone()
    set_unmerged(connection)
    if row[0] is None:
        connection.execute("DELETE FROM onrecord_search_sessions WHERE number = ?", (number,))
        return False
    gone = _remove(connection, _BETWEEN, (first, row[0] + 1))
    connection.execute(
        "DELETE FROM onrecord_search_turns WHERE id >= ? AND id <= ?", (first, row[0])
    )
    _advance(connection, number, 0, -gone)
    return True


def _remove(connection: Any, which: str, of: Sequence[int]) -> int:
    """Remove the rows of some turns; return how many there were."""
    if connection.dialect.name == "sqlite":
        # FTS5 writes all it has at each statement that changes it, so none is said in vain.
        any_there = f"SELECT 1 FROM onrecord_search_rows WHERE {which} LIMIT 1"
        if connection.execute(any_there, of).fetchone() is None:
            return 0
        # No triggers: where the schema isn't trusted, older versions let none write to FTS5.
        connection.execute(
            "INSERT INTO onrecord_search_words (onrecord_search_words, rowid, folded) "
            f"SELECT 'delete', id, folded FROM onrecord_search_rows WHERE {which}",
            of,
        )
    return int(connection.execute(f"DELETE FROM onrecord_search_rows WHERE {which}", of).rowcount)


def _insert(connection: Any, turns: Sequence[Turn]) -> int:
    """Add the rows of turns; return how many there are."""
    entries = [(turn.id, entry) for turn in turns for entry in turn.entries]
    if connection.dialect.name == "sqlite":
        connection.executemany(
            "INSERT INTO onrecord_search_rows (turn, n, role, at, folded) VALUES (?, ?, ?, ?, ?)",
            [(id, *entry) for id, entry in entries],
        )
        which, of = _among([turn.id for turn in turns])
        connection.execute(
            "INSERT INTO onrecord_search_words (rowid, folded) "
            f"SELECT id, folded FROM onrecord_search_rows WHERE {which}",
            of,
        )
    else:
        connection.executemany(
            "INSERT INTO onrecord_search_rows (turn, n, role, at, folded, grams) "
            "VALUES (?, ?, ?, ?, ?, array_to_tsvector(?::text[]))",
            [(id, *entry, _lexemes(entry.folded)) for id, entry in entries],
        )
    return len(entries)


def _among(ids: Sequence[int]) -> tuple[str, Sequence[int]]:
    return f"turn IN ({', '.join('?' * len(ids))})", ids


# --- finding -------------------------------------------------------------------------------------


def find(
    connection: Any,
    build: int,
    words: Sequence[str],
    *,
    session: str | None,
    role: str | None,
    since: int | None,
    limit: int,
) -> list[tuple[str, bytes, int, int, int]]:
    """Return session, its key, turn, number and time (µs) of rows with all words, the newest first."""
    conditions = [_NOT_ERASED, "s.name IS NOT NULL"]
    of: list[str | bytes | int] = [build]
    for condition, value in (
        *_conditions(words, connection.dialect.name),
        ("s.name = ?", None if session is None else session.encode()),
        ("r.role = ?", role),
        ("r.at >= ?", since),
    ):
        if value is not None:
            conditions.append(condition)
            of.append(value)
    found: list[tuple[bytes, bytes, int, int, int]] = connection.execute(
        "SELECT s.name, s.session_key, r.turn, r.n, r.at FROM onrecord_search_rows r "
        f"JOIN projected_sessions p ON p.number = (r.turn >> {_PLACE_BITS}) AND p.build = ? "
        "JOIN sessions s ON s.session_key = p.session_key "
        "JOIN onrecord_search_sessions i ON i.number = p.number "
        f"WHERE {' AND '.join(conditions)} ORDER BY r.at DESC, r.turn DESC, r.n DESC LIMIT ?",
        (*of, limit),
    ).fetchall()
    return [(name.decode(), key, turn, n, at) for name, key, turn, n, at in found]


def turn(connection: Any, id: int) -> tuple[bytes, bytes, bool] | None:
    """Return a stored turn: its rows, their digest, and whether the model is shown them."""
    row = connection.execute(
        "SELECT rows, digest, shown FROM projected_turns WHERE id = ?", (id,)
    ).fetchone()
    return None if row is None else (row[0], row[1], bool(row[2]))


def _conditions(words: Sequence[str], dialect: str) -> list[tuple[str, str | None]]:
    asked = sorted({gram for word in words for gram in grams(word)[:GRAMS_ASKED]})
    if dialect == "sqlite":
        among = (
            "r.id IN (SELECT rowid FROM onrecord_search_words WHERE onrecord_search_words MATCH ?)"
        )
        quoted = ['"' + gram.replace('"', '""') + '"' for gram in asked]
        told, holds = " AND ".join(quoted), "instr(r.folded, ?) > 0"
    else:
        among = "(r.grams @@ ?::tsquery OR r.grams IS NULL)"
        quoted = ["'" + gram.replace("\\", "\\\\").replace("'", "''") + "'" for gram in asked]
        told, holds = " & ".join(quoted), "strpos(r.folded, ?) > 0"
    return [(among, told or None), *((holds, word) for word in words)]


def grams(folded: str) -> list[str]:
    """Return the grams of a text, each where it begins."""
    return [folded[at : at + GRAM] for at in range(len(folded) - GRAM + 1)]


def _lexemes(folded: str) -> list[str] | None:
    found = set(grams(folded))
    return sorted(found) if len(found) <= GRAMS_LIMIT else None
