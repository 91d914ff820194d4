"""What a person sees of model calls whose input was rendered again, and its JSON shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from onrecord.projections.pages.difference import difference_shape, lines_of, put
from onrecord.projections.pages.replay import SHOWN
from onrecord.projections.pages.terminal import console, counted, plain
from onrecord.projections.rerendering import Changed, Rerendering


def rerendering_shape(found: Sequence[Rerendering]) -> dict[str, Any]:
    """Return the JSON shape: a session an entry, and the sums."""
    return {
        "calls": sum(one.calls for one in found),
        "same": sum(one.same for one in found),
        "unverifiable": sum(one.unverifiable for one in found),
        "sessions": [_session_shape(one) for one in found],
    }


def _session_shape(one: Rerendering) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "session": one.session,
        "calls": one.calls,
        "same": one.same,
        "unverifiable": one.unverifiable,
    }
    if (changed := one.changed) is not None:
        shape["differs"] = {
            "version": changed.version,
            "call": changed.call,
            "turn": changed.turn,
            "at": changed.at,
            "profile": changed.profile,
            "cause": changed.cause,
            "events": changed.events,
            "changes": [difference_shape(difference) for difference in changed.differences],
        }
    return shape


def show_rerendering(found: Sequence[Rerendering]) -> None:
    """Print the first call of each session whose input would differ now, and the sums."""
    page = console()
    for one in found:
        if one.changed is None:
            continue
        page.print(Text(plain(one.session), style="bold"))
        page.print(Text(f"  {_where(one.changed)}", style="red"))
        page.print(Text(f"  {plain(one.changed.cause)}"))
        for difference in one.changed.differences:
            put(page, lines_of(page, difference, "    ", limit=SHOWN))
    calls, same = sum(one.calls for one in found), sum(one.same for one in found)
    differing = sum(one.changed is not None for one in found)
    blind = sum(one.unverifiable for one in found)
    told = [f"{counted(same, 'model call')} of {calls:,} would be given the same input now"]
    if differing:
        told.append(f"{counted(differing, 'session')} with one that would not")
    if blind:
        told.append(f"{blind} unverifiable, which kept no digest or a profile unknown here")
    if left := calls - same - blind - differing:
        told.append(f"{left} after the first that differs not looked at")
    page.print(Text("; ".join(told), style="" if differing else "green"))


def _where(changed: Changed) -> str:
    profile = f" under profile {plain(changed.profile)}" if changed.profile else ""
    return (
        f"version {changed.version}: call {plain(changed.call)} of turn {plain(changed.turn)} would "
        f"be given another input now (of version {changed.at}{profile})"
    )
