"""The rows of one turn: its lines, the user's messages, the tools' results, in order and closed."""

from __future__ import annotations

from operator import itemgetter

import msgspec

from onrecord.projections.calls import Calls
from onrecord.projections.lines import Facts, Line, Place, Said, lines_of
from onrecord.projections.rows import Row

RETRACTED = "[message withdrawn by the user]"
NO_RESULT = "[no result: the turn ended before the tool answered]"
NO_TEXT = "[no answer: the turn ended without text]"
CLOSERS = {
    "interrupted": "[no answer: the turn was interrupted]",
    "failed": "[no answer: the turn failed]",
    "abandoned": "[no answer: the turn was abandoned]",
}


class TurnView(msgspec.Struct):
    """A turn's rows, and its assistant lines for whoever looks for findings."""

    facts: Facts
    place: Place
    lines: list[Line]
    rows: list[Row]


def view(facts: Facts, place: Place, calls: Calls) -> TurnView:
    """Build a turn's rows. `calls`: those of the session, with their results."""
    lines = lines_of(facts, place)
    for line in lines:
        if line.calls and line.produced is not None:
            line.results = calls.found(line.produced, facts.name)
    return TurnView(facts, place, lines, _rows(lines, facts))


def _rows(lines: list[Line], facts: Facts) -> list[Row]:
    """Lay out user, assistant and tool rows in order, and close a closed turn [2, 7, 8]."""
    items: list[tuple[int, int, list[Row]]] = []
    at = 0
    for n, line in enumerate(lines):
        if not line.also:  # what else was seen stands after its row, whenever it was sent
            at = line.anchor
        items.append((at, n, [_assistant(line, facts), *_tools(line, facts)]))
    items += [(said.versions[0], -1, [_user(said, facts)]) for said in facts.users.values()]
    items.sort(key=itemgetter(0, 1))
    rows = [row for _, _, group in items for row in group]
    if facts.closed and rows and not (rows[-1].role == "assistant" and rows[-1].text.strip()):
        rows.append(_closer(facts))
    return rows


def _assistant(line: Line, facts: Facts) -> Row:
    produced = line.produced_text
    return Row(
        role="assistant",
        id=f"{'x' if line.also else 'a'}{line.anchor}",
        text=line.text,
        origin=line.origin,
        delivery=line.status,
        tool_calls=line.calls,
        turn=facts.name,
        message=line.message,
        versions=tuple(sorted(line.versions)),
        produced=produced if produced and produced != line.text else None,
        reasoning=line.produced.reasoning if line.produced else None,
    )


def _tools(line: Line, facts: Facts) -> list[Row]:
    rows: list[Row] = []
    for call in line.calls:
        ident = f"t{line.anchor}.{call.id}"
        if (result := line.results.get(call.id)) is not None:
            version, event = result
            rows.append(
                Row(role="tool", id=ident, text=event.text, tool_call=call.id, turn=facts.name,
                    versions=(version,), is_error=event.is_error)
            )  # fmt: skip
        elif facts.closed:
            rows.append(
                Row(role="tool", id=ident, text=NO_RESULT, origin="synthetic", tool_call=call.id,
                    turn=facts.name, versions=tuple(v for v in (facts.closed_at,) if v))
            )  # fmt: skip
    return rows


def _user(said: Said, facts: Facts) -> Row:
    return Row(
        role="user",
        id=f"u{said.versions[0]}",
        text=RETRACTED if said.retracted else said.text,
        origin="synthetic" if said.retracted else "",
        turn=facts.name,
        message=said.message,
        versions=tuple(sorted(said.versions)),
    )


def _closer(facts: Facts) -> Row:
    outcome = facts.final[1].outcome if facts.final else ""
    return Row(
        role="assistant",
        id=f"c{facts.closed_at}",
        text=CLOSERS.get(outcome, NO_TEXT),
        origin="synthetic",
        turn=facts.name,
        versions=tuple(v for v in (facts.closed_at,) if v),
    )
