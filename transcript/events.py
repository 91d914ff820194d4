"""The vocabulary: what a writer can say happened in a session, version 1.

Every event is an immutable struct. What the writer says is here; what the log adds (version,
position, time) is in `onrecord.transcript.recorded`. All ids are strings that are unique in their
session; offsets and lengths count Unicode code points of the content, before markup and splitting;
times are timezone-aware.

Each type states three things beside its fields:

- its natural key (`natural_key`): the fields from which its id is derived, so that saying the same
  thing twice is one record; a type without one gets a random id when the event is made;
- the fields that are compared (`compared`) when the same id comes again; None means all of them;
- whether it is an intent (`intent`): something that is about to happen and can still be refused.
  Everything else is a fact that did happen, and a fact is never refused for contradicting another.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias, get_args
from uuid import UUID, uuid4

import msgspec
from msgspec.structs import force_setattr

VOCABULARY_VERSION = 1

ErasureTarget: TypeAlias = dict[Literal["session", "turn", "message"], str | bool]


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A call that the model asked for. `id` is unique in its turn, `arguments` is JSON text."""

    id: str
    name: str
    arguments: str = "{}"


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an incoming message comes from; equal sources are the same message, in any session."""

    platform: str
    message: str
    account: str = ""
    chat: str = ""


class Target(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an outgoing text goes."""

    platform: str
    chat: str
    account: str = ""
    thread: str | None = None


class Event(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type",
    gc=False,  # an event refers to nothing that refers to it
    forbid_unknown_fields=True,  # the codec reads such a payload another way, and keeps them
):  # fmt: skip
    """What all events have.

    `id`: the event's own, unique in the whole log; derived from the natural key where there is one.
    `at`: when it happened, by the writer's clock; never used for order.
    `writer`: who says so (`gateway`, `agent`, `import:jsonl` …).
    `conflicts_with`: set by the log on a fact whose id was taken by a record of other content.
    `replaced`: field path → the original UTF-8 bytes (surrogates passed through), set by the log on
    text that held lone surrogates and was stored with U+FFFD in their place.
    `truncated`: field path → length (code points) and digest (SHA-256, hex) of an incoming text that
    was too large and of which only the beginning is kept.
    `imported_at`: when an import wrote the event; its recorded time is the original one.
    `imported_from`: where in the source it stood (`messages 123`, `rollout.jsonl:45`).
    `extra`: fields that this version doesn't know, kept as they came.
    """

    natural_key: ClassVar[tuple[str, ...] | None] = None
    compared: ClassVar[tuple[str, ...] | None] = None
    intent: ClassVar[bool] = False
    outgoing: ClassVar[tuple[str, ...]] = ()

    id: UUID | None = None
    at: datetime | None = None
    writer: str = ""
    conflicts_with: UUID | None = None
    replaced: dict[str, bytes] = {}
    truncated: dict[str, dict[str, Any]] = {}
    imported_at: datetime | None = None
    imported_from: str = ""
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if self.id is None and self.natural_key is None:
            force_setattr(self, "id", uuid4())

    @property
    def type(self) -> str:
        """The stable name of the event type, as stored."""
        return type(self).__name__


class SessionStarted(Event, frozen=True, tag=True):
    """A conversation begins (optional: a session also begins with its first event). By the gateway.

    A title that is given later isn't compared: the first counts.
    """

    natural_key = ()
    compared = ("platform", "chat", "user", "parent")

    platform: str = ""
    chat: str = ""
    user: str = ""
    title: str | None = None
    parent: str | None = None


class SessionEnded(Event, frozen=True, tag=True):
    """The conversation is over. By the gateway."""

    reason: str = ""


class UserMessageReceived(Event, frozen=True, tag=True):
    """A user's message, recorded on receipt, before anything runs. By the gateway.

    Without `turn` it is a turn of its own, named by `message`. Key: `source` where it is known (so
    that a redelivery is known in every session), else `message`.
    """

    natural_key = ("message",)
    compared = ("text", "parts")

    message: str
    text: str
    turn: str | None = None
    parts: list[Any] = []
    sender: str | None = None
    reply_to: str | None = None
    source: Source | None = None


class UserMessageEdited(Event, frozen=True, tag=True):
    """The user changed a message; `text` is its newest wording. By the gateway."""

    message: str
    text: str


class UserMessageRetracted(Event, frozen=True, tag=True):
    """The user took a message back. Final. By the gateway."""

    message: str


class ModelCalled(Event, frozen=True, tag=True):
    """A model is about to be asked. By the agent. Key: `call`.

    `version`: the session's version that the rendered transcript goes up to; `digest`: SHA-256 (hex)
    of the rendered messages; `profile`: the one that rendered them, if one of ours did.
    """

    natural_key = ("call",)
    intent = True

    turn: str
    call: str
    model: str = ""
    version: int = 0
    digest: str = ""
    profile: str = ""


class AssistantMessageProduced(Event, frozen=True, tag=True):
    """One complete response of the model. By the agent. Key: `message`.

    Durable before a tool runs and before a whole answer is sent; a retried response is a new message.
    """

    natural_key = ("message",)
    compared = ("turn", "text", "tool_calls")

    turn: str
    message: str
    text: str = ""
    tool_calls: list[ToolCall] = []
    finish_reason: str | None = None
    reasoning: str | None = None
    usage: dict[str, Any] | None = None


class ToolResultReceived(Event, frozen=True, tag=True):
    """A tool answered. By the agent. Key: the turn and `tool_call`."""

    natural_key = ("turn", "tool_call")
    compared = ("text", "is_error")

    turn: str
    tool_call: str
    text: str = ""
    is_error: bool = False


class StreamBroken(Event, frozen=True, tag=True):
    """The model's stream died before its end. By the agent."""

    turn: str
    message: str | None = None
    reason: str = ""


class RecoveryApplied(Event, frozen=True, tag=True):
    """What was done about a broken or empty answer. By the agent.

    `kind`: `partial_stream`, `prior_turn_content`, `retry`, `continue`, `restart` …; `text`: what the
    recovery took for the answer; `prompt`: what nudged the model, which is never a row.
    """

    turn: str
    kind: str
    text: str | None = None
    prompt: str | None = None


class TurnFinalized(Event, frozen=True, tag=True):
    """The turn is over. By the agent, or by recovery. Key: the turn.

    `outcome`: `completed`, `interrupted`, `failed` or `abandoned`; `text`: the agent's final answer.
    """

    natural_key = ("turn",)
    compared = ("outcome", "text")

    turn: str
    outcome: str = "completed"
    text: str | None = None


class DeliveryAttempted(Event, frozen=True, tag=True):
    """A text is about to go out: written and durable before it does. By the gateway.

    `kind`: `answer` (the assistant's words) or `notice` (whatever is shown that isn't the reply). All
    parts of one answer are one delivery at growing `offset`s (code points); within one `attempt` they
    follow on without gap or overlap. What starts over is the next `attempt`, at the offset where it
    does. `op`: `send`, `edit` or `draft`; `format`: the markup on the wire; `wire`: SHA-256 (hex) of
    the bytes that are sent. Key: `delivery`, `attempt` and `offset`.
    """

    natural_key = ("delivery", "attempt", "offset")
    compared = ("turn", "message", "text", "kind")
    intent = True
    outgoing = ("text",)

    delivery: str
    text: str
    offset: int = 0
    turn: str | None = None
    message: str | None = None
    kind: str = "answer"
    attempt: int = 1
    target: Target | None = None
    op: str | None = None
    format: str | None = None
    wire: str | None = None


class StreamChunkDelivered(Event, frozen=True, tag=True):
    """The platform took everything of `attempt` up to offset `through`. By the gateway.

    `attempt`: absent, the latest attempted. Key: `delivery`, the attempt that is meant, and `through`.
    """

    natural_key = ("delivery", "attempt", "through")
    compared = ()

    delivery: str
    through: int
    attempt: int | None = None
    platform_message: str | None = None


class DeliveryConfirmed(Event, frozen=True, tag=True):
    """All text of `attempt` so far was taken, and the delivery is complete. By the gateway.

    `attempt`: the latest where absent. `evidence`: how it is known (`answer`, `lookup`, `receipt`, `source`).
    """

    delivery: str
    platform_messages: list[str] = []
    evidence: str | None = None
    attempt: int | None = None


class DeliveryFailed(Event, frozen=True, tag=True):
    """A send didn't succeed. By the gateway.

    `definite`: nothing of `attempt` from `offset` on was taken; otherwise it may have been.
    `not_before`: when the platform allows the next try.
    """

    delivery: str
    offset: int = 0
    reason: str = ""
    definite: bool = True
    not_before: datetime | None = None
    evidence: str | None = None
    attempt: int | None = None


class DeliveryRevised(Event, frozen=True, tag=True):
    """The platform's message now reads `text`, as a whole; empty means deleted. By the gateway."""

    delivery: str
    text: str
    attempt: int | None = None


class TranscriptCompacted(Event, frozen=True, tag=True):
    """The turns up to `through_turn` are summarised for the model. By the agent."""

    intent = True

    through_turn: str
    summary: str


class TranscriptRewound(Event, frozen=True, tag=True):
    """Undo: `to_turn` and what came after it leave the model's view. By the gateway."""

    intent = True

    to_turn: str


class ContentErased(Event, frozen=True, tag=True):
    """Every text of `target` goes, the structure stays. By an operator.

    `target`: {"session": true}, {"turn": id} or {"message": id}.
    """

    intent = True

    target: ErasureTarget
    reason: str = ""


class SourceFaultFound(Event, frozen=True, tag=True):
    """What an import found wrong with its source; makes no row. By the import.

    `code`: that of the finding which an audit makes of it; `detail`: one sentence; `place`: what the
    place is known by when the source is read again, where `imported_from` may change. Key: code and place.
    """

    natural_key = ("code", "place")
    compared = ()

    code: str
    place: str
    detail: str = ""
    turn: str | None = None


class UnknownEvent(Event, frozen=True, tag=True):
    """An event of a type that this version doesn't know. Kept whole; makes no row."""

    name: str
    fields: dict[str, Any] = {}

    @property
    def type(self) -> str:
        return self.name


AnyEvent: TypeAlias = (
    SessionStarted
    | SessionEnded
    | UserMessageReceived
    | UserMessageEdited
    | UserMessageRetracted
    | ModelCalled
    | AssistantMessageProduced
    | ToolResultReceived
    | StreamBroken
    | RecoveryApplied
    | TurnFinalized
    | DeliveryAttempted
    | StreamChunkDelivered
    | DeliveryConfirmed
    | DeliveryFailed
    | DeliveryRevised
    | TranscriptCompacted
    | TranscriptRewound
    | ContentErased
    | SourceFaultFound
)
"""Every event of the vocabulary."""

KNOWN: Mapping[str, type[Event]] = {cls.__name__: cls for cls in get_args(AnyEvent)}
"""Stable type name → event type."""
