"""Whatever is recorded, in whatever order: the promise holds, and folding on is folding anew."""

from __future__ import annotations

from hypothesis import given, settings

from histories import HISTORIES, recorded
from onrecord.projections.conversation import Conversation, project
from onrecord.projections.findings import findings_of
from onrecord.projections.promise import check
from onrecord.projections.rows import Row
from onrecord.transcript.events import Event

EXAMPLES = 4 * settings().max_examples  # cheap ones


def well_formed(rows: list[Row], open_turns: set[str]) -> None:
    """Hold a full view against what every transcript keeps to, whatever happened."""
    ids = [row.id for row in rows]
    assert len(ids) == len(set(ids))
    pending: list[str] = []
    for row in rows:
        if row.role == "tool":
            assert row.tool_call in pending
            pending.remove(row.tool_call)
        else:
            pending = [call.id for call in row.tool_calls]
        if row.role == "assistant":
            assert row.text.strip() or row.tool_calls
    for turn in {row.turn for row in rows} - open_turns:
        last = [row for row in rows if row.turn == turn][-1]
        assert last.role == "assistant"
        assert last.text.strip()


@given(HISTORIES)
@settings(max_examples=EXAMPLES, deadline=None)
def test_every_prefix_keeps_the_promise(events: list[Event]) -> None:
    records = recorded(events)
    conversation = Conversation()

    for n, record in enumerate(records, 1):
        conversation.apply(record)
        rows, full = conversation.rows(), conversation.rows(full=True)
        check("s", records[:n], rows)
        check("s", records[:n], full, full=True)
        open_turns = {name for name, facts in conversation.turns.items() if not facts.closed}
        well_formed(full, open_turns)
        findings_of("s", conversation)
    assert conversation.rows() == project(records)
    assert conversation.rows(full=True) == project(records, full=True)
