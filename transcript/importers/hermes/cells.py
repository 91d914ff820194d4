"""The cells of a Hermes row: text that may be JSON, bytes or broken, tool calls, times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from onrecord.transcript.events import ToolCall

JSON_PREFIX = "\0json:"
"""What stands before content that is a list or map (hermes_state.py: _CONTENT_JSON_PREFIX)."""

_LATEST = 1e11
"""Seconds since 1970 that a time may have: beyond, it is in another unit."""

_decoder = msgspec.json.Decoder()


class Content(NamedTuple):
    """A row's text, its parts where it has several, and what is wrong with it."""

    text: str
    parts: Sequence[Any] = ()
    fault: str = ""


def content_of(cell: object) -> Content:
    """Return what a row says, as far as it can be read."""
    if isinstance(cell, str):
        return _structured(cell) if cell.startswith(JSON_PREFIX) else Content(cell)
    if isinstance(cell, bytes):
        try:
            return content_of(cell.decode())
        except UnicodeDecodeError as error:
            fault = f"byte {error.start + 1} of the content isn't UTF-8; read with U+FFFD there"
            return content_of(cell.decode("utf-8", "replace"))._replace(fault=fault)
    return Content("" if cell is None else str(cell))


def _structured(cell: str) -> Content:
    try:
        found = json.loads(cell.removeprefix(JSON_PREFIX))
    except (ValueError, RecursionError) as error:
        return Content(
            cell.removeprefix(JSON_PREFIX), (), f"the content's JSON is broken ({error})"
        )
    parts = found if isinstance(found, list) else [found]
    return Content("\n".join(filter(None, map(_text_of_part, parts))), parts)


def _text_of_part(part: object) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") or part.get("content") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def calls_of(cell: Any) -> tuple[list[ToolCall], str]:
    """Return the tool calls of a row, and what is wrong with them."""
    try:
        found = _decoder.decode(cell)
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError) as error:
        return [], f"the tool calls are no JSON ({error})"
    if isinstance(found, dict):
        found = [found]
    if not isinstance(found, list) or not all(isinstance(call, dict) for call in found):
        return [], "the tool calls are JSON, but no list of calls"
    return [_call(call) for call in found], ""


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
