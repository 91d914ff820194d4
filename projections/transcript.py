"""The transcript of a session, built from its log and held against the promise."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

import msgspec

from onrecord.projections.conversation import Conversation
from onrecord.projections.promise import check_reading
from onrecord.projections.promised import Reading
from onrecord.projections.rows import Row
from onrecord.transcript.recorded import Recorded


class Readable(Protocol):
    """What a transcript is built from: a log, or anything that reads like one."""

    def read(self, session: str, *, after: int = 0) -> Iterable[Recorded]:
        """Return a session's records with versions above `after`, in order."""
        ...


class Transcript(msgspec.Struct, frozen=True):
    """The rows of a session as of `version` (0: nothing was said yet)."""

    session: str
    version: int
    rows: list[Row]


def build(
    log: Readable, session: str, *, at: int | datetime | None = None, full: bool = False
) -> Transcript:
    """Build a session's transcript, as the model is to see it.

    `at`: as it stood at that version or time. `full`: with what compaction and rewind took out of
    the model's view. Raises DeliveredNotProjected when a delivered text isn't in the rows.
    """
    transcript, _ = build_checked(session, log.read(session), at=at, full=full)
    return transcript


def build_checked(
    session: str,
    records: Iterable[Recorded],
    *,
    at: int | datetime | None = None,
    full: bool = False,
) -> tuple[Transcript, Reading]:
    """Build from records in one pass; return the promise's own reading of them too."""
    conversation, reading = folded(records, at=at)
    rows = conversation.rows(full=full)
    check_reading(session, reading, rows, full=full)
    return Transcript(session, conversation.version, rows), reading


def folded(
    records: Iterable[Recorded], *, at: int | datetime | None = None
) -> tuple[Conversation, Reading]:
    """Return the fold of records, and the promise's own reading of them, made in one pass."""
    conversation, reading = Conversation(), Reading()
    for recorded in records:
        if _is_after(recorded, at):
            break
        conversation.apply(recorded)
        reading.take(recorded)
    return conversation, reading


def _is_after(recorded: Recorded, at: int | datetime | None) -> bool:
    if at is None:
        return False
    return recorded.version > at if isinstance(at, int) else recorded.recorded_at > at
