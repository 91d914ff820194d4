"""Short words for telling a story of one session, and the rows that it gives."""

from __future__ import annotations

from histories import recorded
from onrecord.projections.conversation import project
from onrecord.projections.promise import check
from onrecord.projections.rows import Row
from onrecord.transcript import events as e


def rows_of(*events: e.Event, full: bool = False) -> list[Row]:
    records = recorded(list(events))
    rows = project(records, full=full)
    check("s", records, rows, full=full)
    return rows


def shape(rows: list[Row]) -> list[tuple[str, ...]]:
    return [(row.role, row.text, row.origin, row.delivery) for row in rows]


def user(message: str, text: str, turn: str | None = "t1") -> e.Event:
    return e.UserMessageReceived(message=message, text=text, turn=turn)


def sent(delivery: str, text: str, **fields: object) -> list[e.Event]:
    return [
        e.DeliveryAttempted(delivery=delivery, text=text, **fields),  # type: ignore[arg-type]
        e.DeliveryConfirmed(delivery=delivery),
    ]


def end(turn: str = "t1", outcome: str = "completed", text: str | None = None) -> e.Event:
    return e.TurnFinalized(turn=turn, outcome=outcome, text=text)
