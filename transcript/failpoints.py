"""Named places where a process can be killed, one or more for each row of the kill-point table.

`ONRECORD_FAILPOINT=name` or `name:n` sends the process the failpoint's signal at the first (or n-th)
time that it comes by. With the variable unset, `hit` and `hit_commit` are functions that do nothing.
Callers say `failpoints.hit("…")`, through the module, so that `arm` reaches them after import too.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Mapping

from onrecord.transcript.events import DeliveryAttempted
from onrecord.transcript.recorded import Recorded

VARIABLE = "ONRECORD_FAILPOINT"

ROWS: Mapping[str, str] = {
    "received": "message received, not appended",
    "in-commit": "in the commit",
    "received-committed": "committed, not acknowledged upstream",
    "acknowledged": "acknowledged, turn not begun",
    "model-text": "model text in memory only",
    "tool-ran": "tool ran, result not appended",
    "answer-durable": "answer produced and durable, nothing attempted",
    "in-attempt-commit": "in the attempt's commit",
    "attempted": "attempted, socket not written / partly written / accepted and answer unread",
    "partly-written": "attempted, socket not written / partly written / accepted and answer unread",
    "answer-unread": "attempted, socket not written / partly written / accepted and answer unread",
    "answer-read": "answer read, confirmation not committed",
    "confirmed": "confirmed",
    "between-edits": "between two edits",
    "between-parts": "part 1 of a split confirmed, part 2 not attempted",
    "retry-after": "waiting for retry-after",
    "markup-refused": "refused for its markup, fallback not yet tried",
    "before-final": "last part confirmed, no TurnFinalized",
    "projection-behind": "appended, projection behind",
    "recovery-sending": "in recovery's own sending",
    "terminated": "SIGTERM between attempt and answer",
    "stopped": "old process not dead (SIGSTOP), new one runs",
}
"""Failpoint → the row of the kill-point table that it makes happen."""

_SIGNALS = {"terminated": signal.SIGTERM, "stopped": getattr(signal, "SIGSTOP", signal.SIGTERM)}
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _nothing(name: str) -> None:
    """Do nothing: no failpoint is armed."""


def _nothing_commit(records: Iterable[Recorded]) -> None:
    """Do nothing: no failpoint is armed."""


hit: Callable[[str], None] = _nothing
"""Say that the process is at the failpoint `name`."""

hit_commit: Callable[[Iterable[Recorded]], None] = _nothing_commit
"""Say that `records` are written and their transaction isn't committed yet."""


def arm(failpoint: str) -> None:
    """Choose the failpoint `name` or `name:n` (n from 1); empty: none. ValueError if unknown."""
    global hit, hit_commit  # rebinding is what makes an unarmed failpoint free
    if not failpoint:
        hit, hit_commit = _nothing, _nothing_commit
        return
    chosen, _, count = failpoint.partition(":")
    if chosen not in ROWS:
        known = ", ".join(ROWS)
        raise ValueError(f"{VARIABLE}={failpoint}: no such failpoint; known are {known}")
    if count and not (count.isdecimal() and int(count) > 0):
        raise ValueError(f"{VARIABLE}={failpoint}: after the colon stands a number from 1")
    left = int(count or 1)

    def armed(name: str) -> None:
        nonlocal left
        if name != chosen:
            return
        left -= 1
        if left == 0:
            os.kill(os.getpid(), _SIGNALS.get(chosen, _KILL))

    def armed_commit(records: Iterable[Recorded]) -> None:
        attempt = any(isinstance(record.event, DeliveryAttempted) for record in records)
        armed("in-attempt-commit" if attempt else "in-commit")

    hit, hit_commit = armed, armed_commit


arm(os.environ.get(VARIABLE, ""))
