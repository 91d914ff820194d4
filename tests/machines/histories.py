"""Histories of one session, as hypothesis makes them: any events, from any writer, in any order."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from hypothesis import strategies as st

from onrecord.transcript import events as e
from onrecord.transcript.recorded import Recorded

TURNS = st.sampled_from(["t1", "t2", "t3", "t1+"])
MESSAGES = st.sampled_from(["m1", "m2", "m3", "m4"])
USERS = st.sampled_from(["u1", "u2", "u3", "u4", "u5"])
DELIVERIES = st.sampled_from(["d1", "d2", "d3"])
CALLS = st.sampled_from(["c1", "c2", "c3"])
TEXTS = st.sampled_from(
    ["", " ", "OK.", "OK. Done.", "Done.", "  OK.", "No\n", "No, wait.", "a", "ab", "\x00é", "abc"]
)
ATTEMPTS = st.integers(1, 3)
OFFSETS = st.integers(0, 6)
MAYBE_ATTEMPT = st.none() | ATTEMPTS

TOOL_CALLS = st.lists(
    st.builds(e.ToolCall, id=CALLS, name=st.just("run"), arguments=st.sampled_from(["{}", "x"])),
    max_size=2,
)
TARGETS = (
    st.just({"session": True})
    | st.builds(lambda turn: {"turn": turn}, TURNS)
    | st.builds(lambda message: {"message": message}, MESSAGES | USERS)
)

EVENTS = st.one_of(
    st.builds(e.SessionStarted, platform=st.just("chat")),
    st.builds(e.UserMessageReceived, message=USERS, text=TEXTS, turn=TURNS | st.none()),
    st.builds(e.UserMessageEdited, message=USERS, text=TEXTS),
    st.builds(e.UserMessageRetracted, message=USERS),
    st.builds(
        e.AssistantMessageProduced, turn=TURNS, message=MESSAGES, text=TEXTS, tool_calls=TOOL_CALLS
    ),
    st.builds(e.ToolResultReceived, turn=TURNS, tool_call=CALLS, text=TEXTS),
    st.builds(e.StreamBroken, turn=TURNS),
    st.builds(e.RecoveryApplied, turn=TURNS, kind=st.just("retry"), text=st.none() | TEXTS),
    st.builds(
        e.TurnFinalized,
        turn=TURNS,
        outcome=st.sampled_from(["completed", "interrupted", "failed", "abandoned"]),
        text=st.none() | TEXTS,
    ),
    st.builds(
        e.DeliveryAttempted,
        delivery=DELIVERIES,
        text=TEXTS,
        offset=OFFSETS,
        turn=TURNS | st.none(),
        message=MESSAGES | st.none(),
        kind=st.sampled_from(["answer", "answer", "answer", "notice"]),
        attempt=ATTEMPTS,
    ),
    st.builds(e.StreamChunkDelivered, delivery=DELIVERIES, through=OFFSETS, attempt=MAYBE_ATTEMPT),
    st.builds(e.DeliveryConfirmed, delivery=DELIVERIES, attempt=MAYBE_ATTEMPT),
    st.builds(
        e.DeliveryFailed,
        delivery=DELIVERIES,
        offset=OFFSETS,
        definite=st.booleans(),
        attempt=MAYBE_ATTEMPT,
    ),
    st.builds(e.DeliveryRevised, delivery=DELIVERIES, text=TEXTS, attempt=MAYBE_ATTEMPT),
    st.builds(e.TranscriptCompacted, through_turn=TURNS, summary=TEXTS),
    st.builds(e.TranscriptRewound, to_turn=TURNS),
    st.builds(e.ContentErased, target=TARGETS),
    st.builds(e.UnknownEvent, name=st.just("PlanMade"), fields=st.just({"turn": "t9"})),
)

HISTORIES = st.lists(EVENTS, max_size=30)


def recorded(events: list[e.Event], session: str = "s") -> list[Recorded]:
    """Give events their place in a log, without one."""
    now = datetime.now(UTC)
    return [
        Recorded(session, n, n, event.id or UUID(int=n), event.type, event, now)
        for n, event in enumerate(events, 1)
    ]
