"""What a source says, in batches that are ready to be appended. Nothing here touches a log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from onrecord.transcript.append import Draft, imported
from onrecord.transcript.codec import ID_LIMIT
from onrecord.transcript.errors import BadEvent, ImportRefused
from onrecord.transcript.events import Event, SourceFaultFound
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.source import Importer
from onrecord.transcript.mending import storable

BATCH = 20_000
"""Events that are appended at once: ids are random, and each commit writes the pages of the index that
they fall on."""
BATCH_BYTES = 16 << 20
"""Bytes of payloads that are appended at once."""


class Batch(msgspec.Struct):
    """Drafts by session; what was read since the batch before; `total`: messages in the source."""

    drafts: dict[str, list[Draft]] = {}
    sessions: list[str] = []
    messages: int = 0
    faults: dict[str, int] = {}
    total: int | None = None


def batches(importer: Importer, path: Path, text_limit: int) -> Iterator[Batch]:
    """Iterate over what a source says. Raise ImportRefused, and Changed at the end."""
    try:
        yield from _batches(importer, path, text_limit)
    except OSError as error:
        raise ImportRefused(
            f"can't read {error.filename or path}: {error.strerror or error}; check that it is a file "
            "that may be read, and import it again: what was read so far stays",
            file=str(path), line=0, expected="a file that may be read",
        ) from error  # fmt: skip


def _batches(importer: Importer, path: Path, text_limit: int) -> Iterator[Batch]:
    with importer.open_source(path) as source:
        preparing = Preparing(text_limit)
        batch, count, size = Batch(total=source.total), 0, 0
        for name, entries in source.sessions():
            session = session_named(name)
            batch.sessions.append(session)
            for event, at, messages in entries:
                batch.messages += messages
                draft = preparing.draft(batch, session, event, at)
                batch.drafts.setdefault(session, []).append(draft)
                count += 1
                size += len(draft.payload)
                if count >= BATCH or size >= BATCH_BYTES:
                    yield batch
                    batch, count, size = Batch(total=source.total), 0, 0
        yield batch


def session_named(name: str) -> str:
    """Return the session for a source's name: the same, unless the log has no place for it."""
    name = storable(name)
    if len(name) <= ID_LIMIT:
        return name or "unnamed"
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{name[: ID_LIMIT - len(digest) - 1]}…{digest}"


class Preparing:
    """Makes events storable; one that can't be is a fault of its source."""

    def __init__(self, text_limit: int) -> None:
        self._limit = text_limit
        self._now = datetime.now(UTC)

    def draft(self, batch: Batch, session: str, event: Event, at: int | None) -> Draft:
        """Return an event's draft."""
        if isinstance(event, SourceFaultFound):
            _count(batch, event.code)
        try:
            return self._draft(session, event, at)
        except BadEvent as error:
            _count(batch, codes.UNREADABLE)
            return self._draft(session, fault_of(event, codes.UNREADABLE, str(error)), at)

    def refused(self, session: str, draft: Draft, why: str) -> Draft:
        """Return the draft of the fault that stands for an event which the log refused."""
        fault = fault_of(draft.event, codes.CONFLICTING, why)
        return self._draft(session, fault, draft.recorded_at)

    def _draft(self, session: str, event: Event, at: int | None) -> Draft:
        event = msgspec.structs.replace(event, imported_at=self._now)
        return imported(session, event, self._limit, at)


def _count(batch: Batch, code: str) -> None:
    batch.faults[code] = batch.faults.get(code, 0) + 1


def fault_of(event: Event, code: str, detail: str) -> SourceFaultFound:
    """Return the fault that an event is which can't be appended."""
    return SourceFaultFound(
        code=code, place=f"{event.imported_from}, as {event.type}", detail=detail,
        writer=event.writer, imported_from=event.imported_from,
    )  # fmt: skip
