"""OpenAI Responses: `input`.

The rules (platform.openai.com/docs/api-reference/responses/create and the API's own refusals): each
`function_call` item has a `function_call_output` with its `call_id`, which has 64 characters at
most of letters, digits, `_` and `-`; a function's name matches `[a-zA-Z0-9_-]{1,64}`; `arguments`
is JSON text. Roles need not alternate. A summary is a system message of the input and not
`instructions`, which are the caller's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from onrecord.projections.profiles.naming import Form
from onrecord.projections.profiles.shaping import Step, arguments_text, shape
from onrecord.projections.rows import Row

IDS = Form(re.compile(r"[a-zA-Z0-9_-]{1,64}"), "call_", 24)


def render(rows: Sequence[Row], *, annotate: bool = False) -> dict[str, Any]:
    """Return `input`: messages, calls and their outputs, in order."""
    shaped = shape(rows, ids=IDS, annotate=annotate)
    items: list[dict[str, Any]] = []
    if shaped.summary:
        items.append(_message("system", shaped.summary))
    for step in shaped.steps:
        items += _items(step)
    return {"input": items}


def _items(step: Step) -> Iterator[dict[str, Any]]:
    if step.text:
        yield _message(step.role, step.text)
    for call in step.calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments_text(call.arguments),
        }
    for call in step.calls:
        yield {"type": "function_call_output", "call_id": call.id, "output": call.result}


def _message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}
