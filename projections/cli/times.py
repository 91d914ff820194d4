"""Times as the command line says them: a moment, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from onrecord.projections.cli.command import fail

_AGO = re.compile(r"([0-9]{1,6})(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment_of(option: str, said: str | None) -> datetime | None:
    """Return the moment that an option says, None if it says nothing."""
    return None if said is None else moment(option, said)


def moment(option: str, said: str, also: str = "") -> datetime:
    """Return the moment of `2026-11-30`, `2026-11-30T14:00Z` (UTC where no zone is said) or `36h`.

    Leave with one line where it is no time. `also`: what else the option takes.
    """
    try:
        if ago := _AGO.fullmatch(said.strip()):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(said.strip().removesuffix("UTC").strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (OverflowError, ValueError):
        fail(
            f"{option} takes {also}a time (2026-11-30, 2026-11-30T14:00Z) or how long ago "
            f"(90s, 30m, 36h, 7d, 2w), not {said!r}"
        )
