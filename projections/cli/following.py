"""Following the log while it is written."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from onrecord.projections.cli.command import OneOrAll, app, known, open_log

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog
    from onrecord.transcript.recorded import Recorded

LOOK = 0.5
"""Seconds between two looks whether anybody still reads what is printed."""


@app.command(epilog="Example: onrecord tail chat-1 -n 20")
def tail(
    session: OneOrAll = None,
    last: Annotated[int, typer.Option("-n", min=0, help="Events that are there already.")] = 10,
    json: Annotated[
        bool, typer.Option("--json", help="Print the lines of an export, for programs.")
    ] = False,
) -> None:
    """Follow the log: events as any process appends them.

    One a line, until interrupted.
    """
    from onrecord.projections.pages.tail import EventLines
    from onrecord.transcript.interchange import export_line

    with open_log() as log:
        known(log, session)
        lines = EventLines(with_session=session is None)
        for recorded in _events(log, session, last):
            if json:
                sys.stdout.write(export_line(recorded) + "\n")
            else:
                lines.show(recorded)
            sys.stdout.flush()


def _events(log: TranscriptLog, session: str | None, last: int) -> Iterator[Recorded]:
    """Yield the last events that are there, and then those that come, none twice and none left out."""
    from onrecord.transcript.storage.latest import before_last

    if session is None:
        after = log.database.read("reading the log", lambda c: before_last(c, last))
        seen = 0
    else:
        after = log.last_position()  # first: what comes in between is read twice, and told once
        seen = max(0, log.version(session) - last)
        for recorded in log.read(session, after=seen):
            seen = recorded.version
            yield recorded
    with log.subscribe(after=after) as following:
        while True:
            came = following.next(LOOK)
            if came is None:
                _check_reader()
            elif session is None or (came.session == session and came.version > seen):
                yield came


def _check_reader() -> None:
    """Raise BrokenPipeError if whoever read the output went away: no event may come to notice it by."""
    if hasattr(select, "poll"):
        asked = select.poll()
        asked.register(sys.stdout.fileno(), 0)
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in asked.poll(0)):
            raise BrokenPipeError
