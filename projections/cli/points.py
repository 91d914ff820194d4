"""Points in a session, as the command line says them: a version, or a time in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TypeAlias

from onrecord.projections.cli.command import fail
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


def check_point(log: TranscriptLog, session: str, point: Point, option: str) -> None:
    """Leave with one line if the session never had that version."""
    if isinstance(point, int) and point > (newest := log.version(session)):
        fail(f"{option} {point}: session {session!r} has no such version; its newest is {newest}")
