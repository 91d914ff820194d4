"""Anthropic Messages: `messages`, and `system` where there is a summary.

The rules (platform.claude.com/docs: "Handle tool calls", "Messages", "What's new in Claude 4.6",
and the API's own refusals): the user first, then in turns; `tool_result` blocks directly after
their `tool_use`, at the beginning of the user message; ids match `[a-zA-Z0-9_-]+` and are unique in
the request; `input` is an object; no text block is blank; a name matches `[a-zA-Z0-9_-]{1,64}`.
Models since 4.6 refuse a conversation that ends in an assistant message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from onrecord.projections.profiles.naming import Form
from onrecord.projections.profiles.shaping import Call, Step, alternate, arguments_object, shape
from onrecord.projections.rows import Row

IDS = Form(re.compile(r"[a-zA-Z0-9_-]{1,64}"), "toolu_", 24)


def render(rows: Sequence[Row], *, annotate: bool = False) -> dict[str, Any]:
    """Return `messages` and, for a summary, `system`."""
    shaped = shape(rows, ids=IDS, annotate=annotate)
    messages = [message for step in alternate(shaped.steps) for message in _messages(step)]
    request: dict[str, Any] = {"messages": messages}
    if shaped.summary:
        request["system"] = shaped.summary
    return request


def _messages(step: Step) -> Iterator[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text else []
    blocks += [
        {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": arguments_object(call.arguments),
        }
        for call in step.calls
    ]
    yield {"role": step.role, "content": blocks}
    if step.calls:
        yield {"role": "user", "content": [_result(call) for call in step.calls]}


def _result(call: Call) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": call.result,
    }
    if call.is_error:
        block["is_error"] = True
    return block
