"""OpenAI Responses: `input`.

The rules (platform.openai.com/docs/api-reference/responses/create and the API's own refusals): each
`function_call` item has a `function_call_output` with its `call_id`, which has 64 characters at
most of letters, digits, `_` and `-`; a function's name matches `[a-zA-Z0-9_-]{1,64}`; `arguments`
is JSON text. Roles need not alternate. A summary is a system message of the input and not
`instructions`, which are the caller's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from onrecord.projections.profiles.naming import Form
from onrecord.projections.profiles.shaping import Call, arguments_text, steps_of, summary_of
from onrecord.projections.rows import Row

IDS = Form(re.compile(r"[a-zA-Z0-9_-]{1,64}"), "call_", 24)


def render(rows: Sequence[Row], *, annotate: bool = False) -> dict[str, Any]:
    """Return `input`: messages, calls and their outputs, in order."""
    items: list[dict[str, Any]] = []
    if summary := summary_of(rows):
        items.append(_message("system", summary))
    for step in steps_of(rows, ids=IDS, annotate=annotate):
        if step.text:
            items.append(_message(step.role, step.text))
        outputs: list[dict[str, Any]] = []
        for call in step.calls:
            items.append(_call(call))
            outputs.append(_output(call))
        items += outputs
    return {"input": items}


def _message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def _call(call: Call) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments_text(call.arguments),
    }


def _output(call: Call) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call.id, "output": call.result}
