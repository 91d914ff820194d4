"""What a person sees of a session that is read again, event by event, and its JSON shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from onrecord.projections.pages.difference import difference_shape, hanging, lines_of, put
from onrecord.projections.pages.terminal import console, counted, plain
from onrecord.projections.replaying import Replayed
from onrecord.projections.telling import words_of

SHOWN = 240
"""Characters of a row that a replay shows."""
_INDENT = " " * 8


def replayed_shape(step: Replayed) -> dict[str, Any]:
    """Return the JSON shape of an event and what it changed."""
    record, event = step.record, step.record.event
    shape: dict[str, Any] = {
        "session": record.session,
        "version": record.version,
        "type": record.type,
        "at": step.at,
        "delay": step.delay,
        "turn": step.turn,
        "said": words_of(event),
    }
    if event.imported_from:
        shape["imported_from"] = event.imported_from
    closed = [{"change": "closed", "turn": t, "outcome": outcome} for t, outcome in step.closed]
    shape["changes"] = [difference_shape(one) for one in step.changes] + closed
    return shape


def show_replay(
    session: str, steps: Iterable[Replayed], goes_on: Callable[[], bool] | None = None
) -> None:
    """Print a replay. `goes_on`: asked after each event whether to show the next."""
    page = console()
    page.print(Text(f"{plain(session)}, times in UTC", style="bold"))
    if goes_on is not None:
        page.print(Text("space or enter: the next event; q: quit", style="dim"))
    shown, day = 0, None
    for step in steps:
        if step.at.date() != day:
            day = step.at.date()
            page.print(Text(f"{day}", style="bold"))
        put(page, replayed_lines(page, step))
        shown += 1
        if goes_on is not None and not goes_on():
            break
    page.print(f"{counted(shown, 'event')}" if shown else "no event lies between these points")


def replayed_lines(page: Console, step: Replayed) -> Iterator[Text]:
    """Yield the lines of an event: what it says, and below it what it changed."""
    record = step.record
    lead = Text(f"{record.version:>6}  {step.at:%H:%M:%S.%f}"[:-3], style="bold")
    lead.append(f" {delay_words(step.delay):>9}  ", style="dim")
    body = Text(plain(words_of(record.event)).replace("\n", " "))
    if record.event.imported_from:
        body.append(f"  from {plain(record.event.imported_from)}", style="dim")
    yield from hanging(page, lead, body, Text())
    for change in step.changes:
        yield from lines_of(page, change, _INDENT, SHOWN)
    for turn, outcome in step.closed:
        yield Text(f"{_INDENT}= turn {plain(turn)} closed: {plain(outcome)}", style="cyan")


def delay_words(seconds: float | None) -> str:
    """Return the time since the event before, short."""
    if seconds is None:
        return ""
    sign, size = ("-" if seconds < 0 else "+"), abs(seconds)
    if size < 1:
        return f"{sign}{size * 1000:.0f} ms"
    if size < 60:
        return f"{sign}{size:.1f} s"
    if size < 3600:
        return f"{sign}{int(size // 60)}m{int(size % 60):02}s"
    hours = int(size // 3600)
    return (
        f"{sign}{hours}h{int(size % 3600 // 60):02}m" if hours < 48 else f"{sign}{hours // 24} days"
    )
