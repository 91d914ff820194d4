"""`diff` shows what differs between two points of a session, like a text diff of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import HISTORIES, recorded
from onrecord.projections.conversation import project
from onrecord.projections.differences import (
    WORDS_COMPARED,
    Difference,
    compare_messages,
    compare_rows,
    messages_of,
    words_between,
)
from onrecord.projections.profiles import PROFILES, render
from onrecord.projections.rows import Row
from onrecord.transcript import events as e

WORDS = st.text(alphabet="ab .\n", max_size=30)


@given(WORDS, WORDS)
def test_words_put_together_are_the_two_texts(before: str, after: str) -> None:
    pieces = words_between(before, after)

    assert "".join(text for kind, text in pieces if kind != "+") == before
    assert "".join(text for kind, text in pieces if kind != "-") == after
    assert all(text for _, text in pieces)


def test_texts_differ_word_by_word_and_very_long_ones_as_a_whole() -> None:
    assert words_between("The answer is four.", "The answer is forty-two.") == [
        ("=", "The answer is "), ("-", "four"), ("+", "forty-two"), ("=", "."),
    ]  # fmt: skip
    old, new = "a " * WORDS_COMPARED, "b " * WORDS_COMPARED
    assert words_between(f"x {old}y", f"x {new}y") == [
        ("=", "x "), ("-", old[:-1]), ("+", new[:-1]), ("=", " y"),
    ]  # fmt: skip


def sides(found: list[Difference]) -> tuple[list[Any], list[Any]]:
    return (
        [one.before for one in found if one.before is not None],
        [one.after for one in found if one.after is not None],
    )


@given(HISTORIES, st.integers(0, 30))
def test_all_rows_of_both_points_are_told_once(events: list[e.Event], cut: int) -> None:
    records = recorded(events)
    before, after = project(records[:cut]), project(records)

    old, new = sides(list(compare_rows(before, after)))
    assert sorted(row.id for row in old) == sorted(row.id for row in before)
    assert [row.id for row in new] == [row.id for row in after]
    assert all(one.kind == "same" for one in compare_rows(after, after))


@given(HISTORIES, st.integers(0, 30), st.sampled_from(list(PROFILES)))
def test_all_messages_of_both_points_are_told_once(
    events: list[e.Event], cut: int, profile: str
) -> None:
    records = recorded(events)
    requests = [messages_of(render(project(r), profile)) for r in (records[:cut], records)]

    found = list(compare_messages(*requests))
    old, new = sides(found)
    assert sorted(map(repr, old)) == sorted(map(repr, requests[0]))
    assert new == requests[1]
    assert all(one.before != one.after for one in found if one.kind == "changed")


def test_of_which_events_a_row_is_made_is_no_difference() -> None:
    row = Row(role="user", text="a", id="u1", versions=(1,))
    more = Row(role="user", text="a", id="u1", versions=(1, 2))

    assert [one.kind for one in compare_rows([row], [more])] == ["same"]


def test_a_row_that_stands_elsewhere_has_changed() -> None:
    a, b = (Row(role="user", text=text, id=text) for text in "ab")

    found = list(compare_rows([a, b], [b, a]))
    assert sorted(one.kind for one in found) == ["changed", "same"]
    assert [one.after for one in found] == [b, a]


def test_json_tells_what_changed_and_the_exit_code_whether(
    command: Callable[..., Any], scenario: Callable[[str], Any]
) -> None:
    scenario("killed-mid-stream")

    done = command("diff", "killed-mid-stream", "3", "8", "--json")
    same = command("diff", "killed-mid-stream", "6", "2026-06-11 09:00:06", "--json")

    row = {"id": "a2", "role": "assistant", "origin": "delivered", "turn": "t1"}
    assert (done.code, done.json) == (
        1,
        {
            "session": "killed-mid-stream",
            "from": 3,
            "to": 8,
            "changes": [
                {
                    "change": "changed",
                    "before": {
                        **row, "text": "In WAL mode ", "delivery": "delivered", "versions": [2, 3],
                    },
                    "after": {
                        **row, "text": "In WAL mode readers do not block writers",
                        "delivery": "in_doubt", "versions": [2, 3, 4, 5, 6],
                    },
                    "words": [["=", "In WAL mode "], ["+", "readers do not block writers"]],
                },
                {
                    "change": "added",
                    "after": {
                        "id": "u8", "role": "user", "text": "Go on", "turn": "t2", "versions": [8],
                    },
                },
            ],
        },
    )  # fmt: skip
    assert (same.code, same.json["changes"]) == (0, [])


def test_a_page_marks_rows_and_words(
    command: Callable[..., Any], scenario: Callable[[str], Any]
) -> None:
    scenario("timeout-then-other-words")
    scenario("undo-into-compacted-history")

    done = command("diff", "undo-into-compacted-history", "13", "2026-06-11T09:00:14Z")
    back = command("diff", "undo-into-compacted-history", "15", "1")
    same = command("diff", "undo-into-compacted-history", "3", "4")

    assert done.code == 1
    assert done.out == (
        "--- undo-into-compacted-history, version 13\n"
        "+++ undo-into-compacted-history, version 15, as of 2026-06-11 09:00:14 UTC\n"
        "- summary   a and b\n"
        "- user      c\n"
        "- assistant (delivered) C\n"
        "+ user      a\n"
        "+ assistant (delivered) A\n"
        "+ user      d\n"
    )
    assert back.out.endswith("  user      a\n- assistant (delivered) A\n- user      d\n")
    assert (same.code, same.out) == (0, "")


def test_rows_that_are_alike_are_counted_and_changed_words_marked(
    log: Any, command: Callable[..., Any]
) -> None:
    for n in range(6):
        log.append("s", e.UserMessageReceived(message=f"u{n}", turn=f"t{n}", text=f"number {n}"))
    log.append("s", e.UserMessageEdited(message="u0", text="number zero\nor so"))

    done = command("diff", "s", "6", "7")

    assert done.out == (
        "--- s, version 6\n"
        "+++ s, version 7\n"
        "~ user      number [-0-]{+zero\n"
        "~           or so+}\n"
        "  user      number 1\n"
        "  user      number 2\n"
        "@@ 3 rows alike @@\n"
    )


def test_what_the_model_was_sent_is_compared_as_a_profile_renders_it(
    command: Callable[..., Any], scenario: Callable[[str], Any]
) -> None:
    scenario("timeout-is-in-doubt")
    words = ("diff", "timeout-is-in-doubt", "1", "99999")
    wrong = command(*words, "--as", "openai")
    newest = str(len(scenario("timeout-is-in-doubt")["events"]))

    done = command(*words[:3], newest, "--as", "mistral", "--json")

    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert done.code == 1
    assert {change["change"] for change in done.json["changes"]} == {"added"}
    assert done.json["changes"][0]["after"]["role"] == "assistant"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["diff", "s", "1"], "Missing argument 'B'"),
        (["diff", "nobody", "0", "1"], "no session 'nobody'"),
        (["diff", "s", "x", "1"], "A takes a version (12), a time"),
        (["diff", "s", "0", "2"], "B 2: session 's' has no such version; its newest is 1"),
        (["diff", "s", "0", "1", "--as", "telex"], "--as takes one of neutral"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_one_line(
    log: Any, command: Callable[..., Any], words: list[str], says: str
) -> None:
    log.append("s", e.UserMessageReceived(message="u", text="a"))

    done = command(*words)

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert says in done.err
