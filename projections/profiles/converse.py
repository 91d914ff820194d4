"""Amazon Bedrock Converse: `messages`, and `system` where there is a summary.

The rules (the service's published model and its own refusals): the user first and last, in turns;
`toolResult` blocks directly after their `toolUse`, in a user message without other content, which
several models refuse beside results; `toolUseId` is unique and matches `[a-zA-Z0-9_.:-]{1,64}`;
`name` matches `[a-zA-Z0-9_-]{1,64}`; `input` is an object; no text is blank. A few models also
refuse text beside `toolUse`, which others answer themselves: that is no rule of the interface, and
the two stay together here.
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

# The model allows `.` and `:` too; endpoints that don't know of it yet are served as well.
IDS = Form(re.compile(r"[a-zA-Z0-9_-]{1,64}"), "tooluse_", 24)


def render(rows: Sequence[Row], *, annotate: bool = False) -> dict[str, Any]:
    """Return `messages` and, for a summary, `system`."""
    messages: list[dict[str, Any]] = []
    for step in alternate(steps_of(rows, ids=IDS, annotate=annotate)):
        blocks: list[dict[str, Any]] = [{"text": step.text}] if step.text else []
        messages.append({"role": step.role, "content": blocks})
        results: list[dict[str, Any]] = []
        for call in step.calls:
            blocks.append(_use(call))
            results.append(_result(call))
        if results:
            messages.append({"role": "user", "content": results})
    request: dict[str, Any] = {"messages": messages}
    if summary := summary_of(rows):
        request["system"] = [{"text": summary}]
    return request


def _use(call: Call) -> dict[str, Any]:
    return {
        "toolUse": {
            "toolUseId": call.id,
            "name": call.name,
            "input": arguments_object(call.arguments),
        }
    }


def _result(call: Call) -> dict[str, Any]:
    return {
        "toolResult": {
            "toolUseId": call.id,
            "content": [{"text": call.result}],
            "status": "error" if call.is_error else "success",
        }
    }
