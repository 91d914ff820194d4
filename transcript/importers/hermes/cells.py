"""The cells of a Hermes row: text that may be JSON, bytes or broken, tool calls, times."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from onrecord.transcript.events import ToolCall

JSON_PREFIX = "\0json:"
"""What stands before content that is a list or map (hermes_state.py: _CONTENT_JSON_PREFIX)."""

_LATEST = 1e11
"""Seconds since 1970 that a time may have: beyond, it is in another unit."""

_decoder = msgspec.json.Decoder()


class Unreadable(Exception):
    """A cell can't be read as what it should be; the message says why."""


def text_of(content: object) -> tuple[str, list[Any]]:
    """Return the text of a row's content, and its parts where it has several.

    Raise Unreadable with the text as far as it can be read as second argument.
    """
    if content is None:
        return "", []
    if isinstance(content, bytes):
        return _decoded(content)
    if not isinstance(content, str):
        return str(content), []
    if not content.startswith(JSON_PREFIX):
        return content, []
    try:
        found = json.loads(content.removeprefix(JSON_PREFIX))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the content's JSON is broken ({error})", content[6:], []) from error
    parts = found if isinstance(found, list) else [found]
    return "\n".join(filter(None, map(_text_of_part, parts))), parts


def _decoded(content: bytes) -> tuple[str, list[Any]]:
    try:
        return text_of(content.decode())
    except UnicodeDecodeError as error:
        text, parts = text_of(content.decode("utf-8", "replace"))
        why = f"byte {error.start + 1} of the content isn't UTF-8; read with U+FFFD there"
        raise Unreadable(why, text, parts) from error


def _text_of_part(part: object) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") or part.get("content") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def calls_of(cell: object) -> list[ToolCall]:
    """Return the tool calls of a row. Raise Unreadable."""
    if isinstance(cell, str):
        cell = cell.encode("utf-8", "surrogatepass")
    try:
        found = _decoder.decode(cell)  # type: ignore[arg-type]
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"the tool calls are no JSON ({error})") from error
    if isinstance(found, dict):
        found = [found]
    if not isinstance(found, list) or not all(isinstance(call, dict) for call in found):
        raise Unreadable("the tool calls are JSON, but no list of calls")
    return [_call(call) for call in found]


def _call(call: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    said = function if isinstance(function, dict) else call
    arguments = said.get("arguments")
    if not isinstance(arguments, str):
        arguments = "{}" if arguments is None else msgspec.json.encode(arguments).decode()
    return ToolCall(
        id=str(call.get("id") or call.get("call_id") or ""),
        name=str(said.get("name") or ""),
        arguments=arguments,
    )


def microseconds(cell: object) -> int | None:
    """Return a time in µs since 1970, None where the cell holds none."""
    if not isinstance(cell, int | float) or not 0 <= cell < _LATEST:
        return None
    return round(cell * 1_000_000)
