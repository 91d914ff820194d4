"""What a rendering joins and adds: small conversations, and exactly what comes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from onrecord.projections.profiles import PROFILES, render, texts_of
from onrecord.projections.profiles.shaping import (
    ACKNOWLEDGED,
    CONTINUE,
    MAX_ARGUMENTS_DEPTH,
    OPENING,
    PENDING,
)
from onrecord.projections.rows import Row
from onrecord.transcript.events import ToolCall

ASK = Row(role="user", text="Ask")
CALL = Row(role="assistant", text="", tool_calls=(ToolCall("c1", "run", '{"n": 1}'),))
RESULT = Row(role="tool", text="1", tool_call="c1")
ANSWER = Row(role="assistant", text="One.")
FLAT = '{"n":[' + "[]," * MAX_ARGUMENTS_DEPTH + "[]]}"
DEEP = '{"n":' + "[" * (MAX_ARGUMENTS_DEPTH - 1) + "]" * (MAX_ARGUMENTS_DEPTH - 1) + "}"
TOO_DEEP = DEEP.replace("[]", "[[]]")
STRICT = pytest.mark.parametrize("profile", ["anthropic", "gemini", "mistral", "converse"])


def roles(profile: str, rows: list[Row]) -> list[str]:
    rendered = render(rows, profile)
    return [m["role"] for m in rendered.get("messages", rendered.get("contents", ()))]


@STRICT
def test_adjacent_rows_of_a_role_are_joined_with_a_blank_line(profile: str) -> None:
    rows = [ASK, ASK, Row(role="assistant", text="Let me see."), ANSWER, ASK]

    assert texts_of(profile, render(rows, profile)) == ["Let me see.\n\nOne."]
    assert len(roles(profile, rows)) == 3


def test_rows_stay_apart_where_roles_need_not_alternate() -> None:
    assert roles("openai", [ASK, ASK, ANSWER, ANSWER]) == ["user", "user", "assistant", "assistant"]
    assert len(render([ASK, ASK, ANSWER], "responses")["input"]) == 3


@STRICT
def test_an_assistant_text_stands_between_results_and_the_user(profile: str) -> None:
    rendered = render([ASK, CALL, RESULT, ASK], profile)

    assert texts_of(profile, rendered) == [ACKNOWLEDGED]


@STRICT
def test_the_user_is_first_and_the_assistants_words_are_not_last(profile: str) -> None:
    rendered = str(render([ANSWER], profile))

    assert rendered.index(OPENING) < rendered.index("One.") < rendered.index(CONTINUE)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_conversation_without_rows_is_never_an_empty_list(profile: str) -> None:
    assert OPENING in str(render([], profile))


@pytest.mark.parametrize("profile", PROFILES)
def test_a_call_that_waits_has_a_placeholder(profile: str) -> None:
    assert PENDING in str(render([ASK, CALL], profile))
    assert PENDING not in str(render([ASK, CALL, RESULT], profile))


def test_one_call_id_in_two_turns_is_two_ids() -> None:
    later = [CALL, Row(role="tool", text="2", tool_call="c1"), ANSWER]

    messages = render([ASK, CALL, RESULT, ANSWER, ASK, *later], "openai")["messages"]

    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    assert sorted(results.values()) == ["1", "2"]
    assert results["c1"] == "1"


def test_ids_stay_as_the_session_grows() -> None:
    rows = [ASK, CALL, RESULT, ANSWER, ASK, CALL]

    for profile in PROFILES:
        short, long = render(rows[:3], profile), render(rows, profile)
        (items,) = (v for k, v in short.items() if k in {"messages", "input", "contents"})
        (more,) = (v for k, v in long.items() if k in {"messages", "input", "contents"})
        assert more[: len(items)] == items


def test_mistral_parts_text_from_calls() -> None:
    both = Row(role="assistant", text="Let me see.", tool_calls=CALL.tool_calls)

    messages = render([ASK, both, RESULT], "mistral")["messages"]

    assert [m["role"] for m in messages] == ["user", "assistant", "user", "assistant", "tool"]
    assert messages[2]["content"] == CONTINUE


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"n": 1}', '{"n": 1}'),
        ("", "{}"),
        ("{", '{"arguments":"{"}'),
        ("[1]", '{"arguments":"[1]"}'),
        ('{"n": "\\ud800"}', '{"arguments":"{\\"n\\": \\"\\\\ud800\\"}"}'),
        (FLAT, FLAT),
        (DEEP, DEEP),
        (TOO_DEEP, json.dumps({"arguments": TOO_DEEP}, separators=(",", ":"))),
    ],
)
def test_arguments_are_always_an_object(arguments: str, told: str) -> None:
    call = Row(role="assistant", text="", tool_calls=(ToolCall("c1", "run", arguments),))

    message = render([ASK, call], "openai")["messages"][1]

    assert message["tool_calls"][0]["function"]["arguments"] == told


@pytest.mark.parametrize("profile", PROFILES)
def test_delivery_is_spoken_of_only_where_asked(profile: str) -> None:
    rows = [ASK, Row(role="assistant", text="One.", delivery="in_doubt"), ASK]

    assert texts_of(profile, render(rows, profile)) == ["One."]
    (noted,) = texts_of(profile, render(rows, profile, annotate=True))
    assert noted.startswith("One.\n\n[")


def test_a_summary_is_the_providers_system_text() -> None:
    rows = [Row(role="summary", text="Before."), ASK]
    system = {"role": "system", "content": "Before."}

    assert render(rows, "openai")["messages"][0] == system
    assert render(rows, "mistral")["messages"][0] == system
    assert render(rows, "responses")["input"][0] == {"type": "message", **system}
    assert render(rows, "anthropic")["system"] == "Before."
    assert render(rows, "converse")["system"] == [{"text": "Before."}]
    assert render(rows, "gemini")["system_instruction"] == {"parts": [{"text": "Before."}]}


def test_an_error_is_said_in_the_providers_way() -> None:
    failed = Row(role="tool", text="no", tool_call="c1", is_error=True)
    rows = [ASK, CALL, failed]

    assert render(rows, "anthropic")["messages"][-1]["content"][0]["is_error"] is True
    result = render(rows, "converse")["messages"][-1]["content"][0]["toolResult"]
    assert result["status"] == "error"
    response = render(rows, "gemini")["contents"][-1]["parts"][0]["functionResponse"]
    assert response["response"] == {"error": "no"}


def test_unknown_profiles_and_roles_are_refused() -> None:
    with pytest.raises(ValueError, match="use one of openai"):
        render([ASK], "cohere")
    with pytest.raises(ValueError, match="role"):
        render([Row(role="system", text="x")], "openai")


def test_no_providers_library_is_loaded() -> None:
    code = (
        "import sys, onrecord.projections.profiles; print(sorted({'openai', 'anthropic', 'google',"
        " 'mistral_common', 'litellm', 'boto3', 'jinja2', 'pydantic'} & sys.modules.keys()))"
    )
    imports = str(Path(sys.modules["onrecord"].__file__ or "").parent.parent)

    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": imports},
    )

    assert told.stdout.strip() == "[]"
