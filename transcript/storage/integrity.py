"""What SQLite itself finds wrong in the tables and indexes of a file."""

from __future__ import annotations

from typing import Any

from onrecord.transcript.storage import dbapi

DAMAGE_SHOWN = 20
"""Faults that SQLite names at most."""
_ERROR = 1
_ORDINARY = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' "
    "ORDER BY name"
)


def damage(connection: Any) -> list[str]:
    """Return the faults in SQLite's words. Raise the driver's errors."""
    try:
        found = _check(connection, str(DAMAGE_SHOWN))
    except dbapi.Error as error:
        if dbapi.code(error) != _ERROR and "vtable constructor failed" not in str(error):
            raise
        # A virtual table that can't be opened ends the check of the whole file: the search index is
        # one, and no part of the log.
        names = [row[0] for row in connection.execute(_ORDINARY).fetchall()]
        found = [f"onrecord_search_words: {error}"]
        found += [line for name in names for line in _check(connection, f"'{name}'")]
    return [_hinted(line) for line in found[:DAMAGE_SHOWN]]


def _check(connection: Any, of: str) -> list[str]:
    found = [row[0] for row in connection.execute(f"PRAGMA integrity_check({of})").fetchall()]
    return [] if found == ["ok"] else found


def _hinted(line: str) -> str:
    anew = "; `onrecord search --rebuild` makes the search index anew"
    return line + anew if "onrecord_search_" in line else line
