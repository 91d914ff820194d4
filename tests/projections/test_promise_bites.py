"""The promise bites: rows that lost, cut, doubled or misplaced a delivered text are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from histories import HISTORIES, recorded
from onrecord.projections import lines as lines_module
from onrecord.projections.conversation import Conversation, project
from onrecord.projections.outgoing import Outgoing, Take
from onrecord.projections.promise import MARK, DeliveredNotProjected, check
from onrecord.projections.promised import read
from onrecord.projections.rows import Row
from onrecord.transcript import events as e
from onrecord.transcript.recorded import Recorded

STORY: list[e.Event] = [
    e.UserMessageReceived(turn="t1", message="u1", text="Weather?"),
    e.DeliveryAttempted(delivery="d1", turn="t1", message="m1", text="Let me look."),
    e.DeliveryConfirmed(delivery="d1"),
    e.AssistantMessageProduced(
        turn="t1", message="m1", text="Let me look.", tool_calls=[e.ToolCall(id="c1", name="sky")]
    ),
    e.ToolResultReceived(turn="t1", tool_call="c1", text="blue"),
    e.DeliveryAttempted(delivery="d2", turn="t1", message="m2", text="Sunny, "),
    e.StreamChunkDelivered(delivery="d2", through=7),
    e.DeliveryAttempted(delivery="d2", turn="t1", message="m2", text="Cloudy, 18.", attempt=2),
    e.DeliveryAttempted(delivery="d2", turn="t1", message="m2", text="Sun", attempt=3),
    e.DeliveryFailed(delivery="d2", attempt=3, reason="refused"),
    e.TurnFinalized(turn="t1", outcome="completed"),
    e.UserMessageReceived(turn="t2", message="u2", text="And tomorrow?"),
    e.DeliveryAttempted(delivery="d3", turn="t2", text="Ra"),
    e.DeliveryAttempted(delivery="d3", turn="t2", text="in.", offset=2),
    e.DeliveryFailed(delivery="d3", offset=2, reason="refused"),
]

RowChange = Callable[[list[Row], int], list[Row]]
CHANGES: dict[str, RowChange] = {
    "removed": lambda rows, i: rows[:i] + rows[i + 1 :],
    "emptied": lambda rows, i: _put(rows, i, text=""),
    "beginning cut": lambda rows, i: _put(rows, i, text=rows[i].text.lstrip()[1:]),
    "end cut": lambda rows, i: _put(rows, i, text=rows[i].text.rstrip()[:-1]),
    "middle cut": lambda rows, i: _put(rows, i, text=rows[i].text[:1] + rows[i].text[2:]),
    "made the user's": lambda rows, i: _put(rows, i, role="user"),
    "put into another turn": lambda rows, i: _put(rows, i, turn="t9"),
    "called synthetic": lambda rows, i: _put(rows, i, origin="synthetic"),
    "doubled": lambda rows, i: [*rows[: i + 1], rows[i], *rows[i + 1 :]],
    "split in two": lambda rows, i: [
        *rows[:i],
        replace(rows[i], text=rows[i].text[:1]),
        replace(rows[i], text=rows[i].text[1:]),
        *rows[i + 1 :],
    ],
}


def _put(rows: list[Row], i: int, **changes: Any) -> list[Row]:
    return [*rows[:i], replace(rows[i], **changes), *rows[i + 1 :]]


def _delivered(records: list[Recorded], rows: list[Row]) -> list[int]:
    """Return the places of rows that are made of a promised text and nothing else."""
    texts = {(text.turn, text.text.strip()) for text in read(records).texts()}
    return [
        i
        for i, row in enumerate(rows)
        if row.role == "assistant" and (row.turn, row.text.strip()) in texts
    ]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_row_is_refused(change: str) -> None:
    records = recorded(STORY)
    rows = project(records)
    places = _delivered(records, rows)

    assert len(places) == 4
    for place in places:
        with pytest.raises(DeliveredNotProjected):
            check("s", records, CHANGES[change](rows, place))


@given(HISTORIES, st.sampled_from(["removed", "emptied", "made the user's"]), st.data())
def test_no_history_hides_a_lost_row(
    events: list[e.Event], change: str, data: st.DataObject
) -> None:
    records = recorded(events)
    rows = project(records, full=True)
    texts = [row.text.strip() for row in rows if row.role == "assistant"]
    places = [
        i
        for i in _delivered(records, rows)
        if sum(rows[i].text.strip() in text for text in texts) == 1
    ]
    if not places:
        return
    place = data.draw(st.sampled_from(places))

    with pytest.raises(DeliveredNotProjected):
        check("s", records, CHANGES[change](rows, place), full=True)


def test_the_error_says_what_is_missing_and_marks_it() -> None:
    records = recorded(STORY)
    rows = [row for row in project(records) if row.text != "Let me look."]

    with pytest.raises(DeliveredNotProjected) as raised:
        check("s", records, rows)
    assert (raised.value.session, raised.value.delivery) == ("s", "d1")
    assert raised.value.missing == "Let me look."
    assert raised.value.rows == rows
    marked = [row for row in raised.value.marked if row.text.startswith(MARK)]
    assert [(row.role, row.turn, row.text) for row in marked] == [
        ("assistant", "t1", MARK + "Let me look.")
    ]


def join_to_the_shortest(
    groups: list[lines_module.Group],
    take: Take,
    text: str,
    core: str,
    real: Any = lines_module._join,
) -> None:
    real(groups, take, text, core)
    for group in groups:
        group.longest = min((take.visible for take in group.takes), key=len)
        group.core = group.longest.strip()


# Faults such as a change of the fold could bring in, each alone.
MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "only what was confirmed is visible": lambda m: m.setattr(
        Take, "visible", property(lambda take: take.text if take.confirmed else "")
    ),
    "only what was taken is visible": lambda m: m.setattr(
        Take, "visible", property(lambda take: take.taken_text)
    ),
    "a refusal hides the whole text": lambda m: m.setattr(
        Take, "visible", property(lambda take: "" if take.refused else take.text)
    ),
    "the shortest text counts": lambda m: m.setattr(
        lines_module,
        "_join",
        join_to_the_shortest,
    ),
    "the produced text wins": lambda m: m.setattr(
        lines_module, "begins", lambda whole, start: True
    ),
    "all texts of a row are one": lambda m: m.setattr(
        lines_module,
        "_join",
        lambda groups, take, text, core: (
            groups[0].takes.append(take)
            if groups
            else groups.append(lines_module.Group([take], text, core))
        ),
    ),
    "what else was seen is dropped": lambda m: m.setattr(
        lines_module, "_spread", lambda lines: sorted(lines, key=lambda line: line.anchor)
    ),
    "a delivery without a message makes no row": lambda m: m.setattr(
        lines_module, "_match", lambda lines, unnamed: None
    ),
    "a blank message erases what was streamed": lambda m: m.setattr(
        lines_module, "_makes_row", lambda line: bool(line.calls or line.produced_text.strip())
    ),
    "a later part is lost": lambda m: m.setattr(
        Outgoing,
        "_attempt",
        lambda self, event, version, real=Outgoing._attempt: (
            real(self, event, version) if not event.offset else None
        ),
    ),
    "a second attempt is lost": lambda m: m.setattr(
        Outgoing,
        "_attempt",
        lambda self, event, version, real=Outgoing._attempt: (
            real(self, event, version) if event.attempt == 1 else None
        ),
    ),
    "a delivery is entered in the newest turn": lambda m: m.setattr(
        Conversation,
        "_begin",
        lambda self, delivery, turn, real=Conversation._begin: real(
            self, delivery, next(iter(self.turns))
        ),
    ),
}

SCRIPTS: list[list[e.Event]] = [
    STORY,
    [
        e.UserMessageReceived(turn="t1", message="u1", text="Long?"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="One. Two."),
        e.DeliveryAttempted(delivery="d1", turn="t1", message="m1", text="One. "),
        e.StreamChunkDelivered(delivery="d1", through=5),
        e.DeliveryAttempted(delivery="d1", turn="t1", message="m1", text="Two.", offset=5),
        e.DeliveryFailed(delivery="d1", offset=5, reason="refused"),
        e.TurnFinalized(turn="t1", outcome="completed", text="One. Two."),
    ],
    [
        e.UserMessageReceived(turn="t1", message="u1", text="Call?"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="Call 555."),
        e.DeliveryAttempted(delivery="d1", turn="t1", message="m1", text="Call [removed]."),
        e.AssistantMessageProduced(turn="t1", message="m2", text=""),
        e.DeliveryAttempted(delivery="d2", turn="t1", message="m2", text="Anything else?"),
    ],
]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_faulty_fold_is_caught(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)

    caught = 0
    for script in SCRIPTS:
        records = recorded(script)
        for n in range(1, len(records) + 1):
            try:
                check("s", records[:n], project(records[:n]))
            except DeliveredNotProjected:
                caught += 1
    assert caught
