"""Writing a session out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from onrecord.projections.cli.command import Session, app, known, one_of, open_log
from onrecord.projections.cli.output import Out, check_output, output
from onrecord.projections.cli.points import At, point_of, version_at

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog

FORMATS = "jsonl|markdown|html"


@app.command(epilog="Example: onrecord export chat-1 --format html --out chat-1.html")
def export(
    session: Session,
    form: Annotated[
        str, typer.Option("--format", metavar=FORMATS, help="Events, or a text for people.")
    ] = "jsonl",
    out: Out = None,
    at: At = None,
    full: Annotated[
        bool, typer.Option("--full", help="With what was compacted or undone (jsonl has it all).")
    ] = False,
) -> None:
    """Write a session: its events as JSON lines, or a text to read.

    `onrecord import` takes the lines. The HTML is one file that loads and runs nothing, for a phone, a
    wide screen or paper.
    """
    one_of("--format", form, FORMATS)
    point = None if at is None else point_of(at, "--at")
    check_output(form, out)
    with open_log() as log:
        known(log, session)
        until = None if point is None else version_at(log, session, point, "--at")
        with output(out) as file:
            file.writelines(_pieces(log, session, form, until, full=full))


def _pieces(
    log: TranscriptLog, session: str, form: str, until: int | None, *, full: bool
) -> Iterator[str]:
    if form == "jsonl":
        from onrecord.transcript.interchange import export_line

        return (export_line(record) + "\n" for record in log.read(session, limit=until))
    from onrecord.projections import documents

    write = documents.html if form == "html" else documents.markdown
    return write(documents.document(session, log.read(session), at=until, full=full))
