"""Erasure: every text of its target goes from the fold, the structure stays.

Physical erasure is the log's; this is what the transcript shows once it is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from onrecord.projections.lines import Facts, Line, akin
from onrecord.projections.outgoing import Outgoing
from onrecord.transcript.events import AssistantMessageProduced, ToolCall, ToolResultReceived

ERASED = "[erased]"


def erase_turn(facts: Facts) -> None:
    """Erase all texts of a turn but its tools' results."""
    for said in facts.users.values():
        said.text = ERASED
    for message, (version, event) in facts.produced.items():
        facts.produced[message] = (version, _blank(event))
    _erase_deliveries(facts.deliveries.values())
    facts.recovered = [(v, replace(e, text=_put(e.text), prompt=None)) for v, e in facts.recovered]
    if facts.final is not None:
        version, final = facts.final
        facts.final = (version, replace(final, text=_put(final.text)))


def erase_results(
    results: dict[str, dict[str, list[tuple[int, ToolResultReceived]]]], turns: set[str]
) -> None:
    """Erase the tools' results of some turns. `results`: by call and turn."""
    for known in results.values():
        for turn in known.keys() & turns:
            known[turn] = [(v, replace(e, text=_put(e.text) or "")) for v, e in known[turn]]


def erase_message(facts: Facts, message: str, lines: list[Line]) -> None:
    """Erase one message: its texts, the deliveries of it, and where its words were said again."""
    if message in facts.users:
        facts.users[message].text = ERASED
    own = [line for line in lines if line.message == message]
    texts = [text for line in own for text in (line.text, line.produced_text) if text.strip()]
    if message in facts.produced:
        version, event = facts.produced[message]
        facts.produced[message] = (version, _blank(event))
    _erase_deliveries(delivery for line in own for delivery in line.deliveries)
    facts.recovered = [
        (v, replace(e, text=ERASED) if any(akin(e.text or "", t) for t in texts) else e)
        for v, e in facts.recovered
    ]
    if facts.final is not None and any(akin(facts.final[1].text or "", t) for t in texts):
        version, final = facts.final
        facts.final = (version, replace(final, text=ERASED))


def _put(text: str | None) -> str | None:
    return ERASED if text and text.strip() else text


def _blank(event: AssistantMessageProduced) -> AssistantMessageProduced:
    calls = [ToolCall(call.id, call.name) for call in event.tool_calls]
    return replace(event, text=_put(event.text) or "", tool_calls=calls, reasoning=None)


def _erase_deliveries(deliveries: Iterable[Outgoing]) -> None:
    for delivery in {delivery.id: delivery for delivery in deliveries}.values():
        delivery.erase(ERASED)
