"""The row of a transcript."""

from __future__ import annotations

import msgspec

from onrecord.transcript.events import ToolCall


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One row of the transcript.

    `role`: user, assistant, tool or summary. `id`: stable as the session grows. `origin`: what
    made the row (produced, delivered, recovered, final, synthetic), empty on plain user, tool and
    summary rows. `delivery`: what the user has seen of it (undelivered, in_doubt, partial,
    delivered, untracked), on assistant rows with text that aren't synthetic. `produced`: the
    model's own wording where the user saw another. `versions`: the events that the row was made
    of, ascending. `is_error`: the tool reported an error.
    """

    role: str
    text: str
    id: str = ""
    origin: str = ""
    delivery: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call: str = ""
    turn: str = ""
    versions: tuple[int, ...] = ()
    message: str = ""
    produced: str | None = None
    is_error: bool = False
    reasoning: str | None = None
