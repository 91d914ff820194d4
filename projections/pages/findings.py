"""What a person sees of findings, and what programs get of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

import msgspec
from rich.text import Text

from onrecord.projections.findings import Finding
from onrecord.projections.pages.tabular import Column, Row
from onrecord.projections.pages.terminal import console, counted, plain, table

if TYPE_CHECKING:
    from onrecord.projections.auditing import Tally

COLUMNS = (
    Column("code", "text"),
    Column("session", "text"),
    Column("turn", "text"),
    Column("versions", "numbers"),
    Column("detail", "text"),
)
"""Of a table for other programs."""


def finding_rows(found: Iterable[Finding]) -> Iterator[Row]:
    """Give findings as rows for these columns."""
    for one in found:
        yield one.code, one.session, one.turn, one.versions, one.detail


def write_findings(found: Iterable[Finding], tally: Tally, out: TextIO) -> None:
    """Write findings as one JSON object, one by one, and then how many of which code there were."""
    between = '{"findings":['
    for one in found:
        out.write(between + msgspec.json.encode(one).decode())
        between = ","
    if between != ",":
        out.write(between)
    counts = {"counts": dict(sorted(tally.by_code.items())), "sessions": tally.sessions}
    out.write(f"],{msgspec.json.encode(counts).decode().removeprefix('{')}\n")


def show_findings(found: Sequence[Finding]) -> None:
    """Print the findings of a session."""
    page = console()
    page.print(Text(plain(found[0].session), style="bold"))
    grid = table("  turn", "finding", "events", "what it means")
    grid.show_header = False
    grid.columns[1].no_wrap = True
    for one in found:
        first, last = one.versions[:3], one.versions[-1:]
        between = ", " if len(one.versions) == 4 else " … "
        shown = ", ".join(map(str, first)) + (f"{between}{last[0]}" if one.versions[3:] else "")
        code = Text(plain(one.code), style="yellow")
        grid.add_row(Text("  " + plain(one.turn)), code, shown, Text(plain(one.detail)))
    page.print(grid)


def show_codes(tally: Tally) -> None:
    """Print how many findings of which code there are, and where most of them."""
    page = console()
    grid = table("finding", "found", "sessions", "most of them in")
    for column in grid.columns[:3]:
        column.no_wrap = True
    for column in grid.columns[1:3]:
        column.justify = "right"
    for code, count in tally.by_code.most_common():
        most = ", ".join(f"{plain(name)} ({n:,})" for name, n in tally.most_in[code])
        grid.add_row(
            Text(plain(code), style="yellow"),
            f"{count:,}", f"{tally.in_sessions[code]:,}", Text(most),
        )  # fmt: skip
    page.print(grid)
    if tally.with_findings > 1:
        page.print()
        page.print(_worst(tally))


def _worst(tally: Tally) -> object:
    grid = table("worst sessions", "found", "of which")
    grid.columns[1].no_wrap, grid.columns[1].justify = True, "right"
    for name, codes in tally.worst:
        parts = ", ".join(f"{plain(code)} {count:,}" for code, count in codes.most_common())
        grid.add_row(Text(plain(name)), f"{codes.total():,}", Text(parts))
    return grid


def show_total(tally: Tally, *, details: bool) -> None:
    """Print how many findings there are in how many sessions, and what tells more."""
    page = console()
    read = counted(tally.sessions, "session")
    if not tally.found:
        page.print(f"nothing found in {read}")
        return
    in_some = f"{tally.with_findings:,} of " if tally.sessions > 1 else ""
    page.print(f"{counted(tally.found, 'finding')} in {in_some}{read}")
    if not details:
        page.print("`onrecord audit SESSION` tells what one means, --details all of them")
