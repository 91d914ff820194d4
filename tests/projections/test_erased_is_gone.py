"""Erasure: every text of its target goes, the structure and what is said afterwards stay."""

from __future__ import annotations

from onrecord.transcript import events as e
from stories import end, rows_of, sent, user


def test_an_erased_turn_keeps_its_structure_and_loses_every_text() -> None:
    call = e.ToolCall(id="c1", name="run", arguments='{"secret": 1}')
    rows = rows_of(
        user("u1", "my secret"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="secret?", tool_calls=[call]),
        e.ToolResultReceived(turn="t1", tool_call="c1", text="a secret"),
        *sent("d1", "the secret", turn="t1"),
        end(text="the secret"),
        e.ContentErased(target={"turn": "t1"}, reason="asked"),
    )

    assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant"]
    assert "secret" not in repr(rows)


def test_an_erased_message_takes_its_deliveries_and_its_summary_along() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="the secret"),
        *sent("d1", "the secret", turn="t1"),
        end(text="the secret"),
        e.TranscriptCompacted(through_turn="t1", summary="a secret was told"),
        e.ContentErased(target={"message": "m1"}),
    )

    assert "secret" not in repr(rows)


def test_what_is_said_after_an_erasure_stands() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="secret "),
        e.ContentErased(target={"turn": "t1"}),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="and more", offset=7),
    )

    assert rows[1].text == "[erased]and more"
