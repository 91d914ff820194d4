"""The messages of OpenClaw: responses of the model, and rows that only say what went out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from onrecord.transcript.events import ToolCall
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.contents import text_of_part
from onrecord.transcript.importers.reading import Tell
from onrecord.transcript.importers.rows import Outcome

Object = dict[str, Any]

NAMES = ("openclaw", "clawdbot", "moltbot")
"""What the program has called itself: the provider of what it writes in the model's name."""
MIRROR, INJECTED = "delivery-mirror", "gateway-injected"
SUPPRESSED = "channel-final-suppressed"

_CALLS = ("toolCall", "toolUse", "tool_use", "functionCall")
_PROGRAMS = ("inter_session", "internal_system")


@dataclass
class Answer:
    """A response of the model."""

    text: str = ""
    reasoning: str | None = None
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    finish: str | None = None
    error: str = ""
    usage: dict[str, Any] | None = None

    @property
    def says(self) -> bool:
        """Tell whether there is anything in it."""
        return bool(self.text or self.calls or self.reasoning)

    @classmethod
    def of(cls, message: Object, place: str, tell: Tell) -> Answer:
        """Read a message of the role `assistant`."""
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[ToolCall] = []
        for block in blocks:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind in ("text", "output_text"):
                texts.append(text_of_part(block))
            elif kind == "thinking":
                thoughts.append(str(block.get("thinking") or ""))
            elif kind in _CALLS:
                calls.append(_call(block))
            elif kind not in ("image", "redacted_thinking"):
                tell(codes.UNKNOWN, place, f"a block of the type {kind!r}; it was not read")
        usage = message.get("usage")
        return cls(
            "\n\n".join(filter(None, texts)),
            "\n\n".join(filter(None, thoughts)) or None,
            calls,
            str(message["stopReason"]) if message.get("stopReason") else None,
            str(message.get("errorMessage") or ""),
            {k: v for k, v in usage.items() if isinstance(v, int)}
            if isinstance(usage, dict)
            else None,
        )


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What a row says of a delivery. `of`: the row that went out; `call`: the tool's that sent it."""

    kind: str
    of: str
    call: str
    outcome: Outcome
    reason: str


def is_shown_only(message: Object) -> bool:
    """Tell whether a message of the role `assistant` is a note of what was shown, and no model's."""
    named = message.get("provider") in NAMES and message.get("model") in (MIRROR, INJECTED)
    marker = message.get("openclawDeliveryMirror")
    return named or (isinstance(marker, dict) and isinstance(marker.get("kind"), str))


def delivered_by(message: Object) -> Mirrored:
    """Return what such a message says."""
    found = message.get("openclawDeliveryMirror")
    marker: Object = found if isinstance(found, dict) else {}
    suppressed = marker.get("kind") == SUPPRESSED
    return Mirrored(
        kind="notice" if message.get("model") == INJECTED else "answer",
        of=str(marker.get("sourceAssistantMessageId") or ""),
        call=str(marker.get("toolCallId") or ""),
        outcome="failed" if suppressed else "delivered",
        reason=str(marker.get("reason") or "suppressed") if suppressed else "",
    )


def is_from_program(message: Object) -> str:
    """Return where a message of the role `user` comes from, empty if it is a user's."""
    provenance = message.get("provenance")
    kind = provenance.get("kind") if isinstance(provenance, dict) else None
    return str(kind) if kind in _PROGRAMS else ""


def _call(block: Object) -> ToolCall:
    given: object = next((block[name] for name in ("arguments", "input") if name in block), {})
    told = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return ToolCall(
        id=str(block.get("id") or ""), name=str(block.get("name") or ""), arguments=told
    )
