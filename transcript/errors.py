"""What can go wrong, as types.

    OnRecordError
    ├── BadEvent                 the event as given can't be stored
    │   ├── EventTooLarge
    │   └── OffsetMismatch       a part that doesn't follow on what its attempt holds
    ├── AppendRefused            the log holds something that speaks against it
    │   ├── KeyConflict
    │   ├── WrongExpectedVersion
    │   ├── LeaseLost
    │   └── LeaseHeld
    ├── StorageError             the storage didn't do it
    │   ├── StorageBusy
    │   ├── StorageFull
    │   ├── StorageFailed
    │   │   └── RecordDamaged    a stored record can't be read back
    │   └── AppendInDoubt
    ├── NotALog                  the file or database isn't ours; it was left untouched
    ├── SchemaVersionMismatch
    ├── ImportRefused            a line of an interchange file can't be taken
    ├── DeliveredNotProjected    the promise is broken (raised by onrecord.projections.promise)
    └── RecordsSetAside          nobody can tell (raised by onrecord.projections.stored)

Each error answers three questions: `stored` (yes, no, unknown: is the event in the log?), `may_send`
(may the text go out now?) and `may_retry` (may the same append, with the same ids, be tried again?).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

Stored = Literal["yes", "no", "unknown"]


class OnRecordError(Exception):
    """The root of all errors of onrecord. Facts are attributes; the message says how to mend it."""

    stored: Stored = "no"
    may_send: bool = False
    may_retry: bool = False

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)


class BadEvent(OnRecordError, ValueError):
    """The event as given can't be stored; the message names the field."""


class EventTooLarge(BadEvent):
    """An outgoing text, or an event as a whole, is over the limit. Facts: field, size, limit (bytes)."""

    field: str
    size: int
    limit: int


class OffsetMismatch(BadEvent):
    """A part doesn't follow on. Facts: delivery, attempt, offset, expected (code points)."""

    delivery: str
    attempt: int
    offset: int
    expected: int


class AppendRefused(OnRecordError):
    """The log holds something that speaks against the append; nothing of it was written."""


class KeyConflict(AppendRefused):
    """The id is taken by a record of other content. Facts: session, id, existing, given (events)."""

    session: str
    id: UUID


class WrongExpectedVersion(AppendRefused):
    """The session moved on. Facts: session, expected, actual."""

    session: str
    expected: int
    actual: int


class LeaseLost(AppendRefused):
    """Another process holds the session: don't send, don't retry. Facts: session, generation, holder."""

    session: str
    generation: int


class LeaseHeld(AppendRefused):
    """Another process holds the session. Facts: session, holder, expires_at."""

    session: str
    holder: str
    expires_at: datetime
    may_retry = True


class StorageError(OnRecordError):
    """The storage didn't do what was asked."""


class StorageBusy(StorageError):
    """Another process held the write lock past the deadline. Facts: waited (seconds)."""

    may_retry = True
    waited: float


class StorageFull(StorageError):
    """No space is left; nothing was stored. Make room, then try again."""

    may_retry = True


class StorageFailed(StorageError):
    """A read or a write failed, and nothing was stored.

    `may_retry` is False where the same would fail again: the log is closed, something isn't installed.
    """

    may_retry = True


class RecordDamaged(StorageFailed):
    """A stored record can't be read back; `onrecord verify` tells which."""


class AppendInDoubt(StorageError):
    """The append may or may not be stored and the storage can't be asked. Facts: session, ids.

    Don't send; try the same events again once the storage is back: what is there is found by its id.
    """

    stored: Stored = "unknown"
    may_retry = True


class NotALog(OnRecordError):
    """The file or database is something else; it was left untouched. Facts: where."""


class SchemaVersionMismatch(OnRecordError):
    """The log was written by another version of onrecord. Facts: found, supported."""

    found: int
    supported: int


class ImportRefused(OnRecordError, ValueError):
    """A line can't be taken. Facts: file, line (from 1), expected."""

    file: str
    line: int
