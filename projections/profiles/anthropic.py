"""Anthropic Messages: `messages`, and `system` where there is a summary.

The rules (platform.claude.com/docs: "Handle tool calls", "Messages", "What's new in Claude 4.6",
and the API's own refusals): the user first, then in turns; `tool_result` blocks directly after
their `tool_use`, at the beginning of the user message; ids match `[a-zA-Z0-9_-]+` and are unique in
the request; `input` is an object; no text block is blank; a name matches `[a-zA-Z0-9_-]{1,64}`.
Models since 4.6 refuse a conversation that ends in an assistant message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from onrecord.projections.profiles.naming import Form
from onrecord.projections.profiles.shaping import (
    Call,
    alternate,
    arguments_object,
    steps_of,
    summary_of,
)
from onrecord.projections.rows import Row

IDS = Form(re.compile(r"[a-zA-Z0-9_-]{1,64}"), "toolu_", 24)


def render(rows: Sequence[Row], *, annotate: bool = False) -> dict[str, Any]:
    """Return `messages` and, for a summary, `system`."""
    messages: list[dict[str, Any]] = []
    for step in alternate(steps_of(rows, ids=IDS, annotate=annotate)):
        blocks: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text else []
        messages.append({"role": step.role, "content": blocks})
        results: list[dict[str, Any]] = []
        for call in step.calls:
            blocks.append(_use(call))
            results.append(_result(call))
        if results:
            messages.append({"role": "user", "content": results})
    request: dict[str, Any] = {"messages": messages}
    if summary := summary_of(rows):
        request["system"] = summary
    return request


def _use(call: Call) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": arguments_object(call.arguments),
    }


def _result(call: Call) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": call.result,
    }
    if call.is_error:
        block["is_error"] = True
    return block
