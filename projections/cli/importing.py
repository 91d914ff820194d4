"""Reading files into the log."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from onrecord.projections.cli.command import app, fail, open_log
from onrecord.projections.pages.terminal import counted, plain


@app.command("import", epilog="Example: onrecord import incident.jsonl")
def import_(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="JSON lines; - is stdin.")],
) -> None:
    """Read events from JSON lines into the log. A file that was read before adds nothing."""
    from onrecord.transcript.interchange import checked_lines

    with contextlib.ExitStack() as stack:
        # All of them first: what is wrong in one makes no log and imports no half of the files.
        opened = [(name, stack.enter_context(_lines(name))) for name in files]
        checked = [
            (name, stack.enter_context(checked_lines(lines, name))) for name, lines in opened
        ]
        log = stack.enter_context(open_log(create=True))
        for name, write in checked:
            done = write(log)
            told = "standard input" if name == "-" else name
            added = counted(done.added, "event")
            print(plain(f"{told}: {added} added, {done.known} known already"))


@contextlib.contextmanager
def _lines(name: str) -> Iterator[Any]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 (closed below; only opening may fail here)
    except OSError as error:
        fail(f"can't read {name}: {error.strerror}; name a file of JSON lines, or - for stdin")
    with file:
        yield file
