"""Writing a session out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from onrecord.projections.cli.command import Session, app, fail, known, open_log
from onrecord.projections.pages.terminal import is_database, open_private


@app.command(epilog="Example: onrecord export chat-1 --out chat-1.jsonl")
def export(
    session: Session,
    out: Annotated[Path | None, typer.Option(help="Write here instead of the terminal.")] = None,
) -> None:
    """Write a session's events as JSON lines, for `onrecord import` or any other program."""
    from onrecord.transcript.interchange import export_lines

    # Before the log opens: closing any descriptor of its file would drop SQLite's locks.
    if out is not None and is_database(out):
        fail(f"{out} is a database and was left untouched; choose another place with --out")
    with open_log() as log:
        known(log, session)
        if out is None:
            for line in export_lines(log, session):
                sys.stdout.write(line + "\n")
            return
        try:
            with open_private(out) as file:
                file.writelines(line + "\n" for line in export_lines(log, session))
        except OSError as error:
            fail(f"can't write {out}: {error.strerror}; choose another place with --out")
