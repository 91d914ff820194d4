"""Showing sessions and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from onrecord.projections.cli.command import Json, Session, app, known, one_of, open_log, print_json
from onrecord.projections.cli.points import At, point_of, told, version_at
from onrecord.projections.pages.rows import row_shape, show_rows
from onrecord.projections.pages.sessions import head_shape, show_sessions
from onrecord.projections.promise import check_texts
from onrecord.projections.transcript import build_checked

if TYPE_CHECKING:
    from onrecord.transcript.recorded import Recorded

PROFILES = "neutral|openai|responses|anthropic|gemini|mistral|converse"

Profile = Annotated[str, typer.Option("--as", metavar=PROFILES, help="As a provider's request.")]


@app.command(epilog="Example: onrecord sessions --json")
def sessions(json: Json = False) -> None:
    """List the sessions, the newest last."""
    with open_log() as log:
        heads = sorted(log.sessions(), key=lambda head: head.updated_at)
    if json:
        print_json({"sessions": [head_shape(head) for head in heads]})
    else:
        show_sessions(heads)


@app.command(epilog="Example: onrecord show chat-1 --at '2026-11-30 10:00' --as openai")
def show(
    session: Session,
    at: At = None,
    profile: Profile = "neutral",
    full: Annotated[
        bool, typer.Option("--full", help="With what was compacted or undone.")
    ] = False,
    sources: Annotated[
        bool, typer.Option("--sources", help="With where each row stood in the imported source.")
    ] = False,
    json: Json = False,
) -> None:
    """Show a session's transcript, as the model is given it.

    Its rows are checked against what was delivered before they are shown.
    """
    one_of("--as", profile, PROFILES)
    point = None if at is None else point_of(at, "--at")
    places: dict[int, str] = {}
    with open_log() as log:
        known(log, session)
        version = None if point is None else version_at(log, session, point, "--at")
        records = placed(log.read(session), places)
        transcript, reading = build_checked(session, records, at=version, full=full)
    if profile != "neutral":
        from onrecord.projections.profiles import render, texts_of

        request = render(transcript.rows, profile)
        if not full:
            check_texts(session, reading, texts_of(profile, request))
        print_json({"session": session, "version": transcript.version, **request})
    elif json:
        rows = [row_shape(row, places) for row in transcript.rows]
        print_json({"session": session, "version": transcript.version, "rows": rows})
    else:
        as_of = "" if point is None or isinstance(point, int) else told(point)
        show_rows(transcript, places if sources else None, as_of)


def placed(records: Iterable[Recorded], places: dict[int, str]) -> Iterator[Recorded]:
    """Yield records, and note where each stood in the source that it was imported from."""
    for recorded in records:
        if recorded.event.imported_from:
            places[recorded.version] = recorded.event.imported_from
        yield recorded
