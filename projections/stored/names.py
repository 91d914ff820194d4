"""By what an event is linked to earlier ones: the names that it says.

A fold may begin at a turn if no later event says a name that was said before it. A name is a letter
for its kind and the name itself: `n` turns and messages, `d` deliveries, `c` calls, `s` results whose
call wasn't in their turn.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

from onrecord.projections.conversation import Conversation
from onrecord.transcript.events import (
    AssistantMessageProduced,
    ContentErased,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    DeliveryRevised,
    Event,
    ModelCalled,
    RecoveryApplied,
    SourceFaultFound,
    StreamBroken,
    StreamChunkDelivered,
    ToolResultReceived,
    TranscriptCompacted,
    TranscriptRewound,
    TurnFinalized,
    UserMessageEdited,
    UserMessageReceived,
    UserMessageRetracted,
)

Names = tuple[str, ...]


class Said(NamedTuple):
    """The names of an event. `shared`: sought, and known from then on; `sought`: sought alone;
    `given`: known from then on, whoever said them before.
    """

    shared: Names
    sought: Names = ()
    given: Names = ()


NOTHING = Said(())


def digest(name: str) -> int:
    """Return 64 bits for a name. Two names of one digest cost a longer fold, never a wrong one."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def names_of(event: Event, conversation: Conversation) -> Said:
    """Return what the event says, where the conversation stands just before it."""
    say = _NAMES.get(type(event))
    if say is None:
        return NOTHING
    said: Said = say(event, conversation)
    # What contradicts a record is kept beside it and makes nothing: no call either.
    return said if event.conflicts_with is None else Said(said.shared)


def sought_by(event: Event) -> Names:
    """Return all names that may be sought for the event, wherever the conversation stands."""
    said = names_of(event, _NOWHERE)
    return said.shared + said.sought


_NOWHERE = Conversation()


def _received(event: UserMessageReceived, _: object) -> Said:
    message = "n" + event.message
    return Said((message,) if event.turn is None else ("n" + event.turn, message))


def _message(event: UserMessageEdited | UserMessageRetracted, _: object) -> Said:
    return Said(("n" + event.message,))


def _produced(event: AssistantMessageProduced, conversation: Conversation) -> Said:
    shared = ("n" + event.turn, "n" + event.message)
    if not event.tool_calls or conversation.has_produced(event.message):
        return Said(shared)
    calls = [call.id for call in event.tool_calls]
    return Said(shared, tuple("s" + call for call in calls), tuple("c" + call for call in calls))


def _result(event: ToolResultReceived, conversation: Conversation) -> Said:
    turn = ("n" + event.turn,)
    if conversation.is_call_of(event.tool_call, event.turn):
        return Said(turn)
    return Said((*turn, "s" + event.tool_call), ("c" + event.tool_call,))


def _turn(event: Any, _: object) -> Said:
    return Said(("n" + event.turn,))


def _fault(event: SourceFaultFound, _: object) -> Said:
    return NOTHING if event.turn is None else Said(("n" + event.turn,))


def _attempted(event: DeliveryAttempted, _: object) -> Said:
    names = ("d" + event.delivery, "n" + (event.turn or f"delivery:{event.delivery}"))
    return Said(names if event.message is None else (*names, "n" + event.message))


def _outcome(event: Any, conversation: Conversation) -> Said:
    if event.delivery in conversation.deliveries:
        return Said(("d" + event.delivery,))
    return Said(("d" + event.delivery, f"ndelivery:{event.delivery}"))


def _compacted(event: TranscriptCompacted, _: object) -> Said:
    return Said(("n" + event.through_turn,))


def _rewound(event: TranscriptRewound, _: object) -> Said:
    return Said(("n" + event.to_turn,))


def _erased(event: ContentErased, _: object) -> Said:
    target = event.target
    return Said(tuple(f"n{target[kind]}" for kind in ("turn", "message") if target.get(kind)))


_NAMES: dict[type[Event], Callable[[Any, Any], Said]] = {
    UserMessageReceived: _received,
    UserMessageEdited: _message,
    UserMessageRetracted: _message,
    ModelCalled: _turn,
    AssistantMessageProduced: _produced,
    ToolResultReceived: _result,
    StreamBroken: _turn,
    RecoveryApplied: _turn,
    TurnFinalized: _turn,
    DeliveryAttempted: _attempted,
    DeliveryConfirmed: _outcome,
    DeliveryFailed: _outcome,
    DeliveryRevised: _outcome,
    StreamChunkDelivered: _outcome,
    TranscriptCompacted: _compacted,
    TranscriptRewound: _rewound,
    ContentErased: _erased,
    SourceFaultFound: _fault,
}
