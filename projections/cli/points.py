"""Points in a session, as the command line says them: a version, or a time in UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

from onrecord.projections.cli.command import fail
from onrecord.projections.telling import time_of
from onrecord.transcript.log import TranscriptLog

Point: TypeAlias = int | datetime

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[ Tt]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?\s*(Z|z|UTC|[+-]\d\d:?\d\d)?"
)


def point_of(text: str, option: str) -> Point:
    """Return the point that a word of the command line means; leave with one line if it means none.

    A time without a zone is UTC, as all times that the command shows.
    """
    words = text.strip()
    if words.isascii() and words.isdecimal():
        return int(words)
    if _TIME.fullmatch(words) is None:
        fail(
            f"{option} takes a version, such as 12, or a time, such as 2026-11-30T10:00:00Z or "
            f"'2026-11-30 10:00' (UTC), not {text!r}"
        )
    try:
        moment = datetime.fromisoformat(words.upper().removesuffix("UTC").strip().replace(",", "."))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        fail(f"{option} {text!r}: there is no such time ({error})")


def told(point: Point) -> str:
    """Return a point as a page says it."""
    if isinstance(point, int):
        return f"version {point}"
    shown = point.isoformat(sep=" ", timespec="auto").removesuffix("+00:00")
    return f"{shown} UTC"


def version_at(log: TranscriptLog, session: str, point: Point, option: str) -> int:
    """Return the version that a session had at a point; leave with one line if it never had it."""
    if isinstance(point, datetime):
        return _first(log, session, lambda at: at > point) - 1
    if point > (newest := log.version(session)):
        fail(f"{option} {point}: session {session!r} has no such version; its newest is {newest}")
    return point


def version_from(log: TranscriptLog, session: str, point: Point, option: str) -> int:
    """Return the version of the first event at a point or after it."""
    if isinstance(point, datetime):
        return _first(log, session, lambda at: at >= point)
    return version_at(log, session, point, option)


def _first(log: TranscriptLog, session: str, is_after: Callable[[datetime], bool]) -> int:
    """Return the version of the first event that happened after a time, else the one to come."""
    version = 0
    for recorded in log.read(session):
        at = time_of(recorded)
        if at is not None and is_after(at):
            return recorded.version
        version = recorded.version
    return version + 1
