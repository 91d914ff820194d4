"""Finding what went wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from onrecord.projections.cli.command import (
    Json,
    OneOrAll,
    app,
    fail,
    known,
    note,
    one_of,
    open_log,
)
from onrecord.projections.cli.output import (
    FORMAT_HELP,
    Jobs,
    Out,
    check_output,
    output,
    write_rows,
)
from onrecord.projections.cli.times import moment_of
from onrecord.projections.codes import CODES
from onrecord.projections.pages.terminal import progress

if TYPE_CHECKING:
    from onrecord.projections.auditing import Asked, Audited, Tally
    from onrecord.transcript.log import TranscriptLog

FORMATS = "table|json|csv|parquet|sarif"


@app.command(
    epilog="Example: onrecord audit --since 7d --code delivery-in-doubt --format csv --out doubt.csv"
)
def audit(
    session: OneOrAll = None,
    details: Annotated[
        bool, typer.Option("--details", help="Each finding, instead of how many there are.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME|AGO", help="Of records since then: 2026-11-30T14:00Z, 36h, 7d."),
    ] = None,
    platform: Annotated[
        str | None, typer.Option(help="Of sessions that came from there or were answered there.")
    ] = None,
    code: Annotated[list[str] | None, typer.Option(help="Of this code; may be repeated.")] = None,
    jobs: Jobs = None,
    anew: Annotated[
        bool, typer.Option("--anew", help="From the records alone, whatever is stored.")
    ] = False,
    shape: Annotated[
        str,
        typer.Option("--format", metavar=FORMATS, help=FORMAT_HELP),
    ] = "table",
    out: Out = None,
    json: Json = False,
) -> None:
    """Find lost, doubted, repeated and differing replies.

    Each session is held to the promise. What is stored already is read, the rest is folded. Exit 0:
    nothing was found, 1: something, 2: error.
    """
    from onrecord.projections.auditing import Asked
    from onrecord.projections.sweeping import processors

    form = "json" if json else one_of("--format", shape, FORMATS)
    for one in code or ():
        if one not in CODES:
            fail(f"no finding has the code {one!r}; there are {', '.join(CODES)}")
    check_output(form, out)
    asked = Asked(
        since=moment_of("--since", since), platform=platform, codes=frozenset(code or ()),
        anew=anew, sources=form == "sarif",
    )  # fmt: skip
    with output(out) as file, open_log() as log:
        known(log, session)
        details = details or session is not None
        tally = _audited(log, asked, session, jobs or processors(), form, file, details=details)
    for failed in tally.failed:
        note(failed)
    if tally.failed:
        raise typer.Exit(2)
    raise typer.Exit(1 if tally.found else 0)


def _audited(
    log: TranscriptLog, asked: Asked, session: str | None, jobs: int, form: str, file: TextIO,
    *, details: bool,
) -> Tally:  # fmt: skip
    """Audit, and write what is found as it comes."""
    from onrecord.projections.auditing import Tally, audit
    from onrecord.projections.pages.findings import show_codes, show_findings, show_total

    tally = Tally()
    # A bar that is redrawn and lines that come in between don't go together on one terminal.
    shown = not details if form == "table" else file is not sys.stdout or not file.isatty()
    with progress("records") if shown else nullcontext() as told:
        audits = tally.taking(audit(log, asked, session=session, jobs=jobs, progress=told))
        if form == "table":
            for audited in audits:
                if details and audited.findings:
                    show_findings(audited.findings)
        else:
            _write(form, audits, tally, file)
    if form == "table":
        if tally.found and not details:
            show_codes(tally)
        show_total(tally, details=details)
    return tally


def _write(form: str, audits: Iterable[Audited], tally: Tally, file: TextIO) -> None:
    from onrecord.projections.pages.findings import COLUMNS, finding_rows, write_findings

    if form == "sarif":
        from onrecord.projections.pages.sarif import write_sarif

        write_sarif(((one, a.sources) for a in audits for one in a.findings), file)
        return
    found = (finding for audited in audits for finding in audited.findings)
    if form == "json":
        write_findings(found, tally, file)
    else:
        write_rows(form, COLUMNS, finding_rows(found), file)
