"""An event in a few words, and in whose lane of a timeline it stands. The words are not escaped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

from onrecord.transcript import events as e
from onrecord.transcript.recorded import Recorded

Lane = Literal["model", "gateway", "transcript"]

QUOTED = 60
"""Characters of a text that a quote shows."""

_MODEL = (
    e.ModelCalled,
    e.AssistantMessageProduced,
    e.ToolResultReceived,
    e.StreamBroken,
    e.RecoveryApplied,
    e.TurnFinalized,
)
_TRANSCRIPT = (e.TranscriptCompacted, e.TranscriptRewound, e.ContentErased, e.SourceFaultFound)


def time_of(recorded: Recorded) -> datetime | None:
    """Return when an event happened, as well as the log knows: when it was recorded.

    Of one that was imported from lines that don't say so, when its writer says. None for what an
    import found wrong with its source: that was then, and it says nothing of when it happened.
    """
    event = recorded.event
    if isinstance(event, e.SourceFaultFound):
        return None
    if event.at is None or event.imported_at is None or recorded.recorded_at < event.imported_at:
        return recorded.recorded_at
    return event.at


def lane_of(event: e.Event) -> Lane:
    """Return who an event is of: the model and its tools, the gateway and its platform, or neither."""
    if isinstance(event, _MODEL):
        return "model"
    return "transcript" if isinstance(event, _TRANSCRIPT) else "gateway"


def quote(text: str, limit: int = QUOTED) -> str:
    """Return a text in quotes and on one line, its middle left out where it is long."""
    words = " ".join(text.split())
    if len(words) > limit:
        end = limit // 3
        words = f"{words[: limit - end - 1].rstrip()}…{words[len(words) - end :].lstrip()}"
    return f"“{words}”"


def sentence(text: str) -> str:
    """Return a text as a sentence: begun with a capital, ended once, also where a quote ends it."""
    text = text.strip()
    ended = text.rstrip("”").endswith((".", "!", "?", "…"))
    return f"{text[:1].upper()}{text[1:]}{'' if ended else '.'}"


def words_of(event: e.Event) -> str:
    """Return what an event says."""
    told = _TOLD.get(type(event))
    said = event.type if told is None else told(event)
    return f"{said} (contradicts an earlier record)" if event.conflicts_with else said


def fault_words(fault: e.SourceFaultFound) -> str:
    """Return what is wrong with a source, and where it stands there."""
    return f"{fault.detail} ({fault.imported_from or fault.place})"


def _user(event: e.UserMessageReceived) -> str:
    parts = f" and {len(event.parts)} more in parts" if event.parts else ""
    return f"user {quote(event.text)}{parts}"


def _called(event: e.ModelCalled) -> str:
    name = f"model {event.model}" if event.model else "model"
    return f"{name} asked with version {event.version}"


def _produced(event: e.AssistantMessageProduced) -> str:
    said = [f"produced {quote(event.text)}"] if event.text.strip() else []
    said += [f"calls {call.name} [{call.id}]" for call in event.tool_calls]
    return ", ".join(said) or "produced nothing"


def _result(event: e.ToolResultReceived) -> str:
    return (
        f"tool {'failed' if event.is_error else 'answered'} [{event.tool_call}] {quote(event.text)}"
    )


def _broken(event: e.StreamBroken) -> str:
    return f"stream broke: {event.reason}" if event.reason else "stream broke"


def _recovered(event: e.RecoveryApplied) -> str:
    prompt = f", prompted {quote(event.prompt)}" if event.prompt else ""
    return f"recovery {event.kind}{_maybe(event.text)}{prompt}"


def _final(event: e.TurnFinalized) -> str:
    return f"turn {event.outcome}{_maybe(event.text)}"


def _maybe(text: str | None) -> str:
    return f" {quote(text)}" if text and text.strip() else ""


def _attempted(event: e.DeliveryAttempted) -> str:
    what = "sends" if event.op in (None, "send") else f"{event.op}s"
    notice = " notice" if event.kind == "notice" else ""
    at = f" from {event.offset}" if event.offset else ""
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    return f"{what}{notice} {quote(event.text)}{at} [{event.delivery}{again}]"


def _taken(event: e.StreamChunkDelivered) -> str:
    ident = f" as {event.platform_message}" if event.platform_message else ""
    return f"platform took up to {event.through}{ident} [{event.delivery}]"


def _confirmed(event: e.DeliveryConfirmed) -> str:
    ids = f" as {', '.join(event.platform_messages)}" if event.platform_messages else ""
    known = f", known by {event.evidence}" if event.evidence else ""
    return f"platform took all{ids}{known} [{event.delivery}]"


def _failed(event: e.DeliveryFailed) -> str:
    what = "platform refused" if event.definite else "no answer, unclear"
    at = f" from {event.offset}" if event.offset else ""
    why = f": {event.reason}" if event.reason else ""
    return f"{what}{at}{why} [{event.delivery}]"


def _revised(event: e.DeliveryRevised) -> str:
    now = f"now reads {quote(event.text)}" if event.text.strip() else "was deleted"
    return f"message {now} [{event.delivery}]"


def _erased(event: e.ContentErased) -> str:
    names = ", ".join("session" if v is True else f"{k} {v}" for k, v in event.target.items())
    return f"erased {names}{': ' + event.reason if event.reason else ''}"


def _fault(event: e.SourceFaultFound) -> str:
    place = "" if event.imported_from else f" at {event.place}"  # else it is told beside it
    return f"{event.code}{place}: {event.detail}"


def _unknown(event: e.UnknownEvent) -> str:
    return event.name if event.fields else f"{event.name} (erased, or unknown here)"


_TOLD: dict[type[e.Event], Callable[[Any], str]] = {
    e.SessionStarted: lambda v: f"session started{' on ' + v.platform if v.platform else ''}",
    e.SessionEnded: lambda v: f"session ended{': ' + v.reason if v.reason else ''}",
    e.UserMessageReceived: _user,
    e.UserMessageEdited: lambda v: f"user edits [{v.message}] {quote(v.text)}",
    e.UserMessageRetracted: lambda v: f"user withdraws [{v.message}]",
    e.ModelCalled: _called,
    e.AssistantMessageProduced: _produced,
    e.ToolResultReceived: _result,
    e.StreamBroken: _broken,
    e.RecoveryApplied: _recovered,
    e.TurnFinalized: _final,
    e.DeliveryAttempted: _attempted,
    e.StreamChunkDelivered: _taken,
    e.DeliveryConfirmed: _confirmed,
    e.DeliveryFailed: _failed,
    e.DeliveryRevised: _revised,
    e.TranscriptCompacted: lambda v: f"compacted through {v.through_turn}: {quote(v.summary)}",
    e.TranscriptRewound: lambda v: f"rewound to {v.to_turn}",
    e.ContentErased: _erased,
    e.SourceFaultFound: _fault,
    e.UnknownEvent: _unknown,
}
