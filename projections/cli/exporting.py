"""Writing a session out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onrecord.projections.cli.command import Session, app, fail, known, open_log
from onrecord.projections.cli.points import point_of, version_at
from onrecord.projections.pages.terminal import is_database, open_private

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog

FORMATS = ("jsonl", "markdown", "html")


@app.command(epilog="Example: onrecord export chat-1 --format html --out chat-1.html")
def export(
    session: Session,
    form: Annotated[
        str,
        typer.Option("--format", metavar="|".join(FORMATS), help="Events, or a text for people."),
    ] = "jsonl",
    out: Annotated[Path | None, typer.Option(help="Write here instead of the terminal.")] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="VERSION|TIME", help="As it stood then; a time is UTC."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="With what was compacted or undone (jsonl has it all).")
    ] = False,
) -> None:
    """Write a session: its events as JSON lines for `onrecord import`, or its transcript to read.

    The HTML is one file that loads and runs nothing, for a phone, a wide screen or paper.
    """
    if form not in FORMATS:
        fail(f"no format {form!r}; --format takes one of {', '.join(FORMATS)}")
    point = None if at is None else point_of(at, "--at")
    # Before the log opens: closing any descriptor of its file would drop SQLite's locks.
    if out is not None and is_database(out):
        fail(f"{out} is a database and was left untouched; choose another place with --out")
    with open_log() as log:
        known(log, session)
        until = None if point is None else version_at(log, session, point, "--at")
        pieces = _pieces(log, session, form, until, full=full)
        if out is None:
            sys.stdout.writelines(pieces)
            return
        try:
            with open_private(out) as file:
                file.writelines(pieces)
        except OSError as error:
            fail(f"can't write {out}: {error.strerror}; choose another place with --out")


def _pieces(
    log: TranscriptLog, session: str, form: str, until: int | None, *, full: bool
) -> Iterator[str]:
    if form == "jsonl":
        from onrecord.transcript.interchange import export_line

        return (export_line(record) + "\n" for record in log.read(session, limit=until))
    from onrecord.projections import documents

    write = documents.html if form == "html" else documents.markdown
    return write(documents.document(session, log.read(session), at=until, full=full))
