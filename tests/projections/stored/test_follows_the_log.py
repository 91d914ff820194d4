"""Whatever is recorded, and whenever it is projected: what is stored is what a fold of the log gives."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from histories import EVENTS, HISTORIES
from onrecord.projections.conversation import project
from onrecord.projections.deliveries import deliveries
from onrecord.projections.findings import findings
from onrecord.projections.stored import StoredProjections
from onrecord.transcript.errors import OnRecordError
from onrecord.transcript.events import ContentErased, Event
from onrecord.transcript.log import TranscriptLog

EXAMPLES = 3 * settings().max_examples
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


def holds(log: TranscriptLog, stored: StoredProjections) -> None:
    """Hold all that is stored of the session against a fold of its records."""
    records = list(log.read("s"))
    assert stored.transcript("s").rows == project(records)
    assert stored.transcript("s", full=True).rows == project(records, full=True)
    assert stored.findings("s") == findings("s", records)
    assert stored.deliveries("s") == sorted(deliveries(records), key=lambda told: told.versions[0])


@given(
    HISTORIES | long_histories(), st.lists(st.sampled_from([NOTHING, CATCH_UP, COLD]), min_size=1)
)
@settings(max_examples=EXAMPLES, deadline=None)
def test_stored_is_folded(events: list[Event], steps: list[int]) -> None:
    with TranscriptLog.open("sqlite://") as log:
        stored = StoredProjections(log)
        for n, event in enumerate(events):
            try:
                log.append("s", event)
            except OnRecordError:
                continue
            step = steps[n % len(steps)]
            if step == COLD:
                stored = StoredProjections(log)
            if step != NOTHING:
                holds(log, stored)
        holds(log, stored)
        holds(log, StoredProjections(log))
