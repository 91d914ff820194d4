"""What a person sees of findings."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from onrecord.projections.findings import Finding
from onrecord.projections.pages.terminal import console, counted, plain, table


def show_findings(found: Sequence[Finding], sessions: int) -> None:
    """Print findings, session by session, and how many sessions were read."""
    page = console()
    read = counted(sessions, "session")
    if not found:
        page.print(f"nothing found in {read}")
        return
    for session in dict.fromkeys(one.session for one in found):
        page.print(Text(plain(session), style="bold"))
        grid = table("  turn", "finding", "events", "what it means")
        grid.show_header = False
        grid.columns[1].no_wrap = True
        for one in found:
            if one.session == session:
                numbers = [str(version) for version in one.versions]
                shown = ", ".join(numbers[:3]) + (f" … {numbers[-1]}" if numbers[3:] else "")
                code = Text(one.code, style="yellow")
                grid.add_row(Text("  " + plain(one.turn)), code, shown, Text(plain(one.detail)))
        page.print(grid)
    page.print(f"{counted(len(found), 'finding')} in {read}")
