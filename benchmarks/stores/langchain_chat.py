"""Messages of langchain_core, which two of the peers are given."""

from __future__ import annotations

import json
from importlib import import_module  # a peer is installed in an environment of its own
from typing import Any

from workload import SaidTurn

messages = import_module("langchain_core.messages")
ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}


def chat(turn: SaidTurn) -> list[Any]:
    """Return a turn as the messages of langchain_core."""
    call = {"id": turn.call, "name": turn.tool, "args": json.loads(turn.arguments)}
    return [
        messages.HumanMessage(turn.question),
        messages.AIMessage("", tool_calls=[call]),
        messages.ToolMessage(turn.result, tool_call_id=turn.call, name=turn.tool),
        messages.AIMessage(turn.answer),
    ]


def role(message: Any) -> str:
    return ROLES.get(message.type, str(message.type))


def text(message: Any) -> str:
    return json.dumps([message.content, getattr(message, "tool_calls", None)])
