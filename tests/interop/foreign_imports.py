"""What an import of a foreign file comes to: the events, the rows that follow, the findings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from onrecord.projections.findings import findings
from onrecord.projections.transcript import build
from onrecord.transcript import codec
from onrecord.transcript.importers.running import Imported, import_source
from onrecord.transcript.importers.source import Importer
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded

Row = tuple[str, str]

_SAID_BY_THE_LOG = {"imported_at", "writer", "at"}


class Session(NamedTuple):
    """One session after an import: all rows, those in the model's view, findings and faults."""

    records: list[Recorded]
    rows: list[Row]
    view: list[Row]
    found: list[str]
    faults: list[tuple[str, str]]

    def of(self, type: str) -> list[Any]:
        """Return the events of a type."""
        return [record.event for record in self.records if record.type == type]

    def said(self) -> set[str]:
        """Return what each event says, as one line."""
        return {f"{record.type} {_fields(record)}" for record in self.records}


def _fields(record: Recorded) -> list[tuple[str, str]]:
    told = codec.fields(record).items()
    return sorted((name, str(value)) for name, value in told if name not in _SAID_BY_THE_LOG)


class Log:
    """A log in memory that files are imported into."""

    def __init__(self, log: TranscriptLog) -> None:
        self.log = log

    def take(self, importer: Any, path: Path) -> Imported:
        """Import a file."""
        known: Importer = importer
        return import_source(self.log, known, path)

    def session(self, name: str) -> Session:
        """Return what a session is."""
        records = list(self.log.read(name))
        return Session(
            records,
            [(row.role, row.text) for row in build(self.log, name, full=True).rows],
            [(row.role, row.text) for row in build(self.log, name).rows],
            [one.code for one in findings(name, records)],
            [(r.event.code, r.event.place) for r in records if r.type == "SourceFaultFound"],  # type: ignore[attr-defined]
        )


def imported(importer: Any, path: Path, session: str) -> Session:
    """Import a file into a log of its own; return one session."""
    with TranscriptLog.open("sqlite://") as log:
        into = Log(log)
        into.take(importer, path)
        return into.session(session)


def digests(folder: Path) -> Iterator[tuple[str, str]]:
    """Iterate over the files of a folder and what is in them."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file.name, hashlib.sha256(file.read_bytes()).hexdigest()
