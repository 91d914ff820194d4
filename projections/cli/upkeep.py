"""Migrating, projecting, checking and verifying a log."""

from __future__ import annotations

from typing import Annotated

import typer

from onrecord.projections.cli.command import (
    Json,
    OneOrAll,
    app,
    chosen,
    fail,
    note,
    open_log,
    print_json,
)
from onrecord.projections.pages.terminal import counted, plain, progress
from onrecord.projections.pages.upkeep import show_faults, show_verification, verification_shape


@app.command(epilog="Example: onrecord --db sqlite:///bot.db migrate")
def migrate(json: Json = False) -> None:
    """Bring a log of an older schema up to date. Stop its writers first; it only goes forward."""
    from onrecord.transcript.storage.schema import SCHEMA_VERSION

    with open_log(migrate=True) as log:
        found, where = log.database.found_schema, log.database.where
    if json:
        print_json({"log": where, "from": found, "to": SCHEMA_VERSION})
    elif found == SCHEMA_VERSION:
        print(plain(f"{where} has schema {found}, the newest: nothing to do"))
    else:
        print(plain(f"{where}: from schema {found} to {SCHEMA_VERSION}"))


@app.command(epilog="Example: onrecord rebuild --jobs 4")
def rebuild(
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 1,
    json: Json = False,
) -> None:
    """Project the whole log anew into the stored transcripts.

    What is stored is read until the new transcripts are whole.
    """
    from onrecord.projections.stored import StoredProjections

    with open_log() as log, progress("records") as told:
        done = StoredProjections(log).rebuild(told, jobs)
        sessions = len(log.sessions())
    if json:
        print_json({"records": done, "sessions": sessions})
    else:
        what = f"{counted(done, 'record')} of {counted(sessions, 'session')}"
        print(f"projected {what}")


@app.command(epilog="Example: onrecord check chat-1")
def check(
    session: OneOrAll = None,
    json: Json = False,
) -> None:
    """Hold the stored transcripts against the log.

    Exit 0: they follow from it, 1: some don't, 2: error.
    """
    from onrecord.projections.stored import StoredProjections

    with open_log() as log:
        names = chosen(log, session)
        stored = StoredProjections(log)
        faults = list(stored.check(names))
        behind = sorted(set(stored.behind()).intersection(names))
    if json:
        print_json({"faults": faults, "sessions": len(names), "behind": behind})
    else:
        show_faults(faults, len(names), len(behind))
    raise typer.Exit(1 if faults else 0)


@app.command(epilog="Example: onrecord project")
def project() -> None:
    """Keep the stored transcripts up with the log until interrupted. Several may run at once."""
    import signal

    from onrecord.projections.stored import Runner

    with open_log() as log:
        runner = Runner(log)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: runner.stop())
        runner.run()
    for name, why in runner.failed.items():
        note(f"session {name!r} isn't projected: {why}")
    raise typer.Exit(1 if runner.failed else 0)


@app.command(epilog="Example: onrecord verify --head chat-1:27:9f3c…")
def verify(
    head: Annotated[
        list[str] | None,
        typer.Option(help="SESSION:VERSION:CHAIN that was kept elsewhere; shows a cut tail."),
    ] = None,
    json: Json = False,
) -> None:
    """Recompute all digests, to find what was changed.

    Of each session the first record is named that was edited, removed, inserted or moved. Exit 0: all
    is as it was written, 1: something isn't, 2: error.
    """
    from onrecord.transcript.verify import verify as verify_log

    heads = [_head(text) for text in head or []]
    with open_log() as log:
        result = verify_log(log, heads=heads)
    if json:
        print_json(verification_shape(result))
    else:
        show_verification(result, heads)
    raise typer.Exit(1 if result.faults else 0)


def _head(text: str) -> tuple[str, int, bytes]:
    parts = text.rsplit(":", 2)
    try:
        return parts[0], int(parts[1]), bytes.fromhex(parts[2])
    except (IndexError, ValueError):
        fail(f"--head takes SESSION:VERSION:CHAIN with the chain in hex, not {text!r}")
