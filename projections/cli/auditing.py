"""Finding what went wrong."""

from __future__ import annotations

from typing import Annotated

import typer

from onrecord.projections.cli.command import Json, app, known, open_log, print_json
from onrecord.projections.findings import findings_of
from onrecord.projections.pages.findings import show_findings
from onrecord.projections.promise import check_reading
from onrecord.projections.transcript import folded


@app.command(epilog="Example: onrecord audit --json")
def audit(
    session: Annotated[str | None, typer.Argument(help="One session; all without it.")] = None,
    json: Json = False,
) -> None:
    """Find lost, doubted, repeated and differing replies (exit 0: none, 1: some, 2: error)."""
    with open_log() as log:
        if session is not None:
            known(log, session)
        names = [head.name for head in log.sessions()] if session is None else [session]
        found = []
        for name in names:
            conversation, reading = folded(log.read(name))
            check_reading(name, reading, conversation.rows(full=True), full=True)
            found.extend(findings_of(name, conversation))
    if json:
        print_json({"findings": found})
    else:
        show_findings(found, len(names))
    raise typer.Exit(1 if found else 0)
