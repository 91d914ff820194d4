"""From a file to the log: find its format, read it, append what is new."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import cast

import msgspec

from onrecord.transcript import codec
from onrecord.transcript.append import Draft
from onrecord.transcript.errors import AppendRefused, BadEvent, ImportRefused
from onrecord.transcript.events import Event, SourceFaultFound
from onrecord.transcript.importers.foreign import Changed
from onrecord.transcript.importers.source import HEAD, Importer
from onrecord.transcript.log import TranscriptLog

FORMATS: tuple[str, ...] = ()
"""Modules of formats, in the order in which a file is offered to them."""
BATCH = 5_000
"""Events that are appended at once."""
TRIES = 3
"""How often a source is read that changes while it is read."""

Told = Callable[[int, int | None], object]
"""Takes the messages read so far, and how many there are if that is known."""


@dataclass
class Imported:
    """What an import did: events `added` and `known` already, messages read, faults by code."""

    format: str
    added: int = 0
    known: int = 0
    messages: int = 0
    sessions: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)


def names() -> list[str]:
    """Return the names of the formats, as `--format` takes them."""
    return [module.replace("_", "-") for module in FORMATS]


def importer_of(path: Path, name: str | None = None) -> Importer | None:
    """Return the importer of a format, or of what the file looks like; None for JSON lines of ours."""
    if name is not None:
        return _module(name.replace("-", "_"))
    head = b""
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(HEAD)
    return next((found for m in FORMATS if (found := _module(m)).looks_right(path, head)), None)


def _module(name: str) -> Importer:
    return cast("Importer", import_module(f"onrecord.transcript.importers.{name}"))


def import_source(
    log: TranscriptLog, importer: Importer, path: Path, told: Told | None = None
) -> Imported:
    """Append what a source says and the log doesn't have yet; each batch is one transaction.

    Raise ImportRefused if the source can't be read at all, StorageError.
    """
    for tries in range(1, TRIES + 1):
        done = Imported(importer.FORMAT)
        with contextlib.suppress(Changed):
            _read(log, importer, path, done, told or (lambda *_: None))
            return done
        if tries == TRIES:
            break
    raise ImportRefused(
        f"{path} was written to while it was read, {TRIES} times; try again, or import a copy",
        file=str(path), line=0, expected="a file that holds still",
    )  # fmt: skip


def _read(log: TranscriptLog, importer: Importer, path: Path, done: Imported, told: Told) -> None:
    with importer.open_source(path) as source:
        batch = _Batch(log, done)
        for session, entries in source.sessions():
            done.sessions.append(session)
            for event, at, count in entries:
                done.messages += count
                if batch.add(session, event, at):
                    told(done.messages, source.total)
        batch.write()
        told(done.messages, source.total)


class _Batch:
    """Drafts of one or several sessions that wait for their transaction."""

    def __init__(self, log: TranscriptLog, done: Imported) -> None:
        self._log = log
        self._done = done
        self._now = datetime.now(UTC)
        self._drafts: dict[str, list[Draft]] = {}
        self._size = 0

    def add(self, session: str, event: Event, at: int | None) -> bool:
        """Take an event; write what waits if it is a batch. Return whether it was written."""
        if isinstance(event, SourceFaultFound):
            self._done.faults[event.code] += 1
        try:
            draft = self._draft(event, at)
        except BadEvent as error:
            draft = self._draft(self._fault(event, "unreadable-in-source", str(error)), at)
        self._drafts.setdefault(session, []).append(draft)
        self._size += 1
        if self._size < BATCH:
            return False
        self.write()
        return True

    def _draft(self, event: Event, at: int | None) -> Draft:
        event = msgspec.structs.replace(event, imported_at=self._now)
        prepared, payload = codec.prepare(event, self._log.text_limit)
        return Draft(prepared, payload, at)

    def _fault(self, event: Event, code: str, detail: str) -> SourceFaultFound:
        self._done.faults[code] += 1
        place = f"{event.imported_from}, as {event.type}"
        return SourceFaultFound(code=code, place=place, detail=detail, writer=event.writer,
                                imported_from=event.imported_from)  # fmt: skip

    def write(self) -> None:
        """Append what waits."""
        waiting, self._drafts, self._size = self._drafts, {}, 0
        for session, drafts in waiting.items():
            try:
                new = self._log.append_drafts(session, drafts).new
            except AppendRefused:
                new = sum(self._alone(session, draft) for draft in drafts)
            self._done.added += new
            self._done.known += len(drafts) - new

    def _alone(self, session: str, draft: Draft) -> int:
        """Append one event; what the log refuses is a fault of the source."""
        try:
            return self._log.append_drafts(session, [draft]).new
        except AppendRefused as error:
            fault = self._fault(draft.event, "conflicting-record", str(error))
            return self._log.append_drafts(session, [self._draft(fault, draft.recorded_at)]).new
