"""LangChain's messages → rows."""

from __future__ import annotations

import json
from typing import Any

from onrecord.transcript.events import ToolCall
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.contents import others, text_of, thoughts_of
from onrecord.transcript.importers.langgraph_values import Message
from onrecord.transcript.importers.rows import SourceRows

_CHAT_ROLES = {"user": "human", "assistant": "ai", "developer": "system"}


def kind_of(message: Message) -> str:
    """Return what a message is: human, ai, tool, system, function, remove, or a role that is none of ours."""
    role = str(message.fields.get("role", ""))
    return _CHAT_ROLES.get(role, role) if message.kind == "chat" else message.kind


def tell(rows: SourceRows, message: Message, key: str, at: int | None, place: str) -> None:
    """Tell the rows a message. `key`: unique in the session."""
    fields, kind = message.fields, kind_of(message)
    content = fields.get("content")
    if kind == "human":
        rows.user(key, text_of(content), at, place, parts=others(content))
    elif kind == "ai":
        _answer(rows, fields, key, at, place)
    elif kind in ("tool", "function"):
        call = str(fields.get("tool_call_id") or fields.get("name") or key)
        rows.tool(call, text_of(content), at, place, is_error=fields.get("status") == "error")
    elif kind == "system":
        rows.instructed(text_of(content), at, place)
    elif kind == "remove":
        rows.fault(codes.UNKNOWN, place, "a RemoveMessage that removed nothing stands in the state")
    else:
        rows.fault(codes.UNKNOWN, place, f"a message of the role {kind!r}")


def _answer(rows: SourceRows, fields: dict[str, Any], key: str, at: int | None, place: str) -> None:
    more, meta = _map(fields, "additional_kwargs"), _map(fields, "response_metadata")
    content = fields.get("content")
    finish = meta.get("finish_reason") or meta.get("stop_reason")
    thoughts = thoughts_of(content) or more.get("reasoning_content")
    rows.assistant(
        key, text_of(content), at, place,
        calls=_calls(fields, more),
        finish_reason=str(finish) if finish else None,
        reasoning=thoughts if isinstance(thoughts, str) and thoughts else None,
        usage=_storable(_map(fields, "usage_metadata")) or None,
    )  # fmt: skip


def _calls(fields: dict[str, Any], more: dict[str, Any]) -> list[ToolCall]:
    """Return a message's calls: those that LangChain could read, and those that it couldn't."""
    found = [
        _call(each.get("id"), each.get("name"), each.get("args"))
        for name in ("tool_calls", "invalid_tool_calls")
        for each in _maps(fields, name)
        if not isinstance(each.get("function"), dict)
    ]
    if found:
        return found
    in_interface = _maps(fields, "tool_calls") or _maps(more, "tool_calls")
    return [
        _call(each.get("id"), function.get("name"), function.get("arguments"))
        for each in in_interface
        if (function := _map(each, "function"))
    ]


def _call(id: object, name: object, arguments: object) -> ToolCall:
    given = (
        arguments
        if isinstance(arguments, str)
        else json.dumps({} if arguments is None else arguments, ensure_ascii=False, default=str)
    )
    return ToolCall(id=str(id or ""), name=str(name or ""), arguments=given)


def _storable(value: Any) -> Any:
    """Return plain data for what may hold values that weren't loaded."""
    return json.loads(json.dumps(value, default=str)) if value else value


def _map(fields: dict[str, Any], name: str) -> dict[str, Any]:
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def _maps(fields: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = fields.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
