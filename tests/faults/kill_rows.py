"""What the rows of the kill-point table say beyond what holds for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onrecord.projections.findings import findings
from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    ModelCalled,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.recorded import Recorded

NOTHING_YET = ("received", "in-commit:1")
NOT_BEGUN = ("received-committed", "acknowledged")
UNDER_WAY = ("in-attempt-commit", "attempted", "partly-written", "answer-unread", "answer-read")
WHOLE_ANSWERS = ("whole", "split")


def broken_rows(
    style: str, kill: str, before: Sequence[Recorded], after: Sequence[Recorded]
) -> Iterator[str]:
    """Say what the table wants of a kill and isn't so.

    `kill`: the failpoint, as armed; `before`, `after`: the session before and after recovery.
    """
    name = kill.partition(":")[0]
    asked = [record for record in after if isinstance(record.event, ModelCalled)]
    if kill in NOTHING_YET or name in NOTHING_YET:
        if before:
            yield f"nothing was committed, and there is {before}"
        if sum(isinstance(record.event, UserMessageReceived) for record in after) != 1:
            yield "the platform's second sending isn't one message"
    if name in NOT_BEGUN and style in WHOLE_ANSWERS and len(asked) != 1:
        yield f"a turn that wasn't begun was begun {len(asked)} times"
    if name == "answer-durable" and style in WHOLE_ANSWERS and len(asked) != 1:
        yield "a durable answer was asked for again"
    confirmed = any(isinstance(record.event, DeliveryConfirmed) for record in after)
    if style == "looked up" and name in UNDER_WAY and not confirmed:
        yield "the platform could be asked, and the answer isn't known to be delivered"
    if name == "retry-after" and not any(
        isinstance(record.event, DeliveryFailed) and record.event.not_before for record in before
    ):
        yield "the time before which nothing may be sent isn't on record"
    if name == "markup-refused":
        yield from _one_delivery(after)
    if name == "tool-ran":
        found = {finding.code for finding in findings("chat", after)}
        if "unanswered-tool-call" not in found:
            yield f"the tool's result isn't known, and the audit says {found}"
    if name == "before-final" and sum(isinstance(r.event, TurnFinalized) for r in after) != 1:
        yield "the turn isn't closed once"


def _one_delivery(after: Sequence[Recorded]) -> Iterator[str]:
    attempts = [r.event for r in after if isinstance(r.event, DeliveryAttempted)]
    if len({event.delivery for event in attempts}) != 1 or attempts[-1].format is not None:
        yield f"the plain text isn't the same delivery: {attempts}"
