"""Items of a session become rows: what the model said at once is one row, with its calls."""

from __future__ import annotations

from typing import Any

import pytest

from onrecord.transcript.importers.openai_items import Items
from onrecord.transcript.importers.rows import SourceRows

USER = {"role": "user", "content": "And in Oslo?"}


def told(*items: dict[str, Any], finish: bool = True) -> list[Any]:
    """Return the events of items, one a row of the source."""
    rows = SourceRows("openai-agents", "s")
    reader = Items(rows)
    for number, item in enumerate(items, 1):
        reader.read(str(number), item, number, f"agent_messages {number}")
    if finish:
        reader.finish()
    return [event for event, _, _ in rows.take()]


def of(events: list[Any], type: str) -> list[Any]:
    return [event for event in events if event.type == type]


def message(text: str, response: str = "", **more: Any) -> dict[str, Any]:
    item = {
        "type": "message", "role": "assistant", "status": "completed", "id": "__fake_id__",
        "content": [{"type": "output_text", "text": text, "annotations": []}], **more,
    }  # fmt: skip
    return {**item, "provider_data": {"response_id": response}} if response else item


def call(id: str = "c1", response: str = "", **more: Any) -> dict[str, Any]:
    item = {
        "type": "function_call", "call_id": id, "name": "weather", "arguments": '{"city": "Oslo"}',
        "id": "__fake_id__", **more,
    }  # fmt: skip
    return {**item, "provider_data": {"response_id": response}} if response else item


def output(id: str = "c1", text: Any = "rain", **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": text, **more}


def test_a_response_is_one_row_with_its_thoughts_and_calls() -> None:
    thought = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm."}],
    }

    events = told(
        USER, thought, message("Let me see."), call("c1"), call("c2"), output("c2"), output()
    )

    (said,) = of(events, "AssistantMessageProduced")
    assert (said.message, said.text, said.reasoning) == ("2", "Let me see.", "Hm.")
    assert [each.id for each in said.tool_calls] == ["c1", "c2"]
    assert said.imported_from == "agent_messages 2"
    assert [each.tool_call for each in of(events, "ToolResultReceived")] == ["c2", "c1"]


def test_a_call_before_the_words_is_of_the_same_response() -> None:
    (said,) = of(told(USER, call(), message("I look."), output()), "AssistantMessageProduced")

    assert (said.text, len(said.tool_calls)) == ("I look.", 1)


def test_another_response_is_another_row() -> None:
    events = told(USER, message("One.", "r1"), message("Two.", "r2"))

    assert [said.text for said in of(events, "AssistantMessageProduced")] == ["One.", "Two."]


def test_messages_of_the_chat_interface_are_read_as_well() -> None:
    asked = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    events = told(
        {"role": "system", "content": "Be brief."},
        USER,
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "rain"}]},
        {"role": "assistant", "content": "It rains."},
    )

    first, second = of(events, "AssistantMessageProduced")
    assert (first.text, first.tool_calls[0].name, second.text) == ("", "weather", "It rains.")
    assert [(r.tool_call, r.text) for r in of(events, "ToolResultReceived")] == [("c1", "rain")]
    (told_model,) = of(events, "RecoveryApplied")
    assert (told_model.turn, told_model.kind, told_model.prompt) == (
        "2",
        "instructions",
        "Be brief.",
    )
    assert of(events, "SourceFaultFound") == []


@pytest.mark.parametrize(
    ("item", "name", "arguments", "result"),
    [
        ({"type": "web_search_call", "id": "x", "status": "completed", "action": {"query": "a"}},
         "web_search", '{"action": {"query": "a"}}', "completed"),
        ({"type": "file_search_call", "id": "x", "queries": ["a"], "results": [{"text": "found"}]},
         "file_search", '{"queries": ["a"]}', "found"),
        ({"type": "mcp_call", "id": "x", "server_label": "git", "name": "log", "arguments": "{}",
          "output": "none"}, "git.log", "{}", "none"),
        ({"type": "code_interpreter_call", "id": "x", "code": "1+1", "container_id": "k",
          "outputs": [{"type": "logs", "logs": "2"}]},
         "code_interpreter", '{"code": "1+1", "container_id": "k"}', '[{"type": "logs", "logs": "2"}]'),
    ],
)  # fmt: skip
def test_what_the_provider_does_itself_is_a_call_with_its_result(
    item: dict[str, Any], name: str, arguments: str, result: str
) -> None:
    events = told(USER, message("I look."), item, message("Done."))

    said, done = of(events, "AssistantMessageProduced")
    (asked,) = said.tool_calls
    assert (asked.name, asked.arguments) == (name, arguments)
    assert (said.text, done.text, done.tool_calls) == ("I look.", "Done.", [])
    (answered,) = of(events, "ToolResultReceived")
    assert (answered.tool_call, answered.text) == ("x", result)
    assert [each.outcome for each in of(events, "TurnFinalized")] == ["completed"]


def test_calls_of_other_kinds_are_answered_by_items_of_theirs() -> None:
    events = told(
        USER,
        {"type": "computer_call", "call_id": "a", "id": "1", "action": {"type": "click"}},
        {"type": "computer_call_output", "call_id": "a", "output": {"image_url": "data:"}},
        {"type": "custom_tool_call", "call_id": "b", "name": "sh", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "file"},
        {"type": "mcp_approval_request", "id": "c", "name": "log", "server_label": "git", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "c", "approve": False, "reason": "no"},
        {"type": "tool_search_call", "id": "d", "call_id": None, "arguments": {"q": 1}},
        {"type": "tool_search_output", "id": "e", "call_id": None, "tools": [{"name": "sh"}]},
    )  # fmt: skip

    assert of(events, "SourceFaultFound") == []
    results = [(each.tool_call, each.text) for each in of(events, "ToolResultReceived")]
    assert [call for call, _ in results] == ["a", "b", "c", "d"]
    assert results[2][1] == "not approved no"


def test_a_refusal_and_several_parts_are_text_and_a_picture_is_a_part() -> None:
    question = {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "file_id": "f1", "image_url": None},
        ],
    }
    refused = message("")
    refused["content"] = [{"type": "refusal", "refusal": "I won't say."}]

    events = told(question, refused)

    (asked,) = of(events, "UserMessageReceived")
    assert (asked.text, asked.parts) == (
        "What is this?",
        [{"type": "input_image", "file_id": "f1"}],
    )
    assert of(events, "AssistantMessageProduced")[0].text == "I won't say."


def test_a_response_that_was_cut_says_so() -> None:
    (said,) = of(told(USER, message("Once up", status="incomplete")), "AssistantMessageProduced")

    assert said.finish_reason == "incomplete"


def test_a_turn_without_an_answer_stays_open() -> None:
    assert of(told(USER, call()), "TurnFinalized") == []
    assert of(told(USER), "TurnFinalized") == []
    assert [each.turn for each in of(told(USER, message("Yes.")), "TurnFinalized")] == ["1"]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "function_call"},
        {"type": "message", "role": "assistant", "content": [None, 7, {"text": {"a": 1}}]},
        {"role": "assistant", "content": {"odd": True}, "tool_calls": [None, {"function": 3}]},
        {"role": "user", "content": 7},
        {"type": "reasoning", "summary": "no list"},
        {"type": "function_call_output", "output": None},
        {"type": ["list"], "role": "user"},
        {"role": {"a": 1}},
    ],
)
def test_an_item_of_a_strange_form_stops_nothing(item: dict[str, Any]) -> None:
    events = told(USER, item, message("Still here."))

    assert "Still here." in "".join(said.text for said in of(events, "AssistantMessageProduced"))
