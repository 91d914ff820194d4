"""Times as the command line says them: a moment, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from onrecord.projections.cli.command import fail

_AGO = re.compile(r"([0-9]{1,6})(s|m|h|d|w)")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment_of(option: str, said: str | None) -> datetime | None:
    """Return the moment of `2026-11-30`, `2026-11-30T14:00Z` (UTC where no zone is said) or `36h`.

    None if nothing is said; leave with one line where it is no time.
    """
    if said is None:
        return None
    try:
        if ago := _AGO.fullmatch(said.strip()):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        moment = datetime.fromisoformat(said.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (OverflowError, ValueError):
        fail(
            f"{option} takes a time (2026-11-30, 2026-11-30T14:00Z) or how long ago "
            f"(90s, 30m, 36h, 7d, 2w), not {said!r}"
        )
