"""What a person sees of rows, and their JSON shape."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.text import Text

from onrecord.projections.pages.terminal import console, mark, plain, table
from onrecord.projections.rows import Row
from onrecord.projections.transcript import Transcript

ROW_FIELDS = ("role", "text", "origin", "delivery", "tool_calls", "tool_call", "turn", "versions")


def row_shape(row: Row) -> dict[str, Any]:
    """Return a row's JSON shape; absent fields are left out."""
    fields = msgspec.to_builtins(row)
    kept = {name: fields[name] for name in ROW_FIELDS if name in fields}
    if row.tool_calls:
        kept["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in row.tool_calls
        ]
    return {"role": row.role, "text": row.text, **kept}


def show_rows(transcript: Transcript) -> None:
    """Print a transcript, a row a block."""
    page = console()
    page.print(Text(f"{plain(transcript.session)}, version {transcript.version}", style="bold"))
    if not transcript.rows:
        page.print("no rows: nothing was said that a model would see")
        return
    grid = table("role", "seen", "text")
    grid.columns[0].no_wrap = grid.columns[1].no_wrap = True
    for shown in transcript.rows:
        calls = "".join(f"\n→ {c.name}({c.arguments}) [{c.id}]" for c in shown.tool_calls)
        answers = f"[{shown.tool_call}] " if shown.tool_call else ""
        body = plain((answers + shown.text + calls).strip("\n"))
        seen = shown.delivery or ("" if shown.origin != "synthetic" else "synthetic")
        style = "dim" if shown.origin == "synthetic" else ""
        grid.add_row(mark(shown.role), mark(seen), Text(body, style=style))
    page.print(grid)
