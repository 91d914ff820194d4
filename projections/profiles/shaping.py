"""What all profiles do with rows before a provider's own form: pair, join, fill in, begin and end.

Nothing that a row says is dropped here: texts are joined, never cut. What is added is one of the
constants below, stands in the rendering alone, and is never recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from onrecord.projections.profiles.naming import TOOL_NAME, CallIds, Form, ToolNames
from onrecord.projections.rows import Row

# The user text where a conversation has none yet, or begins with the assistant.
OPENING = "(The conversation begins here.)"
# The user text after which the assistant goes on where it had the last word.
CONTINUE = "Continue."
# The assistant text between tool results and the user's next message.
ACKNOWLEDGED = "OK."
# In place of a result that isn't there yet.
PENDING = "(No result yet.)"
# In place of the text of a user row, or of a result, that has none.
NO_TEXT = "(no text)"
NO_OUTPUT = "(no output)"
# Before a result that no call stands for.
STRAY_RESULT = "(A tool result whose call is not in this conversation:)"

# Said about a row's delivery, only where it is asked for.
NOTES = {
    "undelivered": "[Not delivered: the user has not seen this.]",
    "partial": "[Delivered in part: the user has seen no more than this.]",
    "in_doubt": "[Delivery in doubt: the user may not have seen this.]",
}

# The key under which arguments that are no JSON object are passed on, as text.
RAW_ARGUMENTS = "arguments"
# Protocol buffers, in which some providers read arguments, refuse more than 100 levels.
MAX_ARGUMENTS_DEPTH = 64


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call and its answer, id and name in the provider's form, `result` never blank."""

    id: str
    name: str
    arguments: str
    result: str
    is_error: bool = False


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One message: a user's text, or an assistant's text (may be empty), calls and their answers."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()


class Shaped(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation before it has a provider's form. `summary` is empty where there is none."""

    summary: str
    steps: tuple[Step, ...]


class _Exchange(msgspec.Struct):
    """An assistant row, or none, and the tool rows that follow it at once."""

    row: Row | None
    results: list[Row]


def shape(
    rows: Sequence[Row], *, ids: Form, names: Form = TOOL_NAME, annotate: bool = False
) -> Shaped:
    """Pair calls with results and name both in the provider's form; raise ValueError for a role
    that no row has. There is always a step.
    """
    calls = [call for row in rows for call in row.tool_calls]
    call_ids = CallIds(ids, (call.id for call in calls))
    tool_names = ToolNames(names, (call.name for call in calls))
    summaries: list[str] = []
    steps: list[Step] = []
    for exchange in _exchanges(rows):
        row = exchange.row
        if row is None:
            steps += _strays(exchange.results)
        elif row.role == "summary":
            summaries.append(clean(row.text))
        elif row.role == "user":
            steps.append(Step(role="user", text=_or(row.text, NO_TEXT)))
        elif row.role == "assistant":
            steps += _answered(exchange, row, call_ids, tool_names, annotate=annotate)
        else:
            raise ValueError(f"no row has the role {row.role!r}: user, assistant, tool or summary")
    return Shaped(
        summary="\n\n".join(filter(str.strip, summaries)),
        steps=tuple(steps) or (Step(role="user", text=OPENING),),
    )


def alternate(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Make user and assistant take turns, with the user first and the user or a tool last.

    Adjacent texts of a role are joined with a blank line. Between results and a user's text stands
    a short assistant text. Providers refuse a request that ends in the assistant's own words, or
    take it for the beginning of the answer: a user text follows them.
    """
    alternating: list[Step] = []
    for step in steps:
        last = alternating[-1] if alternating else None
        if last is None and step.role == "assistant":
            alternating.append(Step(role="user", text=OPENING))
        elif last is not None and last.calls and step.role == "user":
            alternating.append(Step(role="assistant", text=ACKNOWLEDGED))
        elif last is not None and last.role == step.role and not last.calls:
            text = "\n\n".join(filter(None, (last.text, step.text)))
            alternating[-1] = Step(role=step.role, text=text, calls=step.calls)
            continue
        alternating.append(step)
    if alternating[-1].role == "assistant" and not alternating[-1].calls:
        alternating.append(Step(role="user", text=CONTINUE))
    return tuple(alternating)


def clean(text: str) -> str:
    """Replace what UTF-8 cannot carry (lone surrogates) one for one by U+FFFD."""
    if text.isascii():
        return text
    return "".join(
        "\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text
    )


def arguments_object(arguments: str) -> dict[str, Any]:
    """Return the arguments as a JSON object; what isn't one is kept as text under one key."""
    if not arguments.strip():
        return {}
    try:
        value = msgspec.json.decode(arguments)
        msgspec.json.encode(value)  # UTF-8 can carry it
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and not _deeper_than(value, MAX_ARGUMENTS_DEPTH):
        return value
    return {RAW_ARGUMENTS: clean(arguments)}


def arguments_text(arguments: str) -> str:
    """Return the arguments as the JSON text of an object: as they came where they are one."""
    value = arguments_object(arguments)
    if value and value != {RAW_ARGUMENTS: clean(arguments)}:
        return arguments
    return msgspec.json.encode(value).decode()


def _exchanges(rows: Sequence[Row]) -> Iterator[_Exchange]:
    exchange: _Exchange | None = None
    for row in rows:
        if row.role == "tool":
            exchange = exchange or _Exchange(None, [])
            exchange.results.append(row)
            continue
        if exchange is not None:
            yield exchange
        exchange = _Exchange(row, [])
        if row.role != "assistant":
            yield exchange
            exchange = None
    if exchange is not None:
        yield exchange


def _answered(
    exchange: _Exchange, row: Row, ids: CallIds, names: ToolNames, *, annotate: bool
) -> Iterator[Step]:
    results: list[list[Row]] = [[] for _ in row.tool_calls]
    strays: list[Row] = []
    for result in exchange.results:
        places = [i for i, call in enumerate(row.tool_calls) if call.id == result.tool_call]
        if places:
            # A second result of one call joins the first; calls of one id take theirs in order.
            results[next((i for i in places if not results[i]), places[-1])].append(result)
        else:
            strays.append(result)
    calls = tuple(
        Call(
            id=ids.take(row.turn, call.id),
            name=names.take(call.name),
            arguments=call.arguments,
            result=_joined(answers) if answers else PENDING,
            is_error=any(answer.is_error for answer in answers),
        )
        for call, answers in zip(row.tool_calls, results, strict=True)
    )
    text = clean(row.text) if row.text.strip() else ""
    if text and annotate and row.delivery in NOTES:
        text = f"{text}\n\n{NOTES[row.delivery]}"
    if text or calls:
        yield Step(role="assistant", text=text, calls=calls)
    yield from _strays(strays)


def _strays(results: Sequence[Row]) -> Iterator[Step]:
    """Pass on results without a call as a user's text: the rules make no such row, but a caller's
    own rows may hold one, and no text is dropped.
    """
    if results:
        yield Step(role="user", text=f"{STRAY_RESULT}\n\n{_joined(results)}")


def _joined(results: Sequence[Row]) -> str:
    return _or("\n\n".join(result.text for result in results if result.text.strip()), NO_OUTPUT)


def _or(text: str, placeholder: str) -> str:
    return clean(text) if text.strip() else placeholder


def _deeper_than(value: object, depth: int) -> bool:
    level: list[object] = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True
