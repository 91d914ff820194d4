"""The providers' published rules, as a check that shares nothing with what renders.

Each profile's module names its sources. The check wants what the strictest published rule wants, so
a request that passes here passes wherever the provider is laxer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


@dataclass
class _Message:
    """One message in a form common to all: results of one answer are one message."""

    role: str
    texts: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    results_first: bool = True


@dataclass(frozen=True)
class _Rules:
    """What a provider asks for. `call_id`, `name`: patterns of the whole. `turns`: user and
    assistant alternate, the user begins, the user or a tool ends. `exclusive`: text or calls.
    `results_alone`: nothing beside results. `results_are_users`: results are the user's message.
    """

    call_id: str
    name: str = "[a-zA-Z0-9_-]{1,64}"
    turns: bool = True
    exclusive: bool = False
    results_alone: bool = True
    results_are_users: bool = True
    text_arguments: bool = False


_RULES: Mapping[str, _Rules] = {
    "openai": _Rules(
        "[a-zA-Z0-9_-]{1,40}", turns=False, results_are_users=False, text_arguments=True
    ),
    "responses": _Rules(
        "[a-zA-Z0-9_-]{1,64}", turns=False, results_are_users=False, text_arguments=True
    ),
    "anthropic": _Rules("[a-zA-Z0-9_-]{1,64}", results_alone=False),
    "gemini": _Rules("[a-zA-Z0-9_-]{1,64}", name="[a-zA-Z_][a-zA-Z0-9_-]{0,63}"),
    "mistral": _Rules(
        "[a-zA-Z0-9]{9}", exclusive=True, results_are_users=False, text_arguments=True
    ),
    "converse": _Rules("[a-zA-Z0-9_-]{1,64}"),
}


def violations(profile: str, rendered: Mapping[str, Any]) -> list[str]:
    """Return what the rendering does against the provider's rules, each with its place; none if it
    keeps them. Raises KeyError if the rendering isn't of that profile at all.
    """
    rules = _RULES[profile]
    messages = _READERS[profile](rendered)
    found = [*_of_summary(rendered), *_of_calls(messages, rules), *_of_texts(messages, rules)]
    if rules.turns:
        found += _of_turns(messages, rules)
    try:
        json.dumps(rendered, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        found.append(f"not JSON in UTF-8: {error}")
    return found


def _of_summary(rendered: Mapping[str, Any]) -> Iterator[str]:
    summary = rendered.get("system", rendered.get("system_instruction"))
    if summary is None:
        return
    if isinstance(summary, str):
        texts = [summary]
    else:
        blocks = summary["parts"] if isinstance(summary, Mapping) else summary
        texts = [block["text"] for block in blocks]
    if not texts or any(not text.strip() for text in texts):
        yield "the system text is blank"


def _of_calls(messages: Sequence[_Message], rules: _Rules) -> Iterator[str]:
    seen: set[str] = set()
    for place, message in enumerate(messages):
        for call_id, name, arguments in message.calls:
            if not re.fullmatch(rules.call_id, call_id):
                yield f"{place}: the id {call_id!r} has not the form {rules.call_id}"
            if call_id in seen:
                yield f"{place}: the id {call_id!r} is used twice"
            seen.add(call_id)
            if not re.fullmatch(rules.name, name):
                yield f"{place}: the name {name!r} has not the form {rules.name}"
            if not _is_object(arguments, as_text=rules.text_arguments):
                yield f"{place}: the arguments are no object: {arguments!r:.80}"
        answers = messages[place + 1].results if place + 1 < len(messages) else []
        asked = [call_id for call_id, _, _ in message.calls]
        if message.calls and answers != asked:
            yield f"{place}: the calls {asked} are followed by the results {answers}"
        if message.results and not (place and messages[place - 1].calls):
            yield f"{place}: results without a call before them"


def _is_object(arguments: Any, *, as_text: bool) -> bool:
    if as_text:
        try:
            arguments = json.loads(arguments)
        except (ValueError, TypeError, RecursionError):
            return False
    return isinstance(arguments, dict)


def _of_texts(messages: Sequence[_Message], rules: _Rules) -> Iterator[str]:
    if not any(message.role != "system" for message in messages):
        yield "no message"
    for place, message in enumerate(messages):
        if not (message.texts or message.calls or message.results):
            yield f"{place}: an empty message"
        if any(not text.strip() for text in message.texts):
            yield f"{place}: a blank text"
        if message.role == "system" and place:
            yield f"{place}: a system message that isn't the first"
        if message.role not in {"system", "user", "assistant", "tool"}:
            yield f"{place}: the role {message.role!r}"
        if message.calls and message.role != "assistant":
            yield f"{place}: calls by {message.role}"
        if rules.exclusive and message.calls and message.texts:
            yield f"{place}: text and calls in one message"
        # Each result is a text too.
        if message.results and rules.results_alone and len(message.texts) != len(message.results):
            yield f"{place}: something beside results, or a result without text"
        if not message.results_first:
            yield f"{place}: something before the results"


def _of_turns(messages: Sequence[_Message], rules: _Rules) -> Iterator[str]:
    spoken = [message for message in messages if message.role != "system"]
    if spoken and spoken[0].role != "user":
        yield "the first message is not the user's"
    if spoken and spoken[-1].role not in {"user", "tool"}:
        yield "the last message is the assistant's"
    if rules.results_are_users:
        roles = ["user" if message.role == "tool" else message.role for message in spoken]
    else:
        # Calls and their results stand between the turns and count for none.
        roles = [m.role for m in spoken if m.role != "tool" and not m.calls]
        for before, after in pairwise(spoken):
            if before.role == "tool" and after.role == "user":
                yield "a user message follows a tool message"
    for place, (role, following) in enumerate(pairwise(roles)):
        if role == following:
            yield f"{place}: two turns of {role}"


def _chat(rendered: Mapping[str, Any]) -> list[_Message]:
    messages: list[_Message] = []
    for raw in rendered["messages"]:
        message = _Message(raw["role"])
        if raw["role"] == "tool" and messages and messages[-1].role == "tool":
            message = messages[-1]
        else:
            messages.append(message)
        message.texts += [raw["content"]] if "content" in raw else []
        message.results += [raw["tool_call_id"]] if raw["role"] == "tool" else []
        message.calls += [
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in raw.get("tool_calls", ())
        ]
    return messages


def _responses(rendered: Mapping[str, Any]) -> list[_Message]:
    messages: list[_Message] = []
    for item in rendered["input"]:
        kind = item["type"]
        role = {"function_call": "assistant", "function_call_output": "tool"}.get(kind, "")
        last = messages[-1] if messages else _Message("")
        together = last.results if role == "tool" else last.calls if role == "assistant" else None
        if not together:
            last = _Message(role or item["role"])
            messages.append(last)
        if kind == "message":
            last.texts.append(item["content"])
        elif kind == "function_call":
            last.calls.append((item["call_id"], item["name"], item["arguments"]))
        else:
            last.results.append(item["call_id"])
            last.texts.append(item["output"])
    return messages


def _blocks(rendered: Mapping[str, Any]) -> list[_Message]:
    messages: list[_Message] = []
    for raw in rendered["messages"]:
        message = _Message(raw["role"])
        for block in raw["content"]:
            use = block.get("toolUse") or (block if block.get("type") == "tool_use" else None)
            if use:
                call_id = use.get("toolUseId", use.get("id"))
                message.calls.append((call_id, use["name"], use["input"]))
            elif block.get("type") == "tool_result":
                message.results_first &= len(message.texts) == len(message.results)
                message.results.append(block["tool_use_id"])
                message.texts.append(block["content"])
            elif "toolResult" in block:
                message.results.append(block["toolResult"]["toolUseId"])
                message.texts += [inner["text"] for inner in block["toolResult"]["content"]]
            else:
                message.texts.append(block["text"])
        message.role = "tool" if message.results and message.role == "user" else message.role
        messages.append(message)
    return messages


def _gemini(rendered: Mapping[str, Any]) -> list[_Message]:
    messages: list[_Message] = []
    for content in rendered["contents"]:
        message = _Message("assistant" if content["role"] == "model" else content["role"])
        for part in content["parts"]:
            if "functionCall" in part:
                call = part["functionCall"]
                message.calls.append((call["id"], call["name"], call["args"]))
            elif "functionResponse" in part:
                message.results.append(part["functionResponse"]["id"])
                message.texts += part["functionResponse"]["response"].values()
            else:
                message.texts.append(part["text"])
        message.role = "tool" if message.results and message.role == "user" else message.role
        messages.append(message)
    return messages


_READERS: Mapping[str, Callable[[Mapping[str, Any]], list[_Message]]] = {
    "openai": _chat,
    "mistral": _chat,
    "responses": _responses,
    "anthropic": _blocks,
    "converse": _blocks,
    "gemini": _gemini,
}
