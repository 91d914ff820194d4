"""The statements of a verification: rows as they are, nothing decoded."""

from __future__ import annotations

from typing import Any

from onrecord.transcript.storage.dialect import per_dialect

BATCH = 200
"""Records that one read fetches."""

# Also records whose session's row is gone.
_SESSIONS = per_dialect(
    lambda say: (
        "SELECT k.session_key, s.name, coalesce(s.version, 0), "
        f"coalesce(s.chain, {say.blank_chain}) FROM "
        "(SELECT session_key FROM sessions WHERE version > 0 UNION SELECT session_key FROM records) k "
        "LEFT JOIN sessions s ON s.session_key = k.session_key ORDER BY s.started_at, s.name"
    )
)
_RECORDS = (
    "SELECT r.position, r.version, r.id, r.type, r.event_version, r.recorded_at, r.generation, "
    "r.commitment, r.leaf, r.chain, r.salt, r.payload, e.erased_by FROM records r "
    "LEFT JOIN erasures e ON e.position = r.position "
    "WHERE r.session_key = ? AND r.version > ? ORDER BY r.version LIMIT ?"
)


def sessions(connection: Any) -> list[tuple[bytes, bytes | None, int, bytes]]:
    """Return key, name, version and chain of all sessions."""
    found: list[tuple[bytes, bytes | None, int, bytes]] = connection.execute(
        _SESSIONS(connection.dialect)
    ).fetchall()
    return found


def records(connection: Any, key: bytes, after: int) -> list[tuple[Any, ...]]:
    """Return a session's records after a version, with their evidence."""
    found: list[tuple[Any, ...]] = connection.execute(_RECORDS, (key, after, BATCH)).fetchall()
    return found
