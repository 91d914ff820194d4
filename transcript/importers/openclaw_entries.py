"""The entries of a session of OpenClaw → rows.

OpenClaw shows what it reaches from its newest entry (the leaf). That moves with each entry that is
appended, and by `leaf` entries; an entry with `appendMode: side` doesn't move it. Nobody goes back in a
chat: an entry that goes on from an older one hides what stands between, and the model forgets it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from onrecord.transcript.events import SessionStarted
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.chain import Chain
from onrecord.transcript.importers.contents import others, words
from onrecord.transcript.importers.openclaw_messages import (
    Answer,
    delivered_by,
    is_from_program,
    is_shown_only,
)
from onrecord.transcript.importers.openclaw_sends import Sends
from onrecord.transcript.importers.openclaw_tables import Window
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.times import is_past, microseconds

Object = dict[str, Any]

SILENT = frozenset(
    {"custom", "label", "model_change", "session_info", "thinking_level_change", "leaf"}
)
"""Entries that nobody said: the program's own state."""
_HEARTBEAT = re.compile(
    r"(Read HEARTBEAT\.md|\[OpenClaw (heartbeat|exec)|Follow the heartbeat monitor)"
)


@dataclass
class Conversation:
    """Reads one session's entries, in the order in which they were written."""

    rows: SourceRows
    window: Window = field(default_factory=Window)
    _chain: Chain = field(default_factory=Chain)
    _sends: Sends = field(default_factory=Sends)
    _at: int | None = None
    _place: str = ""
    _started: bool = False
    _ended: bool = False
    """Whether the model has said all that it had to say to the last message."""
    _unknown: set[str] = field(default_factory=set[str])

    def read(self, key: str, place: str, entry: Object) -> None:
        """Take an entry in. `key`: unique in its session, for entries that have no id."""
        kind, id = str(entry.get("type")), str(entry.get("id") or key)
        message = entry.get("message")
        said = message.get("timestamp") if isinstance(message, dict) else None
        self._at = microseconds(entry.get("timestamp")) or microseconds(said) or self._at
        self._place = place
        if kind == "session":
            self._start(entry)
            return
        if not self._started:
            self._start({})
        if self._chain.knows(id):
            self.rows.fault(codes.DUPLICATE, place, "a second entry under the id of an earlier one")
        elif kind == "message" and isinstance(message, dict):
            self._message(id, entry, message)
        elif kind in ("compaction", "reset"):
            self._boundary(id, kind, entry)
        elif kind == "branch_summary":
            self._go_to(entry.get("parentId"))
            self._beside(id, entry, str(entry.get("summary") or ""))
        elif kind == "custom_message":
            self._beside(id, entry, words(entry.get("content")))
        elif kind in SILENT:
            self._silent(id, kind, entry)
        else:
            self._tell_unknown(f"an entry of the type {kind!r}")
            self._hang(id, entry)

    def finish(self) -> None:
        """There are no more entries for now."""
        if is_past(self._at):  # else how the turn ends may follow
            self.rows.finish(self._at)

    def _start(self, header: Object) -> None:
        if self._started:
            self.rows.fault(codes.MALFORMED, self._place, "a second header of a session")
            return
        self._started = True
        if not header:
            told = "the header is missing, which says whose session it is"
            self.rows.fault(codes.MALFORMED, self._place, told)
        parent = self.window.parent or _id_of(header.get("parentSession"))
        started = SessionStarted(
            platform=self.window.channel or "openclaw", chat=self.window.key,
            title=self.window.title, parent=parent or None,
        )  # fmt: skip
        self.rows.add(started, self._at, self._place)

    # --- messages --------------------------------------------------------------------------------

    def _message(self, id: str, entry: Object, message: Object) -> None:
        role = message.get("role")
        if role == "user":
            self._user(id, entry, message)
        elif role == "assistant" and is_shown_only(message):
            self._hang(id, entry)
            self._shown(id, message)
        elif role == "assistant":
            self._assistant(id, entry, message)
        elif role == "toolResult":
            self._result(id, entry, message)
        elif role == "bashExecution":
            told = f"{message.get('command') or ''}\n{message.get('output') or ''}"
            self._beside(id, entry, told.strip())
        elif role in ("custom", "hookMessage", "branchSummary", "compactionSummary"):
            self._beside(
                id, entry, words(message.get("content")) or str(message.get("summary") or "")
            )
        else:
            self._tell_unknown(f"a message of the role {role!r}")
            self._hang(id, entry)

    def _user(self, id: str, entry: Object, message: Object) -> None:
        content = message.get("content")
        text = words(content)
        kind = is_from_program(message)
        if kind or _HEARTBEAT.match(text):
            self._hang(id, entry)
            if self._ended:  # what comes of it is no part of how the user's turn ended
                self.rows.close(self._at)
            kind, marked = kind or "heartbeat", bool(kind)
            self.rows.prompt(id, text, self._at, self._place, kind=kind, marked=marked)
        else:
            self._ended = False
            aside = message.get("excludeFromContext") is True
            if aside or entry.get("appendMode") == "side":
                self._hang(id, entry)
            else:
                self._add(id, entry, turn=id)
            self.rows.user(id, text, self._at, self._place, parts=others(content), observed=aside)

    def _assistant(self, id: str, entry: Object, message: Object) -> None:
        answer = Answer.of(message, self._place, self.rows.fault)
        if entry.get("appendMode") == "side":
            self._hang(id, entry)
        else:
            self._add(id, entry)
        step = self._chain.step(id)
        for call in answer.calls:
            self._chain.hang(f"call {call.id}", step)
            self._sends.called(call, message="" if answer.text.strip() else id)
        if answer.says:
            self.rows.assistant(
                id, answer.text, self._at, self._place, calls=answer.calls,
                reasoning=answer.reasoning, finish_reason=answer.finish, usage=answer.usage,
            )  # fmt: skip
        self._ended = answer.finish in ("stop", "length", None) and not answer.calls
        if answer.finish == "error":
            self.rows.broken(answer.error, self._at, self._place)
        elif answer.finish == "aborted":
            self.rows.close(self._at, "interrupted")

    def _result(self, id: str, entry: Object, message: Object) -> None:
        call = str(message.get("toolCallId") or self._place)
        step = self._chain.step(f"call {call}")
        self._chain.hang(id, self._parent(entry) if step is None else step)
        failed = message.get("isError") is True
        text = words(message.get("content"))
        self.rows.tool(call, text, self._at, self._place, is_error=failed)
        if sent := self._sends.answered(call, text, failed=failed, turn=self.rows.turn):
            self.rows.delivered(
                f"call:{call}", sent.text, self._at, self._place, message=sent.message or None,
                target=sent.target, platform_messages=sent.platform_messages, outcome=sent.outcome,
                reason=sent.reason,
            )  # fmt: skip

    def _shown(self, id: str, message: Object) -> None:
        """Take in a row that says what went out: the model is never given it."""
        text = words(message.get("content"))
        sent = delivered_by(message)
        if not text.strip() or self._sends.sent(text, sent.call, turn=self.rows.turn):
            return  # a tool's send is told already, with its result
        self.rows.delivered(
            id, text, self._at, self._place, message=sent.of or None, kind=sent.kind,
            outcome=sent.outcome, reason=sent.reason,
        )  # fmt: skip

    # --- what is no message ------------------------------------------------------------------------

    def _beside(self, id: str, entry: Object, text: str) -> None:
        """Take in what the program tells the model."""
        self._hang(id, entry)
        if text.strip():
            self.rows.instructed(text, self._at, self._place)

    def _silent(self, id: str, kind: str, entry: Object) -> None:
        if kind == "leaf":
            target = entry.get("targetId")
            self._go_to(target)
            self._chain.hang(id, self._chain.step(str(target)) if target else None)
        else:
            self._hang(id, entry)

    def _boundary(self, id: str, kind: str, entry: Object) -> None:
        """Take in a compaction, or a reset: what stood before it is summarised, or left out."""
        through = self._chain.turn_before_from(str(entry.get("firstKeptEntryId") or ""))
        summary = str(entry.get("summary") or "").strip()
        if kind == "reset":
            summary = f"[the conversation was reset ({entry.get('reason')})]"
        elif not summary:
            self.rows.fault(codes.LOST, self._place, "a compaction without a summary")
            summary = "[an empty summary]"
        if through != "":  # the first turn of all is kept
            self.rows.compacted(summary, self._at, self._place, through=through or "")
        self._hang(id, entry)

    def _tell_unknown(self, what: str) -> None:
        """Tell of a kind of entry that isn't known, once."""
        if what not in self._unknown:
            self._unknown.add(what)
            told = f"{what}; nothing of it was read, nor of those like it"
            self.rows.fault(codes.UNKNOWN, self._place, told)

    # --- pointers --------------------------------------------------------------------------------

    def _parent(self, entry: Object) -> int | None:
        """Return the step before an entry's own; say so where the entry that it names isn't there."""
        if "parentId" not in entry:
            return None  # the first version had no pointers
        parent = entry["parentId"]
        step = self._chain.step(str(parent) if parent else None)
        if step is None:
            told = (
                "it goes on from an entry that isn't there; older versions show nothing before it"
            )
            self.rows.fault(codes.GAP, self._place, told)
        return step

    def _hang(self, id: str, entry: Object) -> None:
        parent = entry.get("parentId")
        self._chain.hang(id, self._chain.step(str(parent)) if parent else None)

    def _add(self, id: str, entry: Object, turn: str = "") -> None:
        left = self._chain.add(id, self._parent(entry), self._place, turn=turn)
        if left:
            self.rows.fault(codes.HIDDEN, self._place, left.told(left.count))

    def _go_to(self, target: object) -> None:
        """The program was told to go back."""
        step = self._chain.step(str(target) if target else None)
        left = None if step is None else self._chain.go_to(step)
        if left and left.hidden:
            self.rows.fault(codes.HIDDEN, self._place, left.told(left.hidden))
        if left and left.turn:
            self.rows.rewound(left.turn, self._at, self._place)


def _id_of(parent: object) -> str:
    """Return the id of the session that a header's parentSession names: an id, or a file's path."""
    name = str(parent or "").replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".jsonl")
    return name.rsplit("_", 1)[-1]
