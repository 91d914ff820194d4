"""The builds of stored projections: one is live, another may be made beside it."""

from __future__ import annotations

from typing import Any

from onrecord.transcript.storage.journal import now


def is_there(connection: Any, build: int) -> bool:
    """Tell whether a build wasn't replaced by another yet."""
    statement = "SELECT 1 FROM projection_builds WHERE build = ?"
    return connection.execute(statement, (build,)).fetchone() is not None


def live_build(connection: Any, code: int) -> int:
    """Return the live build that was made with these rules, 0 without one."""
    row = connection.execute(
        "SELECT coalesce(max(build), 0) FROM projection_builds WHERE code = ? AND live = 1", (code,)
    ).fetchone()
    return int(row[0])


def first_build(connection: Any, code: int) -> int:
    """Return the live build of these rules; make one where there is none. Only one does at a time."""
    if connection.dialect.in_turn:
        connection.execute(connection.dialect.in_turn, ("projection_builds",))
    return live_build(connection, code) or new_build(connection, code, live=True)


def new_build(connection: Any, code: int, *, live: bool) -> int:
    """Enter a build and return its number."""
    row = connection.execute(
        "INSERT INTO projection_builds (code, live, started_at) VALUES (?, ?, ?) RETURNING build",
        (code, int(live), now()),
    ).fetchone()
    return int(row[0])


def others(connection: Any, build: int, code: int) -> list[int]:
    """Return the builds that a build stands for: earlier ones, of these rules and of older ones."""
    statement = "SELECT build FROM projection_builds WHERE build < ? AND code <= ?"
    return [int(row[0]) for row in connection.execute(statement, (build, code)).fetchall()]


def set_live(connection: Any, build: int) -> bool:
    """Let a build be the one that is read; tell whether no later one took its place already."""
    statement = "UPDATE projection_builds SET live = 1 WHERE build = ?"
    return bool(connection.execute(statement, (build,)).rowcount == 1)


def numbers_of(connection: Any, build: int, limit: int) -> list[int]:
    """Return some sessions of a build."""
    statement = "SELECT number FROM projected_sessions WHERE build = ? LIMIT ?"
    return [int(row[0]) for row in connection.execute(statement, (build, limit)).fetchall()]


def drop_build(connection: Any, build: int) -> None:
    """Remove an empty build."""
    connection.execute("DELETE FROM projection_builds WHERE build = ?", (build,))
