"""What a person sees of rows, and their JSON shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from rich.text import Text

from onrecord.projections.pages.terminal import console, mark, plain, table
from onrecord.projections.rows import Row
from onrecord.projections.transcript import Transcript

ROW_FIELDS = ("role", "text", "origin", "delivery", "tool_calls", "tool_call", "turn", "versions")

Places = Mapping[int, str]
"""Version of an event → where it stood in the source that it was imported from."""


def row_shape(row: Row, places: Places | None = None) -> dict[str, Any]:
    """Return a row's JSON shape; absent fields are left out, `sources` where it has none."""
    fields = msgspec.to_builtins(row)
    kept = {name: fields[name] for name in ROW_FIELDS if name in fields}
    if row.tool_calls:
        kept["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in row.tool_calls
        ]
    if sources := sources_of(row, places or {}):
        kept["sources"] = sources
    return {"role": row.role, "text": row.text, **kept}


def sources_of(row: Row, places: Places) -> list[str]:
    """Return where a row's events stood in their source, each place once."""
    return list(dict.fromkeys(places[version] for version in row.versions if version in places))


def body_of(row: Row) -> str:
    """Return what a row says, its calls and what it answers; safe for a terminal."""
    calls = "".join(f"\n→ {c.name}({c.arguments}) [{c.id}]" for c in row.tool_calls)
    answers = f"[{row.tool_call}] " if row.tool_call else ""
    return plain((answers + row.text + calls).strip("\n"))


def seen_of(row: Row) -> str:
    """Return what the user has seen of a row, in a word."""
    return row.delivery or ("" if row.origin != "synthetic" else "synthetic")


def show_rows(transcript: Transcript, places: Places | None = None, as_of: str = "") -> None:
    """Print a transcript, a row a block. `places`: told below each row that has some."""
    page = console()
    head = (
        f"{plain(transcript.session)}, version {transcript.version}{as_of and ', as of ' + as_of}"
    )
    page.print(Text(head, style="bold"))
    if not transcript.rows:
        page.print("no rows: nothing was said that a model would see")
        return
    grid = table("role", "seen", "text")
    grid.columns[0].no_wrap = grid.columns[1].no_wrap = True
    for shown in transcript.rows:
        style = "dim" if shown.origin == "synthetic" else ""
        body = Text(body_of(shown), style=style)
        if sources := sources_of(shown, places or {}):
            body.append(f"\nfrom {plain(', '.join(sources))}", style="dim")
        grid.add_row(mark(shown.role), mark(seen_of(shown)), body)
    page.print(grid)
