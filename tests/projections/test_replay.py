"""A replay tells of each event what it changed, and its changes add up to the rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from histories import HISTORIES, recorded
from onrecord.projections.conversation import Conversation
from onrecord.projections.differences import Difference
from onrecord.projections.replaying import Replay, Replayed
from onrecord.projections.rows import Row
from onrecord.transcript import events as e
from stories import end, sent, user


def steps(*events: e.Event) -> list[Replayed]:
    replay = Replay()
    return [replay.take(record) for record in recorded(list(events))]


def told(step: Replayed) -> list[tuple[str, str, str]]:
    return [
        (change.kind, side.role, side.text)
        for change in step.changes
        if (side := change.after or change.before) is not None
    ]


@given(HISTORIES)
def test_the_changes_add_up_to_the_rows(events: list[e.Event]) -> None:
    replay, conversation = Replay(), Conversation()
    rows: dict[str, Any] = {}

    for record in recorded(events):
        conversation.apply(record)
        for change in replay.take(record).changes:
            if isinstance(change.before, Row):
                assert plainly(rows.pop(change.before.id)) == plainly(change.before)
            if isinstance(change.after, Row):
                assert change.after.id not in rows
                rows[change.after.id] = change.after
        wanted = {row.id: plainly(row) for row in conversation.rows()}
        assert {ident: plainly(row) for ident, row in rows.items()} == wanted


@given(HISTORIES, st.integers(0, 30))
def test_what_is_skipped_changes_nothing_of_what_is_shown(events: list[e.Event], cut: int) -> None:
    records = recorded(events)
    whole, late = Replay(), Replay()

    wanted = [whole.take(record) for record in records][cut:]
    for record in records[:cut]:
        late.skip(record)
    assert [late.take(record) for record in records[cut:]] == wanted


@given(HISTORIES)
def test_one_turn_alone_changes_as_it_does_among_others(events: list[e.Event]) -> None:
    whole, alone = Replay(), Replay(only=["t1"])

    for record in recorded(events):
        wanted = whole.take(record).changes
        # A row that comes from another turn, or goes there, is new or gone where one is looked at.
        moved = {row.id for one in wanted for row in rows_of(one) if len(turns_of(one)) > 1}

        own = [one for one in alone.take(record).changes if turns_of(one) == {"t1"}]
        assert [one for one in own if not moved & {row.id for row in rows_of(one)}] == [
            one for one in wanted if turns_of(one) == {"t1"}
        ]


def rows_of(change: Difference) -> list[Row]:
    """Return the row before and after a change, as far as there is one."""
    return [side for side in (change.before, change.after) if isinstance(side, Row)]


def turns_of(change: Difference) -> set[str]:
    """Return the turns in which a change's row stood and stands."""
    return {row.turn for row in rows_of(change)}


def plainly(row: Row) -> Row:
    """Leave out of which events a row is made: that alone is no change."""
    return replace(row, versions=())


def test_a_row_comes_changes_and_is_closed() -> None:
    story = steps(
        user("u1", "Scan"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="Twelve."),
        *sent("d1", "Twelve.", turn="t1", message="m1"),
        end(),
        end(),
    )

    assert [told(step) for step in story] == [
        [("added", "user", "Scan")],
        [("added", "assistant", "Twelve.")],
        [("changed", "assistant", "Twelve.")],
        [("changed", "assistant", "Twelve.")],
        [],
        [],
    ]
    assert [step.closed for step in story[3:]] == [(), (("t1", "completed"),), ()]
    assert {step.turn for step in story} == {"t1"}


def test_what_is_compacted_leaves_and_comes_back_when_the_compaction_is_void() -> None:
    story = steps(
        user("u1", "one"),
        end(),
        user("u2", "two", "t2"),
        e.TranscriptCompacted(through_turn="t1", summary="one, in short"),
        e.TranscriptRewound(to_turn="t1"),
    )

    assert told(story[3]) == [
        ("removed", "user", "one"),
        ("removed", "assistant", "[no answer: the turn ended without text]"),
        ("added", "summary", "one, in short"),
    ]
    assert told(story[4]) == [("removed", "summary", "one, in short"), ("removed", "user", "two")]


def test_a_delivery_that_moves_to_its_messages_turn_is_one_row_that_changed() -> None:
    story = steps(
        user("u1", "a"),
        user("u2", "b", "t2"),
        *sent("d1", "A", turn="t2", message="m1"),
        e.AssistantMessageProduced(turn="t1", message="m1", text="A"),
    )

    (change,) = story[-1].changes
    assert isinstance(change.before, Row)
    assert isinstance(change.after, Row)
    assert (change.kind, change.before.turn, change.after.turn) == ("changed", "t2", "t1")


def test_the_delay_is_that_since_the_event_before() -> None:
    records = recorded([user("u1", "a"), user("u2", "b", "t2")])
    start = datetime(2026, 6, 1, tzinfo=UTC)
    moments = (start, start + timedelta(seconds=1.5))
    replay = Replay()

    taken = [
        replay.take(replace(record, recorded_at=at))
        for record, at in zip(records, moments, strict=True)
    ]

    assert [step.delay for step in taken] == [None, 1.5]


def test_an_import_without_times_of_recording_goes_by_the_writers_clock() -> None:
    now = datetime.now(UTC)
    said = datetime(2026, 6, 1, tzinfo=UTC)
    (record,) = recorded([replace(user("u1", "a"), at=said, imported_at=now)])

    assert Replay().take(replace(record, recorded_at=now)).at == said
    before = Replay().take(replace(record, recorded_at=now - timedelta(days=1)))
    assert before.at == now - timedelta(days=1)


def test_json_is_one_object_a_line(
    command: Callable[..., Any], scenario: Callable[[str], Any]
) -> None:
    scenario("killed-mid-stream")

    lines = [
        json.loads(line)
        for line in command("replay", "killed-mid-stream", "--json").out.splitlines()
    ]

    assert [line["version"] for line in lines] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert lines[2] == {
        "session": "killed-mid-stream",
        "version": 3,
        "type": "StreamChunkDelivered",
        "at": "2026-06-11T09:00:02Z",
        "delay": 1.0,
        "turn": "t1",
        "said": "platform took up to 12 [d1]",
        "changes": [
            {
                "change": "changed",
                "before": {
                    "id": "a2", "role": "assistant", "text": "In WAL mode ", "origin": "delivered",
                    "delivery": "in_doubt", "turn": "t1", "versions": [2],
                },
                "after": {
                    "id": "a2", "role": "assistant", "text": "In WAL mode ", "origin": "delivered",
                    "delivery": "delivered", "turn": "t1", "versions": [2, 3],
                },
            }
        ],
    }  # fmt: skip
    assert lines[3]["changes"][0]["words"] == [["=", "In WAL mode "], ["+", "readers do not "]]
    assert lines[6]["changes"] == [{"change": "closed", "turn": "t1", "outcome": "abandoned"}]


@pytest.mark.parametrize(
    ("words", "versions"),
    [
        (["--from", "7"], [7, 8]),
        (["--to", "2"], [1, 2]),
        (["--from", "3", "--to", "3"], [3]),
        (["--from", "2026-06-11 09:00:05"], [6, 7, 8]),
        (["--from", "2026-06-11T11:00:05.5+02:00", "--to", "2026-06-11T09:00:06Z"], [7]),
        (["--to", "2020-01-01 00:00"], []),
        (["--from", "2030-01-01 00:00"], []),
    ],
)
def test_a_replay_goes_from_a_point_to_a_point(
    command: Callable[..., Any],
    scenario: Callable[[str], Any],
    words: list[str],
    versions: list[int],
) -> None:
    scenario("killed-mid-stream")

    done = command("replay", "killed-mid-stream", "--json", *words)

    assert (done.code, done.err) == (0, "")
    assert [json.loads(line)["version"] for line in done.out.splitlines()] == versions


def test_as_a_profile_the_changes_are_those_of_its_messages(
    command: Callable[..., Any], scenario: Callable[[str], Any]
) -> None:
    scenario("stopped-after-a-tool")

    words = ("replay", "stopped-after-a-tool", "--as", "openai", "--from")
    late = command(*words, "3").out
    whole = command(*words, "1").out

    assert late == (
        "stopped-after-a-tool, times in UTC\n"
        "2026-06-11\n"
        "     3  09:00:02.000    +1.0 s  tool answered [c1] “12 hosts”\n"
        '        ~ tool      {"content":"[-(No result yet.)-]{+12\n'
        '        ~           hosts+}","role":"tool","tool_call_id":"c1"}\n'
        "     4  09:00:03.000    +1.0 s  turn interrupted\n"
        "        + assistant [no answer: the turn was interrupted]\n"
        "        = turn t1 closed: interrupted\n"
        "     5  09:00:04.000    +1.0 s  user “Never mind”\n"
        "        + user      Never mind\n"
        "3 events\n"
    )
    assert "        ~ user      [-(The conversation begins here.)-]{+Scan the network+}\n" in whole
    assert whole.endswith("".join(late.splitlines(keepends=True)[2:-1]) + "5 events\n")


def test_a_page_says_what_each_event_changed(
    command: Callable[..., Any], scenario: Callable[[str], Any]
) -> None:
    scenario("stopped-after-a-tool")

    assert command("replay", "stopped-after-a-tool").out == (
        "stopped-after-a-tool, times in UTC\n"
        "2026-06-11\n"
        "     1  09:00:00.000            user “Scan the network”\n"
        "        + user      Scan the network\n"
        "     2  09:00:01.000    +1.0 s  calls scan [c1]\n"
        "        + assistant → scan({}) [c1]\n"
        "     3  09:00:02.000    +1.0 s  tool answered [c1] “12 hosts”\n"
        "        + tool      [c1] 12 hosts\n"
        "     4  09:00:03.000    +1.0 s  turn interrupted\n"
        "        + assistant (synthetic) [no answer: the turn was interrupted]\n"
        "        = turn t1 closed: interrupted\n"
        "     5  09:00:04.000    +1.0 s  user “Never mind”\n"
        "        + user      Never mind\n"
        "5 events\n"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["replay"], "Missing argument 'SESSION'"),
        (["replay", "nobody"], "no session 'nobody'"),
        (["replay", "timeout-is-in-doubt", "--from", "99"], "--from 99: session"),
        (["replay", "timeout-is-in-doubt", "--to", "noon"], "--to takes a version (12), a time"),
        (["replay", "timeout-is-in-doubt", "--to", "2026-02-30 10:00"], "not '2026-02-30 10:00'"),
        (["replay", "timeout-is-in-doubt", "--step"], "this is no terminal"),
        (["replay", "--verify", "--from", "1"], "--verify goes with no --from"),
        (["replay", "timeout-is-in-doubt", "--as", "telex"], "--as takes one of neutral"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_one_line(
    command: Callable[..., Any], scenario: Callable[[str], Any], words: list[str], says: str
) -> None:
    scenario("timeout-is-in-doubt")

    done = command(*words)

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert says in done.err


def test_text_is_never_obeyed_by_the_terminal(log: Any, command: Callable[..., Any]) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[red]bold[/red] \u202e"
    log.append("s", user("u\x1b[31m", evil, "t\x1b[31m"), end("t\x1b[31m", "\x1b[2J"))

    pages = [command(*words).out for words in (["replay", "s"], ["diff", "s", "0", "1"])]

    assert not any(char in page for page in pages for char in "\x1b\x07\u202e")
    assert all("[red]bold[/red]" in page for page in pages)
