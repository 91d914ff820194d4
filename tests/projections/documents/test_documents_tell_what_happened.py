"""A document says when a message was said, what the user saw of it, and what was taken out of view."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from onrecord.projections.documents import Document, document, html, markdown
from onrecord.projections.promise import DeliveredNotProjected
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    StreamChunkDelivered,
    ToolCall,
    ToolResultReceived,
    TranscriptCompacted,
    TranscriptRewound,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

STORY = (
    UserMessageReceived(message="u1", turn="t1", text="Does it sail?"),
    AssistantMessageProduced(
        turn="t1", message="m1", text="I'll look.",
        tool_calls=[ToolCall("c1", "table", '{"pier": 4}'), ToolCall("c2", "weather")],
    ),
    ToolResultReceived(turn="t1", tool_call="c1", text="at nine", is_error=True),
    DeliveryAttempted(delivery="d1", turn="t1", text="At nine."),
    DeliveryConfirmed(delivery="d1"),
    TurnFinalized(turn="t1"),
    UserMessageReceived(message="u2", turn="t2", text="And back?"),
    AssistantMessageProduced(turn="t2", message="m2", text="At six. Bring cash."),
    DeliveryAttempted(delivery="d2", turn="t2", message="m2", text="At six."),
    StreamChunkDelivered(delivery="d2", through=7),
    TurnFinalized(turn="t2", outcome="failed"),
    UserMessageReceived(message="u3", turn="t3", text="Sure?"),
    DeliveryAttempted(delivery="d3", turn="t3", text="Yes."),
    DeliveryFailed(delivery="d3", definite=False),
    TurnFinalized(turn="t3"),
    TranscriptCompacted(through_turn="t1", summary="They asked for the ferry."),
    UserMessageReceived(message="u4", turn="t4", text="Forget it"),
    TurnFinalized(turn="t4", outcome="interrupted"),
    TranscriptRewound(to_turn="t4"),
)  # fmt: skip


@pytest.fixture(scope="module")
def log() -> Iterator[TranscriptLog]:
    with TranscriptLog.open("sqlite://") as log:
        log.append("ferry", *STORY)
        yield log


def written(log: TranscriptLog, *, full: bool) -> tuple[str, str]:
    made = document("ferry", log.read("ferry"), full=full)
    return "".join(markdown(made)), "".join(html(made))


def test_the_models_view_is_what_the_model_is_shown(log: TranscriptLog) -> None:
    made = document("ferry", log.read("ferry"))

    assert [turn.name for turn in made.turns] == ["t2", "t3"]
    assert made.summary is not None
    assert made.summary.row.text == "They asked for the ferry."


def test_the_full_view_says_what_was_compacted_and_undone(log: TranscriptLog) -> None:
    made = document("ferry", log.read("ferry"), full=True)
    texts = written(log, full=True)

    outs = {"t1": "compacted", "t2": "", "t3": "", "t4": "undone"}
    assert {turn.name: turn.out for turn in made.turns} == outs
    for told in texts:
        assert told.count("out of the model's view") == 2
    assert '<section class="out compacted">' in texts[1]
    assert '<section class="out undone">' in texts[1]


def test_both_say_what_became_of_each_message(log: TranscriptLog) -> None:
    for told in written(log, full=True):
        for words in (
            "delivered", "the user saw this much of it", "nobody knows whether it arrived",
            "never delivered", "nothing was said here", "Bring cash.",
        ):  # fmt: skip
            assert words in told
        at = next(iter(log.read("ferry"))).recorded_at
        assert f"{at:%Y-%m-%d %H:%M:%S}" in told


def test_a_result_stands_with_its_call(log: TranscriptLog) -> None:
    made = document("ferry", log.read("ferry"), full=True)
    text, page = written(log, full=True)

    looking = made.turns[0].messages[1]
    assert [call.call.name for call in looking.calls] == ["table", "weather"]
    results = [call.result.text if call.result else "" for call in looking.calls]
    assert results[0] == "at nine"
    assert "no result" in results[1]
    assert text.index('{"pier": 4}') < text.index("with an error") < text.index("at nine")
    assert page.count("<details>") == 3  # two calls, and the model's own words


def test_a_document_of_an_earlier_moment_is_that_of_the_records_up_to_it(
    log: TranscriptLog,
) -> None:
    early = document("ferry", log.read("ferry"), at=5)

    assert early == document("ferry", log.read("ferry", limit=5))
    assert early.version == 5


def test_an_empty_session_says_so() -> None:
    for told in (markdown, html):
        assert "Nothing was said." in "".join(told(Document("s", 0, [])))


def test_what_was_delivered_and_is_missing_is_never_written(
    log: TranscriptLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onrecord.projections.conversation import Conversation

    whole = Conversation.rows
    monkeypatch.setattr(Conversation, "rows", lambda self, *, full: whole(self, full=full)[:1])

    with pytest.raises(DeliveredNotProjected):
        document("ferry", log.read("ferry"))
