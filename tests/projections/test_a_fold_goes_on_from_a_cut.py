"""A fold that begins where nothing later reaches behind says the same as one from the start."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from msgspec.structs import replace

from histories import HISTORIES, recorded
from onrecord.projections.conversation import Conversation, project
from onrecord.projections.deliveries import deliveries, history_of
from onrecord.projections.findings import findings_of, findings_of_turn
from onrecord.projections.promise import DeliveredNotProjected, check_reading
from onrecord.projections.promised import Reading, read
from onrecord.transcript import events as e
from onrecord.transcript.recorded import Recorded
from stories import end, sent, user

NAMES = ("turn", "message", "delivery", "tool_call", "through_turn", "to_turn")


def elsewhere(event: e.Event) -> e.Event:
    """Return the event of other turns, messages, deliveries and calls."""
    changes: dict[str, Any] = {
        name: f"later {value}" for name in NAMES if (value := getattr(event, name, None))
    }
    if isinstance(event, e.AssistantMessageProduced):
        changes["tool_calls"] = [replace(c, id=f"later {c.id}") for c in event.tool_calls]
    if isinstance(event, e.ContentErased):
        changes["target"] = {k: f"later {v}" for k, v in event.target.items() if k != "session"}
    return replace(event, **changes)


def folded(records: list[Recorded], **begun: Any) -> tuple[Conversation, Reading]:
    conversation = Conversation(**begun)
    for record in records:
        conversation.apply(record)
    return conversation, read(records)


@given(HISTORIES, HISTORIES)
def test_what_lies_before_the_cut_is_not_needed(first: list[e.Event], then: list[e.Event]) -> None:
    records = recorded([*first, *map(elsewhere, then)])
    before, _ = folded(records[: len(first)])
    whole, all_read = folded(records)

    tail, tail_read = folded(
        records[len(first) :], first_order=len(before.turns), tracked=before.tracked
    )

    names = list(whole.turns)[len(before.turns) :]
    assert list(tail.turns) == names
    for name in names:
        shown, same = whole.view_of(name), tail.view_of(name)
        assert (shown.rows, shown.facts.order) == (same.rows, same.facts.order)
        for later in (False, True):
            found = findings_of_turn("s", same, later=later)
            assert found == findings_of_turn("s", shown, later=later)
        assert tail_read.texts([name]) == all_read.texts([name])
        assert tail_read.is_out(name) == all_read.is_out(name)
    assert tail.taken_out() == whole.taken_out() & set(names)
    check_reading("s", all_read, tail.rows(full=True), full=True, turns=names)


@given(HISTORIES)
def test_a_view_is_the_same_until_its_turn_has_changed(history: list[e.Event]) -> None:
    conversation = Conversation()
    known: dict[str, Any] = {}

    for n, record in enumerate(records := recorded(history), 1):
        conversation.apply(record)
        changed = conversation.take_changed()
        views = {name: conversation.view_of(name) for name in conversation.turns}
        assert all(views[name] is view for name, view in known.items() if name not in changed)
        assert conversation.rows(full=True) == project(records[:n], full=True)
        known = views
    assert conversation.take_changed() == set()


def test_what_changes_is_said() -> None:
    conversation = Conversation()
    steps: list[tuple[list[e.Event], set[str]]] = [
        ([user("u1", "Hi"), end("t1")], {"t1"}),
        ([user("u2", "Go on", "t2")], {"t1", "t2"}),  # t1 isn't the last one any more
        ([e.StreamBroken(turn="t3")], {"t2", "t3"}),
        (sent("d1", "Hello", turn="t3"), {"t1", "t2", "t3"}),  # now the session has deliveries
        (sent("d2", "Hello?", turn="t3"), {"t3"}),
        (sent("d3", "Alone"), {"delivery:d3"}),
        ([e.ContentErased(target={"message": "u1"})], {"t1", "t2", "t3", "delivery:d3"}),
    ]

    for events, changed in steps:
        for event in events:
            conversation.evolve(event, conversation.version + 1)
        assert conversation.take_changed() == changed


def test_a_breach_is_found_in_its_turn_and_only_there() -> None:
    records = recorded(
        [
            event
            for n in "123"
            for event in (*sent(f"d{n}", f"Number {n}", turn=f"t{n}"), end(f"t{n}"))
        ]
    )
    reading, rows = read(records), project(records)
    broken = [replace(row, text="Number") if row.turn == "t2" else row for row in rows]

    check_reading("s", reading, broken, turns=["t1", "t3"])
    check_reading("s", reading, [row for row in rows if row.turn == "t2"], turns=["t2"])
    with pytest.raises(DeliveredNotProjected) as raised:
        check_reading("s", reading, broken, turns=["t2"])
    assert raised.value.missing == "Number 2"


def test_what_is_found_in_turns_and_beside_them_is_what_is_found() -> None:
    records = recorded(
        [
            user("u1", "Hi"),
            *sent("d1", "Hello", turn="t1"),
            e.DeliveryAttempted(delivery="d2", turn="t2", text="There"),
            e.ToolResultReceived(turn="t2", tool_call="c9", text="of no call"),
            e.DeliveryConfirmed(delivery="d1", conflicts_with=UUID(int=3)),
        ]
    )
    conversation, _ = folded(records)

    assert [(found.code, found.turn) for found in findings_of("s", conversation)] == [
        ("turn-unclosed", "t1"),
        ("orphan-tool-result", "t2"),
        ("conflicting-record", ""),
    ]


def test_the_history_of_one_delivery_needs_its_records_alone() -> None:
    records = recorded(
        [
            *sent("d1", "One", turn="t1"),
            *sent("d2", "Two", turn="t1"),
            e.DeliveryFailed(delivery="d1"),
        ]
    )
    conversation, _ = folded(records)
    by_version = {record.version: record for record in records if record.version != 3}

    told = history_of(conversation.deliveries["d1"], conversation, by_version)

    assert told == deliveries(records)[0]
    assert told.versions == [1, 2, 5]
