"""Explaining what went wrong in a turn."""

from __future__ import annotations

from typing import Annotated

import typer

from onrecord.projections.cli.command import Json, Session, app, fail, known, open_log, print_json

TURNS_TOLD = 10
"""Turns with findings that are explained at once on a page; more are named. JSON has them all."""


@app.command(epilog="Example: onrecord explain chat-1 t7")
def explain(
    session: Session,
    turn: Annotated[
        str | None,
        typer.Argument(help="One turn; without it those with findings, or the last one."),
    ] = None,
    json: Json = False,
) -> None:
    """Explain a turn: what happened when, and what to do about it.

    The timeline has three lanes: the model, gateway and platform, and the transcript's rows (+ came,
    ~ changed, - left, = closed). Of each finding it is said what the user saw, and what the model gets
    next. Exit 0: nothing was found, 1: something, 2: error.
    """
    from onrecord.projections import explaining
    from onrecord.projections.pages.explanation import explanation_shape, show_explanations

    with open_log() as log:
        known(log, session)
        explained = explaining.explain(session, lambda: log.read(session), turn)
        if turn is not None and not explained:
            there = explaining.turns_of(lambda: log.read(session))
            last = ", ".join(repr(name) for name in there[-3:]) or "none"
            fail(f"no turn {turn!r} in session {session!r}; its last ones are: {last}")
    if json:
        print_json({"session": session, "turns": [explanation_shape(one) for one in explained]})
    else:
        others = [one.turn for one in explained[TURNS_TOLD:]]
        show_explanations(session, explained[:TURNS_TOLD], others)
    raise typer.Exit(1 if any(one.paragraphs for one in explained) else 0)
