"""Searching what was said."""

from __future__ import annotations

from typing import Annotated

import typer

from onrecord.projections.cli.command import (
    Json,
    app,
    fail,
    known,
    note,
    one_of,
    open_log,
    print_json,
)
from onrecord.projections.cli.times import moment_of
from onrecord.projections.pages.terminal import progress

ROLES = "user|assistant|tool"


@app.command(epilog="Example: onrecord search 'disk full' --role tool --since 7d")
def search(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORDS", help="All of them in one row; a phrase in quotes."),
    ] = None,
    session: Annotated[str | None, typer.Option(help="In one session; in all without it.")] = None,
    role: Annotated[str | None, typer.Option(metavar=ROLES, help="In rows of this role.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME|AGO", help="2026-11-30T14:00 (UTC), 36h, 7d.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows, the newest first.")] = 20,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make the search index anew first.")
    ] = False,
    json: Json = False,
) -> None:
    """Find what was said: words, parts of words and phrases.

    In all sessions and every script; neither case nor accents matter. Rows that the model isn't shown
    any more are found and marked. The first search makes an index in the log, later ones add to it.
    """
    from onrecord.projections import search as searching
    from onrecord.projections.pages.search import hit_shape, show_hits
    from onrecord.transcript.storage.journal import microseconds

    if role is not None:
        one_of("--role", role, ROLES)
    said = searching.words_of(words or [])
    if not said and not rebuild:
        fail("nothing to search for; give a word, or a phrase in quotes")
    moment = moment_of("--since", since)
    query = searching.Query(
        words=said, session=session, role=role, limit=limit + 1,
        since=None if moment is None else microseconds(moment),
    )  # fmt: skip
    with open_log() as log:
        known(log, session)
        with progress("records") as told:
            if rebuild:
                searching.rebuild(log, tell=note, progress=told)
                note("the search index is made anew")
            hits = searching.search(log, query, tell=note, progress=told) if said else []
    if not said:
        return
    more, hits = len(hits) > limit, hits[:limit]
    if json:
        print_json({"hits": [hit_shape(hit, said) for hit in hits], "more": more})
    else:
        show_hits(hits, said, more=more)
