"""The lines of a rollout → rows."""

from __future__ import annotations

import re
from typing import Any

from onrecord.transcript.events import RecoveryApplied, SessionStarted
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.contents import words
from onrecord.transcript.importers.openai_items import Items
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.times import microseconds

Object = dict[str, Any]

ITEMS = frozenset(
    {
        "message", "reasoning", "local_shell_call", "function_call", "tool_search_call",
        "function_call_output", "tool_search_output", "custom_tool_call", "custom_tool_call_output",
        "web_search_call", "image_generation_call",
    }
)  # fmt: skip
"""Items of a response, and what answers them."""
SILENT = frozenset(
    {"compaction", "context_compaction", "compaction_summary", "additional_tools", "ghost_snapshot"}
)
"""Items that nobody said: a compaction is told by its own line, the rest is the program's memory."""
LINES = frozenset(
    {
        "world_state", "security_risk_score", "realtime_item", "id_allocation",
        "inter_agent_communication_metadata", "heartbeat",
    }
)  # fmt: skip
"""Lines of the program's own state."""

PROGRAMS = re.compile(
    r"\s*(<(environment_context|user_instructions|permissions instructions|turn_aborted|skill"
    r"|user_shell_command|subagent_notification|collaboration_mode)\b|# AGENTS\.md instructions)"
)
"""How a message begins that the program wrote in the user's name."""
_PERSON = ("user", "client", None)
_UNKNOWN_SUMMARY = "[a summary that only the provider can read]"


class Rollout:
    """Reads one rollout's lines, in the file's order: that is the order in which Codex shows them."""

    def __init__(self, rows: SourceRows, *, parent: str = "") -> None:
        self._rows = rows
        self._items = Items(rows)
        self._parent = parent
        self._started = False
        self._at: int | None = None
        self._place = ""
        self._turns: list[str] = []
        """Keys of the turns that weren't taken back."""
        self._open: list[str] = []
        """Texts of a response whose end hasn't been seen."""
        self._shown = ""
        """A text that the screen was told and that no item has yet."""
        self._unknown: set[str] = set()

    def read(self, key: str, place: str, line: Object) -> None:
        """Take a line in. `key`: unique in the file."""
        kind, payload = _kind(line), line.get("payload")
        self._at, self._place = microseconds(line.get("timestamp")) or self._at, place
        if kind == "response_item" and isinstance(payload, dict):
            self._item(key, payload)
        elif kind == "event_msg" and isinstance(payload, dict):
            self._event(payload)
        elif kind == "compacted" and isinstance(payload, dict):
            self._compacted(payload)
        elif kind == "inter_agent_communication" and isinstance(payload, dict):
            self._program(key, {"role": "user", "content": words(payload.get("content"))})
        elif kind == "session_meta" or (not kind and "id" in line and "timestamp" in line):
            self._start(payload if isinstance(payload, dict) else line)
        elif kind in ITEMS:
            self._item(key, line)
        elif kind in ("turn_context", "token_usage_record"):
            self._end_response()
        elif kind not in LINES and "record_type" not in line:
            self._tell_unknown(f"a line of the type {kind!r}")

    def finish(self, *, still: bool) -> None:
        """There are no more lines for now. `still`: nothing has been added for a while."""
        if self._open and not still:  # the rest of the response may follow: say what there is of it
            self._recovered("\n\n".join(self._open))
            return
        self._end_response()
        self._tell_shown()
        if still:  # else how the turn ends may follow
            self._rows.finish(self._at)

    # --- items -----------------------------------------------------------------------------------

    def _item(self, key: str, item: Object) -> None:
        kind = _kind(item)
        if kind in SILENT:
            if kind == "context_compaction":
                self._end_response()
            return
        if kind not in ITEMS and kind != "agent_message":
            self._tell_unknown(f"an item of the type {kind!r}")
            return
        if kind == "agent_message":
            self._program(key, {"role": "user", "content": words(item.get("content"))})
        elif kind == "message" and item.get("role") == "user":
            self._user(key, item)
        else:
            own = item.get("role", "assistant") == "assistant" and not kind.endswith("_output")
            if kind == "message" and own:
                self._say(words(item.get("content")))
            self._items.read(key, item, self._at, self._place)
            if not own:
                self._open.clear()

    def _user(self, key: str, item: Object) -> None:
        text = words(item.get("content"))
        if PROGRAMS.match(text) or _origin(item) not in _PERSON:
            self._program(key, item)
            return
        self._end_response()
        self._tell_shown()
        self._items.read(key, item, self._at, self._place)
        self._turns.append(key)

    def _program(self, key: str, item: Object) -> None:
        """Take in what the program wrote in the user's name, as what it is: instructions."""
        self._open.clear()
        told = {"type": "message", "role": "developer", "content": item.get("content")}
        self._items.read(key, told, self._at, self._place)

    def _say(self, text: str) -> None:
        self._open.append(text)
        if self._shown.strip() == text.strip():
            self._shown = ""

    def _end_response(self) -> None:
        self._items.end_response()
        self._open.clear()

    # --- events ----------------------------------------------------------------------------------

    def _event(self, event: Object) -> None:
        kind = event.get("type")
        if kind in ("token_count", "context_compacted", "task_started", "turn_started"):
            self._end_response()
        elif kind in ("task_complete", "turn_complete"):
            self._close("failed" if event.get("error") else "completed", event.get("error"))
        elif kind == "turn_aborted":
            self._close("interrupted", None)
        elif kind in ("error", "stream_error"):
            self._end_response()
            self._rows.broken(_message(event), self._at, self._place)
        elif kind == "thread_rolled_back":
            self._roll_back(event.get("num_turns"))
        elif kind == "agent_message" and isinstance(event.get("message"), str):
            self._show(event["message"])
        elif kind == "item_completed" and isinstance(event.get("item"), dict):
            item = event["item"]
            if item.get("type") == "AgentMessage":
                self._show(words(item.get("content")))

    def _show(self, text: str) -> None:
        """Note what the screen was told; an item of the same text stands before it or follows."""
        if text.strip() not in [said.strip() for said in self._open]:
            self._shown = text

    def _close(self, outcome: str, error: object) -> None:
        self._end_response()
        self._tell_shown()
        if error:
            self._rows.broken(_message(error), self._at, self._place)
        self._rows.close(self._at, outcome)

    def _tell_shown(self) -> None:
        """Say what the user was shown of a response that never became an item."""
        if self._shown:
            self._recovered(self._shown)
            self._shown = ""

    def _recovered(self, text: str) -> None:
        """Keep a text that is known to have been said, and not to be whole. It is a row if no other is."""
        if self._rows.turn and text.strip():
            event = RecoveryApplied(turn=self._rows.turn, kind="partial_stream", text=text)
            self._rows.add(event, self._at, self._place)

    def _roll_back(self, count: object) -> None:
        number = count if isinstance(count, int) else 0
        if number > 0 and self._turns:
            self._end_response()
            self._rows.rewound(self._turns[-number:][0], self._at, self._place)
            del self._turns[-number:]

    # --- the rest --------------------------------------------------------------------------------

    def _start(self, meta: Object) -> None:
        if self._started:
            return  # a fork has those of what it was forked from, too
        self._started = True
        started = SessionStarted(
            platform="codex", chat=str(meta.get("cwd") or ""), parent=self._parent or None
        )
        self._rows.add(started, self._at, self._place)

    def _compacted(self, payload: Object) -> None:
        self._end_response()
        summary = str(payload.get("message") or "").strip()
        if not summary:
            self._rows.fault(
                codes.LOST, self._place,
                "the summary of what was compacted here can be read by the provider alone",
            )  # fmt: skip
        self._rows.compacted(summary or _UNKNOWN_SUMMARY, self._at, self._place)

    def _tell_unknown(self, what: str) -> None:
        """Tell of a kind of record that isn't known, once."""
        if what not in self._unknown:
            self._unknown.add(what)
            told = f"{what}; nothing of it was read, nor of those like it"
            self._rows.fault(codes.UNKNOWN, self._place, told)


def _kind(found: Object) -> str:
    """Return the type that a line or an item says it is, empty for none."""
    return str(found.get("type") or "")


def _origin(item: Object) -> Any:
    """Return who newer versions say wrote a message: `user`, or a part of the program."""
    said = item.get("internal_chat_message_metadata_passthrough")
    kinds = said.get("content_item_metadata") if isinstance(said, dict) else None
    first = kinds[0] if isinstance(kinds, list) and kinds else None
    provenance = first.get("provenance") if isinstance(first, dict) else None
    return provenance.get("type") if isinstance(provenance, dict) else None


def _message(error: object) -> str:
    found = error.get("message") if isinstance(error, dict) else error
    return str(found or "")
