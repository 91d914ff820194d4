"""What all profiles do with rows before a provider's own form: pair, join, fill in, begin and end.

Nothing that a row says is dropped here: texts are joined, never cut. What is added is one of the
constants below, stands in the rendering alone, and is never recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from onrecord.projections.profiles.naming import TOOL_NAME, CallIds, Form, ToolNames
from onrecord.projections.rows import Row
from onrecord.transcript.events import ToolCall

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

_JSON = msgspec.json.Decoder()
_SURROGATES = re.compile("[\ud800-\udfff]")


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call and its answer, id and name in the provider's form, `result` never blank."""

    id: str
    name: str
    arguments: str
    result: str
    is_error: bool = False


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message: a user's text, or an assistant's text (may be empty), calls and their answers."""

    role: str
    text: str
    calls: Sequence[Call] = ()


def summary_of(rows: Sequence[Row]) -> str:
    """Return the text of the summaries, empty where there is none."""
    return _joined([row for row in rows if row.role == "summary"])


def steps_of(
    rows: Sequence[Row], *, ids: Form, names: Form = TOOL_NAME, annotate: bool = False
) -> Iterator[Step]:
    """Pair calls with results and name both in the provider's form; raise ValueError for a role
    that no row has. There is always a step, and none is a summary's.
    """
    calls = [call for row in rows for call in row.tool_calls]
    call_ids = CallIds(ids, {call.id for call in calls})
    tool_names = ToolNames(names, {call.name for call in calls})
    empty = True
    for row, results in _exchanges(rows):
        strays = results
        step: Step | None = None
        if row.role == "user":
            step = Step(role="user", text=_said(row.text) or NO_TEXT)
        elif row.role == "assistant":
            answered: Sequence[Call] = ()
            if row.tool_calls:
                answered, strays = _answered(row, results, call_ids, tool_names)
            text = _said(row.text)
            if text and annotate and row.delivery in NOTES:
                text = f"{text}\n\n{NOTES[row.delivery]}"
            if text or answered:
                step = Step(role="assistant", text=text, calls=answered)
        elif row.role == "tool":  # only where the rows begin with it
            strays = [row, *results]
        elif row.role != "summary":
            raise ValueError(f"no row has the role {row.role!r}: user, assistant, tool or summary")
        if step is not None:
            empty = False
            yield step
        if strays:
            # The rules make no such row, but a caller's own may hold one, and no text is dropped.
            empty = False
            yield Step(role="user", text=f"{STRAY_RESULT}\n\n{_joined(strays) or NO_OUTPUT}")
    if empty:
        yield Step(role="user", text=OPENING)


def alternate(steps: Iterator[Step]) -> Iterator[Step]:
    """Make user and assistant take turns, with the user first and the user or a tool last.

    Adjacent texts of a role are joined with a blank line. Between results and a user's text stands
    a short assistant text. Providers refuse a request that ends in the assistant's own words, or
    take it for the beginning of the answer: a user text follows them.
    """
    last = next(steps)
    if last.role == "assistant":
        yield Step(role="user", text=OPENING)
    for step in steps:
        if step.role == last.role and not last.calls:
            text = "\n\n".join(filter(None, (last.text, step.text)))
            last = Step(role=step.role, text=text, calls=step.calls)
            continue
        yield last
        if last.calls and step.role == "user":
            yield Step(role="assistant", text=ACKNOWLEDGED)
        last = step
    yield last
    if last.role == "assistant" and not last.calls:
        yield Step(role="user", text=CONTINUE)


def clean(text: str) -> str:
    """Replace what UTF-8 cannot carry (lone surrogates) one for one by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    return text


def arguments_object(arguments: str) -> dict[str, Any]:
    """Return the arguments as a JSON object; what isn't one is kept as text under one key."""
    value = _parsed(arguments)
    if value is not None:
        return value
    return {RAW_ARGUMENTS: clean(arguments)} if arguments.strip() else {}


def arguments_text(arguments: str) -> str:
    """Return the arguments as the JSON text of an object: as they came where they are one."""
    if _parsed(arguments):
        return arguments
    return msgspec.json.encode(arguments_object(arguments)).decode()


def _exchanges(rows: Sequence[Row]) -> Iterator[tuple[Row, list[Row]]]:
    """Yield each row with the tool rows that follow it at once; a tool row only as the first."""
    first: Row | None = None
    results: list[Row] = []
    for row in rows:
        if first is not None:
            if row.role == "tool":
                results.append(row)
                continue
            yield first, results
            results = []
        first = row
    if first is not None:
        yield first, results


def _answered(
    row: Row, results: list[Row], ids: CallIds, names: ToolNames
) -> tuple[list[Call], list[Row]]:
    """Return a row's calls with their results, and the results that no call of it stands for."""
    answers, strays = _paired(row.tool_calls, results)
    calls: list[Call] = []
    for place, call in enumerate(row.tool_calls):
        answer = answers[place]
        answered = Call(
            id=ids.take(row.turn, call.id),
            name=names.take(call.name),
            arguments=call.arguments,
            result=_said(answer.text) or NO_OUTPUT,
            is_error=answer.is_error,
        )
        calls.append(answered)
    return calls, strays


def _paired(calls: Sequence[ToolCall], results: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return one result for each call, and the results of none."""
    if len(calls) == len(results):
        for place, call in enumerate(calls):
            if results[place].tool_call != call.id:
                break
        else:
            return results, []
    found: list[list[Row]] = [[] for _ in calls]
    strays: list[Row] = []
    for result in results:
        places = [i for i, call in enumerate(calls) if call.id == result.tool_call]
        if places:
            # A second result of one call joins the first; calls of one id take theirs in order.
            found[next((i for i in places if not found[i]), places[-1])].append(result)
        else:
            strays.append(result)
    return [_one(several) for several in found], strays


def _one(results: list[Row]) -> Row:
    text = (_joined(results) or NO_OUTPUT) if results else PENDING
    return Row(role="tool", text=text, is_error=any(result.is_error for result in results))


def _joined(rows: Sequence[Row]) -> str:
    return "\n\n".join(filter(None, [_said(row.text) for row in rows]))


def _said(text: str) -> str:
    """Return the text as UTF-8 can carry it; blank text is none."""
    return "" if text.isspace() else clean(text)


def _parsed(arguments: str) -> dict[str, Any] | None:
    try:
        value = _JSON.decode(arguments)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    # Nothing is deeper than there are brackets that open, and few texts have so many.
    brackets = arguments.count("{") + arguments.count("[")
    if brackets >= MAX_ARGUMENTS_DEPTH and _deeper_than(value, MAX_ARGUMENTS_DEPTH):
        return None
    return value


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
