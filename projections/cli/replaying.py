"""Reading a session again: event by event, between two points, and as its model calls were asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from onrecord.projections.cli.command import (
    Json,
    Session,
    app,
    chosen,
    fail,
    known,
    one_of,
    open_log,
    print_json,
)
from onrecord.projections.cli.points import POINT, Point, point_of, told, version_at, version_from
from onrecord.projections.cli.showing import PROFILES, Profile

if TYPE_CHECKING:
    from onrecord.projections.replaying import Replayed, Sent
    from onrecord.projections.transcript import Transcript
    from onrecord.transcript.log import TranscriptLog


@app.command(epilog="Example: onrecord replay chat-1 --from 20 --step")
def replay(
    session: Annotated[
        str | None, typer.Argument(help="The session's name; with --verify all without it.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar=POINT, help="The first event to show.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar=POINT, help="The last event to show.")
    ] = None,
    profile: Profile = "neutral",
    step: Annotated[
        bool, typer.Option("--step", help="Wait for a key: space or enter goes on, q quits.")
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Render each model call's input again (exit 1: one differs)."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Read a session again, event by event: what each changed.

    A + row came into the model's view, a ~ row changed, a - row left it, = closes a turn. With --as, what
    changed in the messages that the model would be sent. With --json one line an event.
    """
    if verify:
        if start or end or step or profile != "neutral":
            fail("--verify goes with no --from, --to, --as or --step: it looks at every model call")
        _verify(session, json=json)
        return
    if session is None:
        fail("Missing argument 'SESSION'; `onrecord sessions` lists them")
    one_of("--as", profile, PROFILES)
    if step and not (sys.stdin.isatty() and sys.stdout.isatty()):
        fail("--step waits for a key, and this is no terminal; leave it out")
    if step and json:
        fail("--step is for reading and --json for programs; leave one out")
    points = [
        None if text is None else point_of(text, option)
        for text, option in ((start, "--from"), (end, "--to"))
    ]
    with open_log() as log:
        known(log, session)
        first = 1 if points[0] is None else version_from(log, session, points[0], "--from")
        last = None if points[1] is None else version_at(log, session, points[1], "--to")
        steps = _between(log, session, first, last, profile)
        if json:
            from onrecord.projections.pages.replay import replayed_shape

            for one in steps:
                print_json(replayed_shape(one))
        else:
            _show(session, steps, step=step)


def _between(
    log: TranscriptLog, session: str, first: int, last: int | None, profile: str
) -> Iterator[Replayed]:
    """Yield the steps of a session from one version to another; those before are only folded."""
    from onrecord.projections.replaying import Replay

    replay = Replay(sent=_sender(profile))
    for recorded in log.read(session, limit=last):
        if recorded.version < first:
            replay.skip(recorded)
        else:
            yield replay.take(recorded)


def _sender(profile: str) -> Sent | None:
    """Return what gives the messages of a profile, None where rows are shown."""
    if profile == "neutral":
        return None
    from onrecord.projections.differences import messages_of
    from onrecord.projections.profiles import render

    return lambda rows: messages_of(render(rows, profile))


def _show(session: str, steps: Iterator[Replayed], *, step: bool) -> None:
    from onrecord.projections.pages.replay import show_replay

    show_replay(session, steps, _next if step else None)


def _next() -> bool:
    """Wait for a key; tell whether to go on."""
    while True:
        try:
            key = typer.getchar()
        except EOFError:
            return False
        if key in (" ", "\r", "\n"):
            return True
        if key in ("q", "Q", "\x1b"):
            return False


def _verify(session: str | None, *, json: bool) -> None:
    from onrecord.projections.pages.rerendering import rerendering_shape, show_rerendering
    from onrecord.projections.pages.terminal import progress
    from onrecord.projections.rerendering import rerender

    with open_log() as log:
        names = chosen(log, session)
        found = []
        with progress("sessions") as shown:
            for number, name in enumerate(names, 1):
                found.append(rerender(name, lambda: log.read(name)))  # noqa: B023 (called at once)
                shown(number, len(names))
    if json:
        print_json(rerendering_shape(found))
    else:
        show_rerendering(found)
    raise typer.Exit(1 if any(one.changed for one in found) else 0)


@app.command(epilog="Example: onrecord diff chat-1 12 '2026-11-30 10:00'")
def diff(
    session: Session,
    a: Annotated[str, typer.Argument(metavar="A", help="A version, or a time (UTC).")],
    b: Annotated[str, typer.Argument(metavar="B", help="A version, or a time (UTC).")],
    profile: Profile = "neutral",
    json: Json = False,
) -> None:
    """Show what differs between two points of a session.

    Rows that are new (+), gone (-) or changed (~), with the words that changed; with --as, the
    messages that the model was sent at the two points. Exit 0: nothing differs, 1: something, 2: error.
    """
    from onrecord.projections.differences import compare_messages, compare_rows, messages_of
    from onrecord.projections.pages.difference import difference_shape, show_differences
    from onrecord.projections.transcript import build

    one_of("--as", profile, PROFILES)
    points = point_of(a, "A"), point_of(b, "B")
    with open_log() as log:
        known(log, session)
        was, now = (
            build(log, session, at=version_at(log, session, point, option))
            for point, option in zip(points, ("A", "B"), strict=True)
        )
    if profile == "neutral":
        found = list(compare_rows(was.rows, now.rows))
    else:
        from onrecord.projections.profiles import render

        sent = [messages_of(render(one.rows, profile)) for one in (was, now)]
        found = list(compare_messages(*sent))
    differs = any(one.kind != "same" for one in found)
    if json:
        changes = [difference_shape(one) for one in found if one.kind != "same"]
        print_json({"session": session, "from": was.version, "to": now.version, "changes": changes})
    elif differs:
        show_differences(_name(was, points[0]), _name(now, points[1]), found)
    raise typer.Exit(1 if differs else 0)


def _name(transcript: Transcript, point: Point) -> str:
    as_of = "" if isinstance(point, int) else f", as of {told(point)}"
    return f"{transcript.session}, version {transcript.version}{as_of}"
