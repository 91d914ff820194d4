"""Messages that OpenClaw's model sent itself, by its tool `message`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from onrecord.transcript.events import Target, ToolCall
from onrecord.transcript.importers.rows import Outcome

TOOL = "message"
ACTIONS = ("send", "reply", "thread-reply", "sendWithEffect", "broadcast")
"""Actions of the tool that put a text before somebody."""

_TEXTS = ("message", "text", "content", "caption")
_TARGETS = ("to", "target", "channelId", "chatId")
_IDS = ("messageId", "message_id", "platformMessageId")


@dataclass(frozen=True, slots=True)
class Sent:
    """A text that went out. `message`: the row whose call sent it, if it has no text of its own."""

    text: str
    message: str
    target: Target | None
    platform_messages: list[str]
    outcome: Outcome
    reason: str


@dataclass
class Sends:
    """The sends of one session's open turn."""

    _called: dict[str, tuple[str, str, Target | None]] = field(
        default_factory=dict[str, tuple[str, str, Target | None]]
    )
    _sent: set[str] = field(default_factory=set[str])
    _turn: str = ""

    def called(self, call: ToolCall, message: str) -> None:
        """Note a call, if it is a send."""
        given = _object(call.arguments)
        action = given.get("action", "send")
        text = next((given[name] for name in _TEXTS if isinstance(given.get(name), str)), "")
        if call.name == TOOL and action in ACTIONS and text.strip():
            self._called[call.id] = (text, message, _target(given))

    def answered(self, call: str, result: str, *, failed: bool, turn: str) -> Sent | None:
        """Return what a call sent, now that it has its result; None if it was no send."""
        found = self._called.pop(call, None)
        if found is None:
            return None
        text, message, target = found
        told = _object(result)
        failed = failed or told.get("ok") is False or bool(told.get("error"))
        if not failed:
            self._note(text, call, turn)
        ids = [
            str(id)
            for place in (told, told.get("result"), told.get("payload"))
            for id in _ids(place)
        ]
        reason = str(told.get("error") or result[:200]) if failed else ""
        return Sent(text, message, target, ids, "failed" if failed else "delivered", reason)

    def sent(self, text: str, call: str, turn: str) -> bool:
        """Tell whether a call of the turn sent this text: its own result said so."""
        return self._turn == turn and (call in self._sent or text.strip() in self._sent)

    def _note(self, text: str, call: str, turn: str) -> None:
        if self._turn != turn:
            self._turn = turn
            self._sent.clear()
        self._sent.update((text.strip(), call))


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _target(given: dict[str, Any]) -> Target | None:
    chat = next((str(given[name]) for name in _TARGETS if given.get(name)), "")
    platform = str(given.get("channel") or given.get("provider") or "")
    if not chat and not platform:
        return None
    thread = given.get("threadId")
    return Target(
        platform=platform, chat=chat, account=str(given.get("accountId") or ""),
        thread=str(thread) if thread else None,
    )  # fmt: skip


def _ids(place: object) -> list[object]:
    return [place[name] for name in _IDS if place.get(name)] if isinstance(place, dict) else []
