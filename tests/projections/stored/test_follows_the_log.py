"""Whatever is recorded, and whenever it is projected: what is stored is what a fold of the log gives."""

from __future__ import annotations

import functools
import itertools
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from histories import EVENTS, HISTORIES
from onrecord.projections.conversation import project
from onrecord.projections.deliveries import deliveries
from onrecord.projections.findings import findings
from onrecord.projections.stored import StoredProjections
from onrecord.transcript.errors import OnRecordError
from onrecord.transcript.events import (
    AssistantMessageProduced,
    ContentErased,
    DeliveryAttempted,
    DeliveryConfirmed,
    Event,
    SessionStarted,
    ToolCall,
    ToolResultReceived,
    TranscriptRewound,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog

EXAMPLES = 3 * settings().max_examples
ON_POSTGRES = settings().max_examples // 10
NOTHING, CATCH_UP, COLD = range(3)
SECTION = 4
"""Events that mostly speak of names of their own, so that there are places to begin a fold at."""
REACH = st.sampled_from([0] * 12 + [1, 1, 2, 3, 99])
"""How many sections back the names are of."""
NAMES = ("turn", "message", "delivery", "tool_call", "through_turn", "to_turn")


def of_section(event: Event, section: int) -> Event:
    """Let the event speak of a section's names; calls keep theirs, as some models repeat them."""
    changes: dict[str, Any] = {
        name: f"{value}.{section}"
        for name in NAMES
        if isinstance(value := getattr(event, name, None), str) and name != "tool_call"
    }
    if isinstance(event, ContentErased) and not event.target.get("session"):
        changes["target"] = {kind: f"{name}.{section}" for kind, name in event.target.items()}
    return replace(event, **changes)


@st.composite
def long_histories(draw: st.DrawFn) -> list[Event]:
    """Draw a history of many turns, few of which are spoken of later."""
    drawn = draw(st.lists(st.tuples(EVENTS, REACH), min_size=20, max_size=60))
    return [
        of_section(event, max(0, n // SECTION - reach)) for n, (event, reach) in enumerate(drawn)
    ]


def holds(log: TranscriptLog, stored: StoredProjections, session: str) -> None:
    """Hold all that is stored of the session against a fold of its records."""
    records = list(log.read(session))
    assert stored.transcript(session).rows == project(records)
    assert stored.transcript(session, full=True).rows == project(records, full=True)
    assert stored.findings(session) == findings(session, records)
    told = sorted(deliveries(records), key=lambda told: told.versions[0])
    assert stored.deliveries(session) == told


def follow(log: TranscriptLog, session: str, events: list[Event], steps: list[int]) -> None:
    """Record the events, project at some of them, and hold what is stored against the log."""
    stored = StoredProjections(log)
    for n, event in enumerate(events):
        try:
            log.append(session, event)
        except OnRecordError:
            continue
        step = steps[n % len(steps)]
        if step == COLD:
            stored = StoredProjections(log)
        if step != NOTHING:
            holds(log, stored, session)
    holds(log, stored, session)
    holds(log, StoredProjections(log), session)
    assert list(stored.check([session])) == []


STEPS = st.lists(st.sampled_from([NOTHING, CATCH_UP, COLD]), min_size=1)


@given(HISTORIES | long_histories(), STEPS)
@settings(max_examples=EXAMPLES, deadline=None)
def test_stored_is_folded(events: list[Event], steps: list[int]) -> None:
    with TranscriptLog.open("sqlite://") as log:
        follow(log, "s", events, steps)


def test_stored_is_folded_on_postgres(postgres_url: str) -> None:
    numbers = itertools.count()

    @given(long_histories(), STEPS)
    @settings(max_examples=ON_POSTGRES, deadline=None)
    def followed(events: list[Event], steps: list[int]) -> None:
        follow(log, f"s{next(numbers)}", events, steps)

    with TranscriptLog.open(postgres_url) as log:
        followed()


def turn(name: str, message: str | None = None) -> list[Event]:
    """Return a closed turn."""
    return [
        UserMessageReceived(message=message or f"u.{name}", turn=name, text="hi"),
        TurnFinalized(turn=name),
    ]


HARD = {
    "a turn is called as one that is opened again would be": [
        *turn("t1+"), *turn("a"), *turn("t1"), *turn("b"), *turn("t1", "again"), *turn("c"),
    ],
    "the same after an undo": [
        *turn("t+"), *turn("a"), *turn("t"), *turn("b"), TranscriptRewound(to_turn="b"),
        *turn("b", "again"), TranscriptRewound(to_turn="t"), *turn("t", "anew"), *turn("c"),
    ],
    "a delivery of its own has the name of a turn": [
        *turn("delivery:d+"), *turn("a"), *turn("delivery:d"), *turn("b"),
        DeliveryAttempted(delivery="d", text="x"), *turn("c"),
    ],
    "the session is begun again with another title": [
        SessionStarted(title="one"), *turn("a"), *turn("b"), SessionStarted(title="two"),
        *turn("c"), *turn("d"), *turn("e"),
    ],
    "an outcome is contradicted later": [
        *turn("a"), DeliveryAttempted(delivery="d", turn="a", text="x"),
        DeliveryConfirmed(delivery="d", id=UUID(int=7)), *turn("b"), *turn("c"),
        DeliveryConfirmed(delivery="d", id=UUID(int=7), evidence="lookup"), *turn("e"),
    ],
    "a message comes twice under ids of its own": [
        *turn("a"), AssistantMessageProduced(turn="a", message="m", text="x"), *turn("b"),
        AssistantMessageProduced(
            turn="a", message="m", id=UUID(int=8), tool_calls=[ToolCall(id="c", name="run")]
        ),
        *turn("c"), ToolResultReceived(turn="c", tool_call="c", text="stray"), *turn("d"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("events", HARD.values(), ids=HARD)
@pytest.mark.parametrize("step", [CATCH_UP, COLD])
def test_hard_names_are_told_apart(events: list[Event], step: int) -> None:
    with TranscriptLog.open("sqlite://") as log:
        follow(log, "s", events, [step])


def test_what_contradicts_a_record_makes_no_call() -> None:
    call = ToolCall(id="c", name="run")
    with TranscriptLog.open("sqlite://") as log:
        say = functools.partial(AssistantMessageProduced, text="x")
        events: list[Event] = [
            say(turn="t1", message="m1", tool_calls=[call]),
            UserMessageReceived(message="u2", turn="t2", text="hi"),
            say(turn="t2", message="m2"),
            say(turn="t2", message="m2", tool_calls=[call]),  # another content: kept beside it
            ToolResultReceived(turn="t2", tool_call="c", text="a result of the call in t1"),
        ]

        follow(log, "s", events, [CATCH_UP])
        follow(log, "cold", events, [COLD])
