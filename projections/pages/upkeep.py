"""What a person sees of a check or a verification, and its JSON shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from onrecord.projections.pages.terminal import console, counted, plain, table

if TYPE_CHECKING:
    from onrecord.projections.stored.check import Fault
    from onrecord.transcript.verify import Verification

_TAIL = "A cut tail, or a chain that was computed anew, shows only against a head kept elsewhere."


def verification_shape(result: Verification) -> dict[str, Any]:
    """Return the JSON shape of a verification."""
    faults = [
        {
            "session": fault.session,
            "version": fault.version,
            "position": fault.position,
            "kind": fault.kind,
            "detail": fault.detail,
        }
        for fault in result.faults
    ]
    heads = [f"{name}:{version}:{chain.hex()}" for name, (version, chain) in result.heads.items()]
    return {
        "records": result.records,
        "sessions": result.sessions,
        "faults": faults,
        "heads": heads,
    }


def show_faults(faults: Sequence[Fault], sessions: int, behind: int) -> None:
    """Print what is stored and doesn't follow from the log, and how to mend it.

    `behind`: how many of the sessions have records that aren't projected.
    """
    page = console()
    if behind:
        there = f"{sessions - behind:,} of {counted(sessions, 'session')}"
        page.print(f"{there} stored up to the newest record; `onrecord project` adds the rest")
    if not faults:
        page.print("all that is stored follows from the log")
        return
    grid = table("session", "turn", "what is wrong")
    for one in faults:
        grid.add_row(Text(plain(one.session)), Text(plain(one.turn)), Text(plain(one.detail)))
    page.print(grid)
    page.print(f"{counted(len(faults), 'fault')}; `onrecord rebuild` projects the log anew")


def show_verification(result: Verification, heads: Sequence[object]) -> None:
    """Print the outcome of a verification, and what it can't see."""
    page = console()
    first, records = result.first_fault, counted(result.records, "record")
    if first is not None:
        where = f"session {plain(first.session)!r}, version {first.version}"
        page.print(Text(f"first fault: {where}: {plain(first.detail)}", style="red"))
        page.print(f"{counted(len(result.faults), 'fault')} in {records}")
    else:
        page.print(
            Text(f"{records} in {counted(result.sessions, 'session')} verified", style="green")
        )
    if not heads:
        page.print(_TAIL, soft_wrap=True)
