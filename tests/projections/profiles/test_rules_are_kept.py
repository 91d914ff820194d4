"""Each profile keeps its provider's rules at every point of any conversation, and drops no text."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.projections.profiles import PROFILES, render, texts_of, violations
from onrecord.projections.profiles.reading import said_by
from onrecord.projections.rows import Row
from row_lists import hostile, lawful, sample

EVERY_PROFILE = pytest.mark.parametrize("profile", PROFILES)
ROLES = {"user": "user", "assistant": "assistant", "tool": "tool", "summary": "system"}


def readable(text: str) -> str:
    """Return the text as UTF-8 can carry it."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def assert_in_order(texts: list[str], said: list[str]) -> None:
    """Find each text in one piece, after the one before it."""
    places = iter(said)
    current, at = next(places, ""), 0
    for text in texts:
        while (found := current.find(text, at)) < 0:
            current, at = next(places), 0
        at = found + len(text)


@given(rows=lawful())
@settings(max_examples=100)
def test_rules_are_kept_at_every_point(rows: list[Row]) -> None:
    for length in range(len(rows) + 1):
        for profile in PROFILES:
            assert violations(profile, render(rows[:length], profile)) == [], profile


@given(rows=hostile(), annotate=st.booleans())
@settings(max_examples=200)
def test_rules_are_kept_for_rows_that_no_rule_allows(rows: list[Row], annotate: bool) -> None:
    for profile in PROFILES:
        assert violations(profile, render(rows, profile, annotate=annotate)) == [], profile


@given(rows=lawful(), annotate=st.booleans())
@settings(max_examples=100)
def test_every_text_survives_in_one_piece_and_in_order(rows: list[Row], annotate: bool) -> None:
    for profile in PROFILES:
        rendered = render(rows, profile, annotate=annotate)

        for role, speaker in ROLES.items():
            texts = [row.text for row in rows if row.role == role and row.text.strip()]
            assert_in_order(texts, said_by(speaker, profile, rendered))
        assert texts_of(profile, rendered) == said_by("assistant", profile, rendered)


@given(rows=hostile())
def test_no_text_is_lost_whatever_the_rows(rows: list[Row]) -> None:
    for profile in PROFILES:
        rendered = render(rows, profile)

        told = "\n".join(text for s in ROLES.values() for text in said_by(s, profile, rendered))
        for row in rows:
            assert not row.text.strip() or readable(row.text) in told, profile


@given(rows=hostile())
def test_equal_rows_give_equal_requests(rows: list[Row]) -> None:
    for profile in PROFILES:
        assert render(rows, profile) == render(copy.deepcopy(rows), profile)


@given(rows=hostile())
def test_ids_and_names_are_one_for_one(rows: list[Row]) -> None:
    calls = [call for row in rows if row.role == "assistant" for call in row.tool_calls]
    for profile in PROFILES:
        rendered = list(_calls(render(rows, profile)))

        assert len(rendered) == len(calls) == len({call_id for call_id, _ in rendered}), profile
        pairs = {(call.name, name) for call, (_, name) in zip(calls, rendered, strict=True)}
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}), profile


def _calls(value: Any) -> Any:
    """Find each call's id and name, whatever the provider's form."""
    if isinstance(value, list):
        for inner in value:
            yield from _calls(inner)
    elif isinstance(value, dict):
        function = value.get("function", value)
        marks = {"arguments", "input", "args"} & function.keys()
        if marks and "name" in function:
            keys = ("toolUseId", "call_id", "id")
            yield next(value[key] for key in keys if key in value), function["name"]
        else:
            yield from _calls(list(value.values()))


def _first(value: Any, key: str) -> Any:
    """Return the first mapping that holds the key."""
    if isinstance(value, dict):
        if key in value:
            return value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            if (found := _first(inner, key)) is not None:
                return found
    return None


def _items(rendered: dict[str, Any]) -> list[Any]:
    for key in ("messages", "input", "contents"):
        if key in rendered:
            items: list[Any] = rendered[key]
            return items
    raise KeyError("no list of messages")


def _set(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(rendered: dict[str, Any]) -> None:
        _first(_items(rendered), key)[key] = value

    return change


def _drop_last(rendered: dict[str, Any]) -> None:
    del _items(rendered)[-1]


def _empty(rendered: dict[str, Any]) -> None:
    _items(rendered).clear()


def _repeat_all(rendered: dict[str, Any]) -> None:
    _items(rendered).extend(copy.deepcopy(_items(rendered)[-2:]))


ID = {"openai": "id", "mistral": "id", "anthropic": "id", "gemini": "id"} | {
    "responses": "call_id",
    "converse": "toolUseId",
}
TEXT = {"gemini": "text", "converse": "text", "anthropic": "text"}


@EVERY_PROFILE
def test_the_check_bites(profile: str) -> None:
    good = render(sample(), profile)
    assert violations(profile, good) == []
    broken: list[Callable[[dict[str, Any]], None]] = [
        _drop_last,
        _empty,
        _repeat_all,
        _set(ID[profile], "no id!"),
        _set("name", "no name!"),
        _set(TEXT.get(profile, "content"), " \n"),
    ]

    for breach in broken:
        bad = copy.deepcopy(good)
        breach(bad)
        assert violations(profile, bad), breach


@pytest.mark.parametrize("profile", ["anthropic", "gemini", "mistral", "converse"])
def test_the_check_bites_on_turns(profile: str) -> None:
    good = render([Row(role="user", text="a"), Row(role="assistant", text="b")], profile)
    for cut in (slice(1, None), slice(None, -1)):
        bad = copy.deepcopy(good)
        _items(bad)[:] = _items(bad)[cut]
        assert violations(profile, bad)
    bad = copy.deepcopy(good)
    _items(bad).append(_items(bad)[-1])
    assert violations(profile, bad)


def test_requests_are_json() -> None:
    for profile in PROFILES:
        rendered = render(sample(), profile)
        assert json.loads(json.dumps(rendered)) == rendered
