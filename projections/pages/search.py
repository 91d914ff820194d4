"""What a person sees of a search, and its JSON shape."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from rich.padding import Padding
from rich.text import Text

from onrecord.projections.pages.rows import row_shape, seen_of
from onrecord.projections.pages.terminal import console, counted, mark, plain
from onrecord.projections.search import Hit, said, snippet

INDENT = 4
"""Characters before what was said and the command that shows it."""


def hit_shape(hit: Hit, words: Sequence[str]) -> dict[str, Any]:
    """Return the JSON shape of a hit: the row as `show` has it, and where the words stand."""
    part = snippet(said(hit.row), words)
    return {
        "session": hit.session,
        "at": hit.at,
        "in_view": hit.in_view,
        "snippet": part.text,
        "marks": part.marks,
        "see": see(hit),
        **row_shape(hit.row),
    }


def see(hit: Hit) -> str:
    """Return the command that shows the row where it stands."""
    full = "" if hit.in_view else " --full"
    return f"onrecord show {shlex.quote(hit.session)} --at {hit.row.versions[-1]}{full}"


def show_hits(hits: Sequence[Hit], words: Sequence[str], *, more: bool) -> None:
    """Print what was found, a row a block, the newest first. `more`: there are others."""
    page = console()
    if not hits:
        page.print("nothing found")
        return
    for hit in hits:
        head = Text(plain(hit.session), style="bold")
        head.append(f"  {plain(hit.row.turn)}  {hit.at:%Y-%m-%d %H:%M:%S}Z  ", style="not bold")
        head.append_text(mark(hit.row.role))
        if seen := seen_of(hit.row):
            head.append(", ", style="not bold").append_text(mark(seen))
        if not hit.in_view:
            head.append("  out of the model's view", style="not bold yellow")
        page.print(head)
        page.print(Padding(_quoted(hit, words), (0, 0, 0, INDENT), expand=False))
        page.print(Text(" " * INDENT + plain(see(hit)), style="dim"), soft_wrap=True)
    if more:
        page.print(
            f"the newest {counted(len(hits), 'row')}; there are more: --limit, or more words"
        )


def _quoted(hit: Hit, words: Sequence[str]) -> Text:
    part = snippet(said(hit.row), words)
    quoted, at = Text(), 0
    for start, end in part.marks:
        quoted.append(plain(part.text[at:start]))
        quoted.append(plain(part.text[start:end]), style="bold reverse")
        at = end
    return quoted.append(plain(part.text[at:]))
