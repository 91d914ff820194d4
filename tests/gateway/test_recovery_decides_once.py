"""After a crash: what is known of each turn, and decisions that add nothing when taken again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onrecord.gateway.delivery import AlreadyAttempted, Outbox
from onrecord.gateway.inbox import Inbox
from onrecord.gateway.recovery import Begin, Close, Plan, Recovery, Send, Settle
from onrecord.projections.rows import Row
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    Event,
    ModelCalled,
    Source,
    StreamChunkDelivered,
    Target,
    ToolCall,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

Rows = Callable[[str], list[Row]]
Make = Callable[..., Any]

CHAT = Target(platform="local", chat="c1")
USER = UserMessageReceived(
    message="u1", turn="t1", text="Hi", source=Source(platform="local", chat="c1", message="1")
)
TEXT = "First part. Second part."
PRODUCED = AssistantMessageProduced(turn="t1", message="m1", text=TEXT)


def attempt(text: str, offset: int = 0, number: int = 1, **about: Any) -> DeliveryAttempted:
    return DeliveryAttempted(
        delivery="m1/out", turn="t1", message="m1", text=text, offset=offset, attempt=number,
        target=Target(platform="local", chat="c1"), op="send", **about,
    )  # fmt: skip


def taken(through: int, number: int = 1) -> StreamChunkDelivered:
    return StreamChunkDelivered(
        delivery="m1/out", through=through, attempt=number, platform_message=f"p{through}"
    )


def failed(offset: int = 0, number: int = 1, **about: Any) -> DeliveryFailed:
    return DeliveryFailed(delivery="m1/out", offset=offset, attempt=number, reason="so", **about)


def plans(log: TranscriptLog) -> list[Plan]:
    """What a process finds that starts now and ends at once."""
    recovery = Recovery(log, "new")
    found = recovery.plans()
    recovery.release()
    recovery = Recovery(log, "new")
    assert recovery.plans() == [replace(p, lease=recovery.leases[p.session]) for p in found]
    return recovery.plans()


def only(log: TranscriptLog, kind: type[Any]) -> Any:
    before = log.version("s")
    (plan,) = plans(log)
    assert isinstance(plan, kind)
    assert log.version("s") == before
    return plan


def left(log: TranscriptLog, *events: Event) -> None:
    log.append("s", *events)


def test_a_message_that_nobody_began_on(log: TranscriptLog) -> None:
    left(log, USER)

    plan = only(log, Begin)

    assert plan.texts == {"u1": "Hi"}
    assert plan.target == Target(platform="local", chat="c1")
    log.append("s", ModelCalled(turn=plan.turn, call="c1"), lease=plan.lease)
    only(log, Close)


def test_a_withdrawn_message_is_not_begun_on(log: TranscriptLog) -> None:
    Inbox(log).receive("s", "Hi", message="u1")
    Inbox(log).retract("s", "u1")

    only(log, Close).close()

    assert plans(log) == []


def test_the_model_was_asked_and_its_text_is_lost(log: TranscriptLog, rows: Rows) -> None:
    left(log, USER, ModelCalled(turn="t1", call="c1"))

    only(log, Close).close()

    assert plans(log) == []
    assert [r.origin for r in rows("s")] == ["", "synthetic"]


def test_a_tool_whose_result_is_not_known_is_not_run_again(log: TranscriptLog) -> None:
    left(
        log,
        USER,
        AssistantMessageProduced(
            turn="t1", message="m0", tool_calls=[ToolCall("k1", "pay"), ToolCall("k2", "ask")]
        ),
    )

    assert only(log, Close).unanswered == ("k1", "k2")


def test_a_durable_answer_is_sent_without_the_model(
    log: TranscriptLog, platform: Make, book: Any, rows: Rows
) -> None:
    left(log, USER, PRODUCED)

    plan = only(log, Send)
    assert (plan.text, plan.taken, plan.attempt) == (TEXT, "", 1)
    assert Outbox(log, platform()).resume(plan).delivered
    only(log, Close).close("completed")

    assert plans(log) == []
    assert book.texts == [TEXT]
    assert [(r.text, r.delivery) for r in rows("s")][1:] == [(TEXT, "delivered")]


@pytest.mark.parametrize("closed", [True, False])
def test_an_answer_that_is_not_to_be_sent(log: TranscriptLog, closed: bool, rows: Rows) -> None:
    left(log, USER, PRODUCED, *([TurnFinalized(turn="t1")] if closed else []))

    only(log, Send).drop()

    if not closed:
        only(log, Close).close()
    assert plans(log) == []
    assert [r.delivery for r in rows("s")] == ["", "undelivered"]


def test_a_text_in_doubt_is_settled_as_taken(log: TranscriptLog, rows: Rows) -> None:
    left(log, USER, PRODUCED, attempt(TEXT))

    plan = only(log, Settle)
    assert (plan.text, plan.doubt, plan.repeatable) == (TEXT, 1, False)
    plan.confirm("p9")

    only(log, Close)
    assert [r.delivery for r in rows("s")] == ["", "delivered"]


def test_a_text_in_doubt_is_settled_as_refused_and_then_sent(
    log: TranscriptLog, platform: Make, book: Any, rows: Rows
) -> None:
    left(log, USER, PRODUCED, attempt(TEXT))

    only(log, Settle).refute()
    plan = only(log, Send)
    assert Outbox(log, platform()).resume(plan).delivered

    only(log, Close)
    assert book.texts == [TEXT]
    assert [(r.text, r.delivery) for r in rows("s")][1:] == [(TEXT, "delivered")]


@pytest.mark.parametrize("said", [True, False])
def test_a_text_left_in_doubt_is_said_so_and_asked_once(
    log: TranscriptLog, rows: Rows, said: bool
) -> None:
    left(log, USER, PRODUCED, attempt(TEXT), *([failed(definite=False)] if said else []))

    only(log, Settle).leave()
    only(log, Close).close()

    assert plans(log) == []
    assert [r.delivery for r in rows("s")] == ["", "in_doubt"]


def test_sending_a_doubt_again_is_the_callers_word(
    log: TranscriptLog, platform: Make, book: Any, rows: Rows
) -> None:
    left(log, USER, PRODUCED, attempt(TEXT))

    plan = only(log, Settle)
    assert Outbox(log, platform()).resume(plan).delivered
    with pytest.raises(AlreadyAttempted):
        Outbox(log, platform()).resume(plan)

    only(log, Close)
    assert book.texts == [TEXT]
    assert [(r.text, r.delivery) for r in rows("s")][1:] == [(TEXT, "delivered")]


def test_the_rest_of_a_split_is_sent_once(
    log: TranscriptLog, platform: Make, book: Any, rows: Rows
) -> None:
    left(log, USER, PRODUCED, attempt("First part. "), taken(12))

    plan = only(log, Send)
    assert (plan.taken, plan.text, plan.attempt) == ("First part. ", "Second part.", 1)
    assert plan.platform_messages == ["p12"]
    assert Outbox(log, platform(limit=12)).resume(plan).delivered

    only(log, Close)
    assert book.texts == ["Second part."]
    assert [(r.text, r.delivery) for r in rows("s")][1:] == [(TEXT, "delivered")]


def test_a_stream_by_edits_goes_on_in_its_message(
    log: TranscriptLog, platform: Make, book: Any, rows: Rows
) -> None:
    book.messages["p12"] = "First part. "
    left(log, USER, PRODUCED, attempt("First part. "), taken(12))

    assert Outbox(log, platform(streaming="edit")).resume(only(log, Send)).delivered

    assert book.texts == [TEXT]
    assert [(r.text, r.delivery) for r in rows("s")][1:] == [(TEXT, "delivered")]


def test_a_part_in_doubt_after_parts_that_are_not(log: TranscriptLog, rows: Rows) -> None:
    left(log, USER, PRODUCED, attempt("First part. "), taken(12), attempt("Second", 12))

    plan = only(log, Settle)
    assert (plan.taken, plan.text, plan.complete) == ("First part. ", "Second", False)
    plan.confirm("p2")

    plan = only(log, Send)
    assert (plan.taken, plan.text) == ("First part. Second", " part.")


def test_an_edit_in_doubt_may_be_repeated(log: TranscriptLog) -> None:
    left(log, USER, PRODUCED, attempt("First part. "), taken(12))
    edit = attempt("Second part.", 12)
    left(log, DeliveryAttempted(**{**_fields(edit), "op": "edit"}))

    assert only(log, Settle).repeatable


def _fields(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in event.__struct_fields__ if name != "id"}


def test_an_answer_goes_where_its_placeholder_stands(
    log: TranscriptLog, platform: Make, book: Any, rows: Rows
) -> None:
    outbox = Outbox(log, platform(streaming="edit"))
    left(log, USER)
    outbox.begin("s", CHAT, turn="t1", message="m1", placeholder="…")
    left(log, PRODUCED)

    plan = only(log, Send)
    assert plan.platform_messages == ["p1"]
    assert outbox.resume(plan).delivered

    assert book.texts == [TEXT]
    assert [(r.text, r.delivery) for r in rows("s")][1:] == [(TEXT, "delivered")]


def test_a_first_edit_in_doubt_is_repeated_in_its_placeholder(
    log: TranscriptLog, platform: Make, book: Any, rows: Rows
) -> None:
    outbox = Outbox(log, platform(streaming="edit"), tries=1)
    left(log, USER)
    reply = outbox.begin("s", CHAT, turn="t1", message="m1", placeholder="…")
    book.script.append("500")
    reply.write("First part. ")
    left(log, PRODUCED)

    plan = only(log, Settle)
    assert plan.repeatable
    outbox.resume(plan)
    only(log, Close)

    assert book.texts == ["First part."]


def test_the_time_of_a_rate_limit_survives_the_restart(
    log: TranscriptLog, platform: Make, book: Any
) -> None:
    until = datetime.now(UTC) + timedelta(seconds=0.3)
    left(log, USER, PRODUCED, attempt(TEXT), failed(not_before=until, evidence="answer"))

    plan = only(log, Send)
    assert plan.not_before == until
    assert (plan.attempt, plan.formats_tried) == (2, ())
    assert Outbox(log, platform()).resume(plan).delivered

    again = next(r for r in log.read("s") if getattr(r.event, "attempt", 0) == 2)
    assert again.recorded_at >= until
    assert book.texts == [TEXT]


def test_a_refused_markup_has_its_fallback_to_come(
    log: TranscriptLog, platform: Make, book: Any, rows: Rows
) -> None:
    left(log, USER, PRODUCED, attempt(TEXT, format="html"), failed(evidence="answer"))

    plan = only(log, Send)
    assert plan.formats_tried == ("html",)
    assert Outbox(log, platform(formats=("html", None))).resume(plan).delivered

    assert [r["text"] for r in book.requests] == [TEXT]
    assert [(r.text, r.delivery) for r in rows("s")][1:] == [(TEXT, "delivered")]


def test_a_text_refused_for_good_is_not_sent_again(log: TranscriptLog) -> None:
    left(log, USER, PRODUCED, attempt(TEXT), failed(evidence="refused"))

    only(log, Close)


def test_delivered_and_not_finalised(log: TranscriptLog, rows: Rows) -> None:
    left(log, USER, PRODUCED, attempt(TEXT), DeliveryConfirmed(delivery="m1/out"))

    plan = only(log, Close)
    first, second = plan.close(), plan.close()

    assert first == second
    assert plans(log) == []
    assert [r.delivery for r in rows("s")] == ["", "delivered"]


@pytest.mark.parametrize("decision", ["confirm", "refute", "leave"])
def test_deciding_twice_adds_nothing(log: TranscriptLog, decision: str) -> None:
    left(log, USER, PRODUCED, attempt(TEXT))
    plan = only(log, Settle)

    first = getattr(plan, decision)()
    version = log.version("s")
    second = getattr(plan, decision)()

    assert first.id == second.id
    assert log.version("s") == version


def test_a_message_to_a_closed_turn_is_begun_in_the_next(log: TranscriptLog) -> None:
    left(log, USER, TurnFinalized(turn="t1"))
    left(log, UserMessageReceived(message="u2", turn="t1", text="And?"))

    plan = only(log, Begin)

    assert (plan.turn, plan.texts) == ("t1+", {"u2": "And?"})
    plan.close()
    assert plans(log) == []


def test_notices_in_doubt_are_not_asked_about(log: TranscriptLog) -> None:
    left(log, DeliveryAttempted(delivery="n1", text="…", kind="notice"))

    assert plans(log) == []


def test_a_log_that_does_not_say_where_it_goes(log: TranscriptLog, platform: Make) -> None:
    left(log, UserMessageReceived(message="u1", turn="t1", text="Hi"), PRODUCED)
    left(log, DeliveryAttempted(delivery="n1", turn="t1", text="…", kind="notice"))
    plan = only(log, Send)

    with pytest.raises(ValueError, match="target"):
        Outbox(log, platform()).resume(plan)

    target = Target(platform="local", chat="c1")
    assert Outbox(log, platform()).resume(replace(plan, target=target)).delivered
