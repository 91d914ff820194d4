"""Showing sessions and their rows."""

from __future__ import annotations

from typing import Annotated

import typer

from onrecord.projections.cli.command import Json, Session, app, fail, known, open_log, print_json
from onrecord.projections.pages.rows import row_shape, show_rows
from onrecord.projections.pages.sessions import head_shape, show_sessions
from onrecord.projections.promise import check_texts
from onrecord.projections.transcript import build_checked

PROFILES = "neutral|openai|responses|anthropic|gemini|mistral|converse"


@app.command(epilog="Example: onrecord sessions --json")
def sessions(json: Json = False) -> None:
    """List the sessions, the newest last."""
    with open_log() as log:
        heads = sorted(log.sessions(), key=lambda head: head.updated_at)
    if json:
        print_json({"sessions": [head_shape(head) for head in heads]})
    else:
        show_sessions(heads)


@app.command(epilog="Example: onrecord show chat-1 --as openai")
def show(
    session: Session,
    at: Annotated[int | None, typer.Option(min=0, help="As it stood at this version.")] = None,
    profile: Annotated[
        str, typer.Option("--as", metavar=PROFILES, help="As a provider's request.")
    ] = "neutral",
    full: Annotated[
        bool, typer.Option("--full", help="With what was compacted or undone.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the transcript: the rows that the model is given, checked against what was delivered."""
    if profile not in PROFILES.split("|"):
        fail(f"no profile {profile!r}; --as takes one of {PROFILES.replace('|', ', ')}")
    with open_log() as log:
        known(log, session)
        if at is not None and at > (newest := log.version(session)):
            fail(f"--at {at}: session {session!r} has no such version; its newest is {newest}")
        transcript, reading = build_checked(session, log.read(session), at=at, full=full)
    if profile != "neutral":
        from onrecord.projections.profiles import render, texts_of

        request = render(transcript.rows, profile)
        if not full:
            check_texts(session, reading, texts_of(profile, request))
        print_json({"session": session, "version": transcript.version, **request})
    elif json:
        rows = [row_shape(row) for row in transcript.rows]
        print_json({"session": session, "version": transcript.version, "rows": rows})
    else:
        show_rows(transcript)
