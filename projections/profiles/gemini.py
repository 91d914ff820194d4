"""Gemini generateContent: `contents`, and `system_instruction` where there is a summary.

The rules (ai.google.dev/gemini-api/docs: "Function calling", "Thought signatures", and the API's
own refusals): the user first and last, user and model in turns; a content with `functionCall` parts
comes after the user or a function response, and is directly followed by one content with as many
`functionResponse` parts and nothing else; a function's name begins with a letter or `_` and has up
to 64 letters, digits, `_` and `-`; `args` and `response` are objects, the response under `output`
or `error`. Models since Gemini 3 want the thought signature of each step's first call; a transcript
that another model or program may have written has none, and says so in the documented way.
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

IDS = Form(re.compile(r"[a-zA-Z0-9_-]{1,64}"), "call_", 24)
NAMES = Form(re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"), "tool_", 24)
NO_SIGNATURE = "skip_thought_signature_validator"
_ROLES = {"user": "user", "assistant": "model"}


def render(rows: Sequence[Row], *, annotate: bool = False) -> dict[str, Any]:
    """Return `contents` and, for a summary, `system_instruction`."""
    contents: list[dict[str, Any]] = []
    for step in alternate(steps_of(rows, ids=IDS, names=NAMES, annotate=annotate)):
        parts: list[dict[str, Any]] = [{"text": step.text}] if step.text else []
        contents.append({"role": _ROLES[step.role], "parts": parts})
        responses: list[dict[str, Any]] = []
        for place, call in enumerate(step.calls):
            part = _call(call)
            if place == 0:
                part["thoughtSignature"] = NO_SIGNATURE
            parts.append(part)
            responses.append(_response(call))
        if responses:
            contents.append({"role": "user", "parts": responses})
    request: dict[str, Any] = {"contents": contents}
    if summary := summary_of(rows):
        request["system_instruction"] = {"parts": [{"text": summary}]}
    return request


def _call(call: Call) -> dict[str, Any]:
    args = arguments_object(call.arguments)
    return {"functionCall": {"id": call.id, "name": call.name, "args": args}}


def _response(call: Call) -> dict[str, Any]:
    key = "error" if call.is_error else "output"
    return {"functionResponse": {"id": call.id, "name": call.name, "response": {key: call.result}}}
