"""From a file to the log: find its format, read it, append what is new."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from onrecord.transcript.append import Draft
from onrecord.transcript.bulk import uncollected
from onrecord.transcript.errors import AppendRefused, ImportRefused
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.ahead import batches_ahead, importer_named
from onrecord.transcript.importers.batches import Batch, Preparing, batches
from onrecord.transcript.importers.foreign import Changed
from onrecord.transcript.importers.source import FORMATS, HEAD, Importer
from onrecord.transcript.log import TranscriptLog

TRIES = 3
"""How often a source is read that changes while it is read."""
LARGE = 32 << 20
"""Bytes from which on a file is read in a process of its own."""

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


def importer_of(path: Path, name: str | None = None) -> Importer | None:
    """Return the importer of a format, or of what the file looks like; None for one that is unknown."""
    if name is not None:
        return importer_named(name)
    head = b""
    if not path.is_dir():
        with path.open("rb") as file:
            head = file.read(HEAD)
    return next((i for i in map(importer_named, FORMATS) if i.looks_right(path, head)), None)


def check_source(importer: Importer, path: Path) -> None:
    """Read how a source begins, and append nothing. Raise ImportRefused if it can't be read."""
    with contextlib.suppress(Changed), importer.open_source(path) as source:
        for _, entries in source.sessions():
            next(entries, None)
            return


def import_source(
    log: TranscriptLog, importer: Importer, path: Path, told: Told | None = None
) -> Imported:
    """Append what a source says and the log doesn't have yet; each batch is one transaction.

    A large file is read in a process of its own. Raise ImportRefused if the source can't be read,
    StorageError.
    """
    read = batches_ahead if _is_large(path) and (os.cpu_count() or 1) > 1 else batches
    for _ in range(TRIES):
        importing = _Importing(log, Imported(importer.FORMAT), told or (lambda *_: None))
        try:
            with log.database.for_bulk():
                for batch in read(importer, path, log.text_limit):
                    importing.take(batch)
            return importing.done
        except Changed:
            continue
    raise ImportRefused(
        f"{path} was written to while it was read, {TRIES} times; try again, or import a copy",
        file=str(path), line=0, expected="a file that holds still",
    )  # fmt: skip


def _is_large(path: Path) -> bool:
    files = [path] if path.is_file() else path.rglob("*")
    return any(file.is_file() and file.stat().st_size >= LARGE for file in files)


class _Importing:
    """Appends batches, and counts."""

    def __init__(self, log: TranscriptLog, done: Imported, told: Told) -> None:
        self.done = done
        self._log = log
        self._told = told
        self._preparing = Preparing(log.text_limit)

    def take(self, batch: Batch) -> None:
        """Append a batch."""
        with uncollected():
            appended = self._log.append_sessions(batch.drafts)
        for session, append in appended.items():
            drafts = batch.drafts[session]
            if append.error is None:
                new = append.answer().new
            elif isinstance(append.error, AppendRefused):
                new = sum(self._alone(session, draft) for draft in drafts)
            else:
                raise append.error
            self.done.added += new
            self.done.known += len(drafts) - new
        self.done.sessions += batch.sessions
        self.done.messages += batch.messages
        self.done.faults.update(batch.faults)
        self._told(self.done.messages, batch.total)

    def _alone(self, session: str, draft: Draft) -> int:
        """Append one event; what the log refuses is a fault of the source."""
        try:
            return self._log.append_drafts(session, [draft]).new
        except AppendRefused as error:
            self.done.faults[codes.CONFLICTING] += 1
            fault = self._preparing.refused(session, draft, str(error))
            return self._log.append_drafts(session, [fault]).new
