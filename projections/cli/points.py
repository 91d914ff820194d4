"""Points in a session, as the command line says them: a version, or a time in UTC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, TypeAlias

import typer

from onrecord.projections.cli.command import fail
from onrecord.projections.cli.times import moment
from onrecord.projections.telling import time_of
from onrecord.transcript.log import TranscriptLog

Point: TypeAlias = int | datetime

POINT = "VERSION|TIME"
At = Annotated[str | None, typer.Option(metavar=POINT, help="As it stood then; a time is UTC.")]

DIGITS = 18
"""Digits that a version may have: more are none that a database can hold."""


def point_of(text: str, option: str) -> Point:
    """Return the point that a word of the command line means; leave with one line if it means none."""
    words = text.strip()
    if words.isascii() and words.isdecimal() and len(words) <= DIGITS:
        return int(words)
    return moment(option, text, also="a version (12), ")


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
