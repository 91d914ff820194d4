"""Items as OpenAI's interfaces have them → rows: those of Responses, and messages of the chat interface.

A response of the model stands as several items, one after another: reasoning, messages, calls. Together
they are one row. It ends where something that isn't the model's comes, or an item of another response.
What follows a call that the provider answered itself was said knowing the result: it is the next row.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard

from onrecord.transcript.events import ToolCall
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.contents import others, text_of
from onrecord.transcript.importers.rows import SourceRows

Item: TypeAlias = dict[str, Any]

REMEMBERED = 10_000
"""Ids of items, the latest of a session, by which one that is stored twice is known."""

NO_IDS = frozenset({"", "__fake_id__"})
"""What stands where an interface gives no id."""

CALLS = frozenset(
    {
        "function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call",
        "apply_patch_call", "tool_search_call", "mcp_approval_request",
    }
)  # fmt: skip
"""Calls that are answered by an item of their own."""
ANSWERS = {
    **{f"{kind}_output": kind for kind in CALLS},
    "tool_search_output": "tool_search_call",
    "mcp_approval_response": "mcp_approval_request",
}
HOSTED = frozenset(
    {
        "file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call",
        "mcp_call", "mcp_list_tools",
    }
)  # fmt: skip
"""Calls that the provider answers itself, in the same item."""

_NO_ARGUMENTS = frozenset(
    {
        "id", "call_id", "type", "name", "status", "provider_data", "output", "outputs", "result",
        "results", "error", "tools", "server_label",
    }
)  # fmt: skip
_RESULTS = ("output", "outputs", "results", "result", "tools", "error", "status")
_LOST = {
    "compaction": "what the compaction stands for is encrypted; the items that it replaced are gone",
    "item_reference": "an item is only referred to; what it says isn't in the file",
}


@dataclass
class _Response:
    """A response whose items are still being read."""

    key: str
    at: int | None
    place: str
    id: str
    texts: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[tuple[str, str, bool, str]] = field(
        default_factory=list[tuple[str, str, bool, str]]
    )
    finish: str | None = None


class Items:
    """One session's items, told to its rows one after another."""

    def __init__(self, rows: SourceRows) -> None:
        self.rows = rows
        self.at: int | None = None
        self.place = ""
        self.answered = True
        """Whether nothing waits for an answer: no message of the user, no call, no result."""
        self.usage: dict[str, Any] | None = None
        """What the open turn used; it goes to the turn's last response."""
        self._response: _Response | None = None
        self._known: OrderedDict[str, str] = OrderedDict()
        self._called: set[str] = set()
        self._latest: dict[str, str] = {}

    def read(self, key: str, item: Item, at: int | None, place: str) -> None:
        """Take an item in. `key`: unique in the session, and the same when it is read again."""
        self.at, self.place = at, place
        kind = str(item.get("type") or ("message" if "role" in item else ""))
        if self._is_repeated(item, kind, place):
            return
        if kind == "message":
            self._message(key, item, at, place)
        elif kind in CALLS or kind in HOSTED:
            self._call(self._open(key, item, at, place), kind, item, place)
        elif kind == "reasoning":
            said = [text_of(item.get(name)) for name in ("summary", "content")]
            self._open(key, item, at, place).reasoning += [text for text in said if text]
        elif kind in ANSWERS:
            self._answer(ANSWERS[kind], item, at, place)
        elif kind in _LOST:
            self.rows.fault(codes.LOST, place, _LOST[kind])
        else:
            told = f"an item of type {kind!r}" if kind else "an item with neither type nor role"
            self.rows.fault(codes.UNKNOWN, place, f"{told}; nothing of it was read")

    def finish(self) -> None:
        """There are no more items for now."""
        self._flush(self.usage)
        self.rows.finish(self.at)

    def end_response(self) -> None:
        """What comes next is not of the same response."""
        self._flush()

    # --- messages --------------------------------------------------------------------------------

    def _message(self, key: str, item: Item, at: int | None, place: str) -> None:
        role, content = item.get("role"), item.get("content")
        if role == "user":
            self._flush(self.usage)
            self.usage = None
            self._called.clear()
            self.answered = False
            self.rows.user(key, text_of(content), at, place, parts=others(content))
        elif role == "assistant":
            self._say(key, item, at, place)
        elif role in ("tool", "function"):
            call = str(item.get("tool_call_id") or item.get("name") or "")
            self._result(call, text_of(content), at, place, is_error=False)
        elif role in ("system", "developer"):
            self._flush()
            self.rows.instructed(text_of(content), at, place)
        else:
            self.rows.fault(codes.UNKNOWN, place, f"a message of the role {role!r}")

    def _say(self, key: str, item: Item, at: int | None, place: str) -> None:
        """Take in the model's words: an item of a response, or a whole response of the chat interface."""
        calls = item.get("tool_calls")
        response = self._open(key, item, at, place)
        text = text_of(item.get("content")) or text_of(item.get("refusal"))
        if text:
            response.texts.append(text)
        if item.get("status") not in (None, "completed"):
            response.finish = str(item["status"])
        for call in calls if _is_list(calls) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                self._call(
                    response, "function_call", {**function, "call_id": call.get("id")}, place
                )
        if calls or not _is_list(item.get("content")):
            self._flush()

    # --- responses -------------------------------------------------------------------------------

    def _open(self, key: str, item: Item, at: int | None, place: str) -> _Response:
        """Return the response that an item is of."""
        provider = item.get("provider_data")
        id = str(provider.get("response_id") or "") if isinstance(provider, dict) else ""
        if self._response is not None:
            is_other = bool(id and self._response.id and id != self._response.id)
            if is_other or (self._response.results and item.get("type") not in HOSTED):
                self._flush()
        if self._response is None:
            self._response = _Response(key, at, place, id)
        self._response.id = self._response.id or id
        return self._response

    def _call(self, response: _Response, kind: str, item: Item, place: str) -> None:
        call = str(item.get("call_id") or item.get("id") or f"call:{place}")
        if call in self._called:
            self.rows.fault(codes.DUPLICATE, place, f"the call {call} is stored a second time")
            return
        self._called.add(call)
        self._latest[kind] = call
        name = str(item.get("name") or kind.removesuffix("_call"))
        if item.get("server_label"):
            name = f"{item['server_label']}.{name}"
        response.calls.append(ToolCall(id=call, name=name, arguments=_arguments(item)))
        if kind in HOSTED:
            given = next((item[each] for each in _RESULTS if item.get(each)), "")
            failed = bool(item.get("error")) or item.get("status") in ("failed", "incomplete")
            response.results.append((call, text_of(given), failed, place))

    def _answer(self, kind: str, item: Item, at: int | None, place: str) -> None:
        call = str(
            item.get("call_id") or item.get("approval_request_id") or self._latest.get(kind, "")
        )
        given = next((item[each] for each in ("output", "tools") if item.get(each)), "")
        if kind == "mcp_approval_request":
            given = (
                "approved" if item.get("approve") else f"not approved {item.get('reason') or ''}"
            )
        failed = item.get("status") in ("failed", "incomplete")
        self._result(call, text_of(given).strip(), at, place, is_error=failed)

    def _result(self, call: str, text: str, at: int | None, place: str, *, is_error: bool) -> None:
        self._flush()
        self.answered = False
        self.rows.tool(call or place, text, at, place, is_error=is_error)

    def _flush(self, usage: dict[str, Any] | None = None) -> None:
        """Tell the rows the response that is complete now."""
        response, self._response = self._response, None
        if response is None:
            return
        own = {call for call, *_ in response.results}
        self.answered = all(call.id in own for call in response.calls) and bool(response.texts)
        if not (response.texts or response.calls or response.reasoning):
            return
        self.rows.assistant(
            response.key, "\n\n".join(response.texts), response.at, response.place,
            calls=response.calls, reasoning="\n\n".join(response.reasoning) or None,
            finish_reason=response.finish, usage=usage,
        )  # fmt: skip
        for call, text, failed, place in response.results:
            self.rows.tool(call, text, response.at, place, is_error=failed)

    def _is_repeated(self, item: Item, kind: str, place: str) -> bool:
        """Tell whether this item was read before, by its id, and say so."""
        id = str(item.get("id") or "")
        if id in NO_IDS or kind == "item_reference":
            return False
        if (first := self._known.get(id)) is not None:
            self.rows.fault(
                codes.DUPLICATE, place, f"the item {id} is stored a second time, after {first}"
            )
            return True
        self._known[id] = place
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return False


def _arguments(item: Item) -> str:
    """Return what a call was given, as JSON text."""
    given = item.get("arguments")
    if isinstance(given, str):
        return given
    if given is None:
        given = {name: value for name, value in item.items() if name not in _NO_ARGUMENTS}
    return json.dumps(given, ensure_ascii=False)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
