"""Where the end of the log begins."""

from __future__ import annotations

from typing import Any

from onrecord.transcript.storage.dialect import per_dialect
from onrecord.transcript.storage.journal import last_position

_FIRST_OF_LAST = per_dialect(
    lambda say: (
        "SELECT coalesce(min(position), 1) FROM (SELECT r.position FROM records r "
        f"WHERE {say.settled} ORDER BY r.position DESC LIMIT ?) AS latest"
    )
)


def before_last(connection: Any, count: int) -> int:
    """Return a position after which the log has so many records, or all that it has; 0: from its start.

    Only records are counted before which none can still be committed.
    """
    if count == 0:
        return last_position(connection)
    return int(connection.execute(_FIRST_OF_LAST(connection.dialect), (count,)).fetchone()[0]) - 1
