"""OpenAI Chat Completions: `messages`.

The rules (platform.openai.com/docs/api-reference/chat/create and the API's own refusals): an
assistant message has content or `tool_calls`; each call is answered by a `tool` message directly
after it; a call's id has 40 characters at most; a function's name matches `[a-zA-Z0-9_-]{1,64}`;
`arguments` is JSON text. Roles need not alternate, so each row is a message of its own. A server
with a strict chat template behind this interface wants the `mistral` profile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from onrecord.projections.profiles.naming import Form
from onrecord.projections.profiles.shaping import Step, arguments_text, steps_of, summary_of
from onrecord.projections.rows import Row

IDS = Form(re.compile(r"[a-zA-Z0-9_-]{1,40}"), "call_", 24)


def render(rows: Sequence[Row], *, annotate: bool = False) -> dict[str, Any]:
    """Return `messages`; a summary is the system message."""
    steps = steps_of(rows, ids=IDS, annotate=annotate)
    return {"messages": chat_messages(summary_of(rows), steps)}


def chat_messages(summary: str, steps: Iterable[Step]) -> list[dict[str, Any]]:
    """Return the messages of the chat interface that others have taken over from OpenAI."""
    messages: list[dict[str, Any]] = []
    if summary:
        messages.append({"role": "system", "content": summary})
    for step in steps:
        message: dict[str, Any] = {"role": step.role}
        if step.text:
            message["content"] = step.text
        messages.append(message)
        if step.calls:
            calls: list[dict[str, Any]] = []
            message["tool_calls"] = calls
            for call in step.calls:
                function = {"name": call.name, "arguments": arguments_text(call.arguments)}
                calls.append({"id": call.id, "type": "function", "function": function})
                messages.append({"role": "tool", "tool_call_id": call.id, "content": call.result})
    return messages
