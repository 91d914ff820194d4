"""When something happened, as other programs write it, and whether it can still go on."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from onrecord.transcript.storage import journal

STILL = 600
"""Seconds without a change after which nothing is added any more to what a file ends with."""


def is_still(path: Path) -> bool:
    """Tell whether a file was left alone for so long that its last turn can't go on."""
    return time.time() - path.stat().st_mtime > STILL


def is_past(at: int | None) -> bool:
    """Tell whether what was said at a time (µs since 1970) can't go on; of no time, it can't."""
    return at is None or time.time() - at / 1_000_000 > STILL


def microseconds(given: object) -> int | None:
    """Return a time in µs since 1970: from RFC 3339, or from ms since 1970. None for one that is neither."""
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            moment = datetime.fromtimestamp(given / 1000, UTC)
        elif isinstance(given, str):
            moment = datetime.fromisoformat(given)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return journal.microseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
