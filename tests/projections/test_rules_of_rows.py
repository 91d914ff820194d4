"""The rules of rows where the incident scenarios are silent: one test a rule."""

from __future__ import annotations

import itertools

from histories import recorded
from onrecord.projections.findings import findings
from onrecord.transcript import events as e
from stories import end, rows_of, sent, shape, user


def codes(*events: e.Event) -> list[str]:
    return [finding.code for finding in findings("s", recorded(list(events)))]


def test_a_message_to_a_finalised_turn_opens_the_next_of_its_name() -> None:
    rows = rows_of(
        user("u1", "one"),
        *sent("d1", "1", turn="t1"),
        end(),
        user("u2", "two"),
        *sent("d2", "2", turn="t1"),
        end(),
        user("u3", "three"),
        *sent("d3", "3", turn="t1"),
    )

    assert [(row.turn, row.text) for row in rows] == [
        ("t1", "one"), ("t1", "1"), ("t1+", "two"), ("t1+", "2"), ("t1++", "three"), ("t1++", "3"),
    ]  # fmt: skip


def test_a_repeated_message_opens_no_turn() -> None:
    rows = rows_of(user("u1", "one"), *sent("d1", "1", turn="t1"), end(), user("u1", "one"))

    assert [row.turn for row in rows] == ["t1", "t1"]


def test_a_message_without_a_turn_is_one_of_its_own() -> None:
    rows = rows_of(user("u1", "a", None), user("u2", "b", None), *sent("d1", "A", turn="u1"))

    assert [(row.turn, row.text) for row in rows] == [("u1", "a"), ("u1", "A"), ("u2", "b")]


def test_a_delivery_goes_to_the_turn_of_its_message() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="A"),
        end(),
        user("u2", "b", "t2"),
        *sent("d1", "A", turn="t2", message="m1"),
    )

    assert [(row.turn, row.text) for row in rows] == [("t1", "a"), ("t1", "A"), ("t2", "b")]


def test_a_message_produced_late_takes_its_delivery_along() -> None:
    rows = rows_of(
        user("u1", "a"),
        user("u2", "b", "t2"),
        *sent("d1", "A", turn="t2", message="m1"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="A"),
    )

    assert [(row.turn, row.text) for row in rows] == [("t1", "a"), ("t1", "A"), ("t2", "b")]


def test_a_delivery_outside_any_turn_is_named_by_itself_and_closed() -> None:
    rows = rows_of(user("u1", "a"), *sent("d9", "It is nine."))

    assert (rows[1].turn, rows[1].delivery) == ("delivery:d9", "delivered")


def test_taken_beats_refused_in_any_order() -> None:
    attempt = e.DeliveryAttempted(delivery="d1", turn="t1", text="Hello.")
    refused = e.DeliveryFailed(delivery="d1", reason="400")
    taken = e.StreamChunkDelivered(delivery="d1", through=6)

    for outcomes in ([refused, taken], [taken, refused]):
        rows = rows_of(user("u1", "a"), attempt, *outcomes)
        assert shape(rows[1:]) == [("assistant", "Hello.", "delivered", "delivered")]


def test_an_outcome_says_nothing_of_another_attempt() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="Sunny."),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="Cloudy.", attempt=2),
        e.DeliveryFailed(delivery="d1", attempt=1, reason="400"),
        e.DeliveryConfirmed(delivery="d1", attempt=2),
    )

    assert shape(rows[1:]) == [("assistant", "Cloudy.", "delivered", "delivered")]


def test_an_attempt_that_starts_over_keeps_the_earlier_text_up_to_there() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="Hello wrold"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="orld", offset=7, attempt=2),
        e.DeliveryRevised(delivery="d1", text="Hello world", attempt=2),
        end(),
    )

    assert shape(rows[1:]) == [("assistant", "Hello world", "delivered", "delivered")]


def test_a_deleted_message_keeps_its_text() -> None:
    rows = rows_of(
        user("u1", "a"), *sent("d1", "Oops", turn="t1"), e.DeliveryRevised(delivery="d1", text="")
    )

    assert rows[1].text == "Oops"


def test_a_stray_result_goes_to_the_last_call_of_its_id() -> None:
    call = e.ToolCall(id="c1", name="run")
    rows = rows_of(
        user("u1", "a"),
        e.AssistantMessageProduced(turn="t1", message="m1", tool_calls=[call]),
        user("u2", "b", "t2"),
        e.ToolResultReceived(turn="t2", tool_call="c1", text="late"),
    )

    assert [(row.role, row.turn) for row in rows] == [
        ("user", "t1"), ("assistant", "t1"), ("tool", "t1"), ("user", "t2"),
    ]  # fmt: skip


def test_the_newest_compaction_gives_the_summary_and_the_full_view_shows_all() -> None:
    story = [
        user("u1", "a"), *sent("d1", "A", turn="t1"), end(),
        e.TranscriptCompacted(through_turn="t1", summary="old"),
        user("u2", "b", "t2"), *sent("d2", "B", turn="t2"), end("t2"),
        e.TranscriptCompacted(through_turn="t2", summary="new"),
        user("u3", "c", "t3"),
    ]  # fmt: skip

    assert [(r.role, r.text) for r in rows_of(*story)] == [("summary", "new"), ("user", "c")]
    assert [r.text for r in rows_of(*story, full=True)] == ["a", "A", "b", "B", "c"]


def test_a_fact_that_contradicts_makes_no_row_and_is_found() -> None:
    known = user("u1", "a")
    other = e.UserMessageReceived(message="u1", turn="t1", text="b", conflicts_with=known.id)
    contradicting = e.TurnFinalized(
        turn="t1", outcome="failed", conflicts_with=recorded([known])[0].id
    )

    assert [row.text for row in rows_of(known, other)] == ["a"]
    assert codes(known, contradicting) == ["conflicting-record"]


def test_an_edit_that_says_the_same_again_is_not_sent_twice() -> None:
    again = e.DeliveryAttempted(delivery="d1", turn="t1", text="OK", attempt=2, op="edit")

    assert codes(user("u1", "a"), *sent("d1", "OK", turn="t1"), again,
                 e.DeliveryConfirmed(delivery="d1"), end()) == []  # fmt: skip


def test_row_ids_are_stable_while_the_session_grows() -> None:
    story = [
        user("u1", "a"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="A", message="m1"),
        e.DeliveryConfirmed(delivery="d1"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="A"),
        end(),
        user("u2", "b", "t2"),
    ]
    ids = [[row.id for row in rows_of(*story[:n])] for n in range(1, len(story) + 1)]

    assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(ids))


def test_a_message_that_was_withdrawn_before_it_arrived_stays_withdrawn() -> None:
    rows = rows_of(e.UserMessageRetracted(message="u1"), user("u1", "my password"), end())

    assert (rows[0].role, rows[0].origin, rows[0].versions) == ("user", "synthetic", (1, 2))
    assert "password" not in repr(rows)


def test_an_outcome_that_comes_first_keeps_the_delivery_in_its_turn() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.StreamChunkDelivered(delivery="d1", through=1),
        *sent("d1", "A", turn="t1"),
    )

    assert [(row.turn, row.text, row.delivery) for row in rows] == [
        ("t1", "a", ""), ("t1", "A", "delivered"),
    ]  # fmt: skip


def test_a_delivery_of_its_own_that_nobody_confirmed_as_a_whole_is_partial() -> None:
    rows = rows_of(
        e.DeliveryAttempted(delivery="d1", text="It is "),
        e.StreamChunkDelivered(delivery="d1", through=6),
    )

    assert shape(rows) == [("assistant", "It is ", "delivered", "partial")]


def test_a_delivery_joins_an_earlier_row_with_its_words_never_a_later_one() -> None:
    rows = rows_of(
        user("u1", "a"), *sent("d1", "Hi.", turn="t1"), *sent("d2", "Hi.", turn="t1", message="m1")
    )

    assert [(row.text, row.message) for row in rows[1:]] == [("Hi.", ""), ("Hi.", "m1")]


def test_texts_of_a_row_are_taken_in_the_order_of_their_attempts() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.DeliveryAttempted(delivery="d1", turn="t1", message="m1", text="One."),
        e.DeliveryAttempted(delivery="d2", turn="t1", message="m1", text="Two."),
        e.DeliveryAttempted(delivery="d1", turn="t1", message="m1", text="Three.", attempt=2),
    )

    assert [row.text for row in rows[1:]] == ["One.", "Two.", "Three."]


def test_a_revision_says_nothing_of_an_earlier_send_that_may_have_arrived() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="Sunny."),
        e.DeliveryFailed(delivery="d1", reason="timed out", definite=False),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="Cloudy.", attempt=2),
        e.DeliveryConfirmed(delivery="d1"),
        e.DeliveryRevised(delivery="d1", text="Cloudy, 18."),
    )

    assert [(row.text, row.delivery) for row in rows[1:]] == [
        ("Sunny.", "in_doubt"), ("Cloudy, 18.", "delivered"),
    ]  # fmt: skip


def test_an_edit_replaces_what_the_message_read_before() -> None:
    rows = rows_of(
        user("u1", "a"),
        *sent("d1", "- one", turn="t1"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="* one", attempt=2, op="edit"),
        e.DeliveryRevised(delivery="d1", text="* one", attempt=2),
    )

    assert shape(rows[1:]) == [("assistant", "* one", "delivered", "delivered")]


def test_deleting_a_message_brings_no_refused_text_back() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="One. "),
        e.StreamChunkDelivered(delivery="d1", through=5),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="Two.", offset=5),
        e.DeliveryFailed(delivery="d1", offset=5, reason="refused"),
        e.DeliveryRevised(delivery="d1", text=""),
    )

    assert rows[1].text == "One. "


def test_a_contradicting_record_begins_no_turn() -> None:
    known = recorded([user("u1", "a")])[0].id
    story = [
        user("u1", "a"),
        e.UserMessageReceived(message="u1", turn="t2", text="b", conflicts_with=known),
    ]

    assert codes(*story) == ["conflicting-record"]


def test_one_row_differs_once_from_the_words_that_were_produced_and_final() -> None:
    assert codes(
        user("u1", "a"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="One."),
        *sent("d1", "Two.", turn="t1", message="m1"),
        end(text="Three."),
    ) == ["delivered-differs"]


def test_turns_may_use_the_same_call_ids() -> None:
    call = e.ToolCall(id="call_0", name="run")
    rows = rows_of(
        user("u1", "a"),
        e.AssistantMessageProduced(turn="t1", message="m1", tool_calls=[call]),
        user("u2", "b", "t2"),
        e.AssistantMessageProduced(turn="t2", message="m2", tool_calls=[call]),
        e.ToolResultReceived(turn="t1", tool_call="call_0", text="1"),
        e.ToolResultReceived(turn="t2", tool_call="call_0", text="2"),
        e.ToolResultReceived(turn="t3", tool_call="call_0", text="3"),
    )

    assert [(row.turn, row.text) for row in rows if row.role == "tool"] == [
        ("t1", "1"),
        ("t2", "2"),
    ]


def test_a_delivery_may_be_called_like_a_message() -> None:
    rows = rows_of(*sent("1", "Ping."), user("1", "a", None), *sent("2", "A.", turn="1"), end("1"))

    assert [(row.role, row.turn) for row in rows] == [
        ("assistant", "delivery:1"), ("user", "1"), ("assistant", "1"),
    ]  # fmt: skip


def test_two_rows_may_read_the_same_where_one_was_produced_and_one_was_revised_so() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="ab"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="ab"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="c", offset=2, attempt=2, op="edit"),
        e.DeliveryRevised(delivery="d1", text="OK."),
        e.AssistantMessageProduced(turn="t1", message="m2", text="OK."),
    )

    assert [(row.text, row.message) for row in rows[1:]] == [("OK.", "m1"), ("OK.", "m2")]


def test_a_message_stands_where_its_first_send_was_refused() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.DeliveryAttempted(delivery="d1", turn="t1", message="m1", text="One."),
        e.DeliveryFailed(delivery="d1", reason="refused"),
        *sent("d2", "Two.", turn="t1", message="m2"),
        *sent("d3", "One, again.", turn="t1", message="m1"),
    )

    assert [row.text for row in rows[1:]] == ["One, again.", "Two."]


def test_a_part_taken_of_no_named_attempt_is_of_the_latest() -> None:
    rows = rows_of(
        user("u1", "a"),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="Sun", message="m1"),
        e.StreamChunkDelivered(delivery="d1", through=3),
        e.DeliveryAttempted(delivery="d1", turn="t1", text="Sunny", message="m1", attempt=2),
        e.StreamChunkDelivered(delivery="d1", through=5),
    )

    assert shape(rows[1:]) == [("assistant", "Sunny", "delivered", "delivered")]
