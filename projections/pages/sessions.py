"""What a person sees of the list of sessions, and its JSON shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from onrecord.projections.pages.terminal import console, plain, table

if TYPE_CHECKING:
    from onrecord.transcript.log import SessionHead


def head_shape(head: SessionHead) -> dict[str, Any]:
    """Return a session's JSON shape."""
    return {
        "session": head.name,
        "version": head.version,
        "started_at": head.started_at,
        "updated_at": head.updated_at,
        "chain": head.chain.hex(),
    }


def show_sessions(heads: Sequence[SessionHead]) -> None:
    """Print the sessions, one a row."""
    if not heads:
        console().print("no sessions yet")
        return
    grid = table("session", "events", "started (UTC)", "updated (UTC)")
    for column in grid.columns[1:]:
        column.no_wrap = True  # a name is as long as a UUID often, and has to stay whole
    for one in heads:
        started, updated = (f"{t:%Y-%m-%d %H:%M}" for t in (one.started_at, one.updated_at))
        grid.add_row(Text(plain(one.name)), str(one.version), started, updated)
    console().print(grid)
