"""The lines of a session of Claude Code → rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from onrecord.transcript.events import RecoveryApplied, SessionStarted
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.chain import Chain, Left
from onrecord.transcript.importers.claude_code_blocks import Response, result_text
from onrecord.transcript.importers.contents import others, words
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.times import microseconds

Line = dict[str, Any]

OWN = frozenset(
    {
        "agent-color", "agent-name", "agent-setting", "ai-title", "api-request", "api-request-blob",
        "api-request-resumed", "api-request-shape", "artifact-autoreact-ledger",
        "artifact-comment-monitor", "atis-latch", "attribution-snapshot", "bridge-session", "checkpoint",
        "content-replacement", "continued-in", "cost-state", "custom-title", "data-flow-incomplete",
        "data-flow-records", "derived-from", "dev-mods", "ended-by-model", "file-history-delta",
        "file-history-snapshot", "fork-context-ref", "frame-link", "history-suppression", "host-row",
        "hybrid-organization", "isolation-latch", "last-prompt", "memory-mode", "mode", "observer-ref",
        "permission-mode", "pr-link", "queue-operation", "relocated", "repl-mode", "resume-head-vouch",
        "session-owner", "summary", "tag", "tools-used", "worktree-state",
    }
)  # fmt: skip
"""Lines of the program's own state, which nobody said."""
BESIDE = frozenset({"attachment", "progress", "system"})
"""Lines that hang in the conversation, and are no messages."""

INTERRUPTED = "[Request interrupted by user"
_CAVEAT = re.compile(r"\s*(<local-command-caveat>|Caveat: The messages below were generated)")
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_BESIDE = re.compile(
    r"\s*(<(local-command-(stdout|stderr)|bash-(input|stdout|stderr)|system-reminder)>"
    r"|\[Image: |Base directory for this skill)"
)
_PERSONS = (None, "human", "user")


@dataclass
class Conversation:
    """Reads one session's lines, in the file's order."""

    rows: SourceRows
    parent: str = ""
    _chain: Chain = field(default_factory=Chain)
    _response: Response | None = None
    _at: int | None = None
    _place: str = ""
    _started: bool = False
    _ended: bool = False
    """Whether the model has said all that it had to say to the last message."""
    _commands: bool = False
    """Whether what comes next was run by the program, and not sent to the model."""
    _through: str | None = None
    """The last turn that the compaction whose summary follows stands for."""
    _unknown: set[str] = field(default_factory=set[str])

    def read(self, key: str, place: str, line: Line) -> None:
        """Take a line in. `key`: unique in the file."""
        kind, id = str(line.get("type")), str(line.get("uuid") or "")
        self._at, self._place = microseconds(line.get("timestamp")) or self._at, place
        if kind in ("user", "assistant") and isinstance(line.get("message"), dict):
            if id and self._chain.knows(id):
                self.rows.fault(
                    codes.DUPLICATE, place, "a second line under the id of an earlier one"
                )
                return
            self._start(line)
            if kind == "user":
                self._user(id or key, line)
            else:
                self._assistant(id or key, line)
        elif kind in BESIDE:
            self._beside(kind, id or key, line)
        elif kind == "last-prompt" and line.get("explicit") is True:
            self._go_to(line.get("leafUuid"))
        elif kind not in OWN and kind not in self._unknown:
            self._unknown.add(kind)
            told = f"a line of the type {kind!r}; nothing of it was read, nor of those like it"
            self.rows.fault(codes.UNKNOWN, place, told)

    def finish(self, *, still: bool) -> None:
        """There are no more lines for now. `still`: nothing has been added for a while."""
        response = self._response
        if response and not response.is_whole and not still:
            if self.rows.turn and response.text:  # the rest may follow: say what there is of it
                said = RecoveryApplied(
                    turn=self.rows.turn, kind="partial_stream", text=response.text
                )
                self.rows.add(said, response.at, response.place)
            return
        self._flush()
        if still:  # else how the turn ends may follow
            self.rows.finish(self._at)

    def _start(self, line: Line) -> None:
        if not self._started:
            self._started = True
            fork = line.get("forkedFrom")
            parent = self.parent or (fork.get("sessionId") if isinstance(fork, dict) else None)
            started = SessionStarted(
                platform="claude-code", chat=str(line.get("cwd") or ""), parent=parent or None
            )
            self.rows.add(started, self._at, self._place)

    # --- the model -------------------------------------------------------------------------------

    def _assistant(self, id: str, line: Line) -> None:
        message = line["message"]
        if message.get("model") == "<synthetic>":
            self._made_up(id, line)
            return
        group = f"message {message.get('id') or line.get('requestId') or id}"
        if self._response is None or self._response.group != group:
            self._flush()
            self._response = Response(group, id, self._at, self._place)
        self._step(id, line, group)
        for call in self._response.read(message, self._place, self.rows.fault):
            self._chain.hang(f"call {call}", self._chain.step(id))
        if line.get("isAbortedMidStream") is True:
            self._flush()
            self.rows.broken("aborted in the middle of the stream", self._at, self._place)
            self.rows.close(self._at, "interrupted")

    def _step(self, id: str, line: Line, group: str) -> None:
        """Put a line of a response to its step, or begin one."""
        if (known := self._chain.step(group)) is not None:
            self._chain.hang(id, known)
            return
        left = self._chain.add(id, self._parent(line), self._place)
        self._chain.hang(group, self._chain.tip)
        if left:
            self.rows.fault(codes.HIDDEN, self._place, left.told(left.count))

    def _made_up(self, id: str, line: Line) -> None:
        """Take in an answer that no model gave: an error, or a placeholder."""
        self._flush()
        self._hang(id, line)
        text = words(line["message"].get("content"))
        if line.get("isApiErrorMessage") is True:
            self.rows.broken(text, self._at, self._place)
            self.rows.close(self._at, "failed")
        elif self.rows.turn:
            told = "an answer that the program made up is stored as the model's"
            self.rows.fault(codes.SYNTHETIC, self._place, told)
            self.rows.instructed(text, self._at, self._place)

    def _flush(self) -> None:
        """Tell the rows the response that is complete now."""
        response, self._response = self._response, None
        if response is not None and response.says:
            self._ended = response.finish == "end_turn"
            self.rows.assistant(
                response.key, response.text, response.at, response.place, calls=response.calls,
                reasoning=response.reasoning, finish_reason=response.finish, usage=response.usage,
            )  # fmt: skip
            for call, text, is_error in response.results:
                self.rows.tool(call, text, response.at, response.place, is_error=is_error)

    # --- the user --------------------------------------------------------------------------------

    def _user(self, id: str, line: Line) -> None:
        content = line["message"].get("content")
        blocks = content if isinstance(content, list) else []
        results = [b for b in blocks if isinstance(b, dict) and b.get("type") == "tool_result"]
        self._flush()
        if results:
            self._results(id, line, results)
            return
        text = words(content)
        if line.get("isCompactSummary") is True:
            self._hang(id, line)
            self._compacted(text)
        elif text.startswith(INTERRUPTED):
            self._hang(id, line)
            self.rows.close(self._at, "interrupted")
        elif not self._is_beside(id, line, text):
            self._said(id, line, text)

    def _results(self, id: str, line: Line, results: list[Line]) -> None:
        for block in results:
            call = str(block.get("tool_use_id") or self._place)
            step = self._chain.step(f"call {call}")
            self._chain.hang(id, self._parent(line) if step is None else step)
            self.rows.tool(
                call, result_text(block.get("content")), self._at, self._place,
                is_error=block.get("is_error") is True,
            )  # fmt: skip

    def _is_beside(self, id: str, line: Line, text: str) -> bool:
        """Take in what the program wrote in the user's name; return whether it is that."""
        if _CAVEAT.match(text):
            self._commands = True
        elif not (
            _BESIDE.match(text)
            or (self._commands and _COMMAND.search(text))
            or line.get("isVisibleInTranscriptOnly") is True
        ):
            return False
        self._hang(id, line)
        self.rows.instructed(text, self._at, self._place)
        return True

    def _said(self, id: str, line: Line, text: str) -> None:
        """Take in a message that the model is to answer: the user's, or one that the program made up."""
        self._commands = False
        origin = line.get("origin")
        kind = origin.get("kind") if isinstance(origin, dict) else None
        if line.get("isMeta") is True or kind not in _PERSONS:
            self._hang(id, line)
            if self._ended and kind:  # what comes of it is no part of how the user's turn ended
                self.rows.close(self._at)
            self.rows.prompt(id, text, self._at, self._place, kind=str(kind or "meta"), marked=True)
            return
        if command := _COMMAND.search(text):
            given = _ARGUMENTS.search(text)
            text = f"{command[1]} {given[1] if given else ''}".strip()
        self._ended = False
        self._tell_left(self._chain.add(id, self._parent(line), self._place, turn=id))
        parts = others(line["message"].get("content"))
        self.rows.user(id, text, self._at, self._place, parts=parts)

    # --- beside the conversation -------------------------------------------------------------------

    def _beside(self, kind: str, id: str, line: Line) -> None:
        if kind == "system" and line.get("subtype") == "compact_boundary":
            self._boundary(id, line)
            return
        known = self._chain.knows(id)
        parent = line.get("parentUuid") or line.get("logicalParentUuid")
        self._chain.hang(id, self._chain.step(str(parent)) if parent else None)
        attachment = line.get("attachment")
        if kind == "system" and line.get("subtype") == "api_error":
            self.rows.broken(str(line.get("error") or ""), self._at, self._place)
        elif (
            isinstance(attachment, dict)
            and attachment.get("type") == "queued_command"
            and not known
        ):
            self._queued(id, attachment)

    def _queued(self, id: str, attachment: Line) -> None:
        """Take in what was said while the model was at work, and given to it between two steps."""
        prompt = attachment.get("prompt")
        text = words(prompt)
        if attachment.get("commandMode") not in (None, "prompt"):
            self.rows.instructed(text, self._at, self._place)
        elif text:
            self._flush()
            parts = others(prompt)
            self.rows.user(id, text, self._at, self._place, parts=parts, observed=True)

    def _boundary(self, id: str, line: Line) -> None:
        """Begin a compaction. The lines that are kept hang on what follows from then on."""
        self._flush()
        told = line.get("compactMetadata")
        meta = told if isinstance(told, dict) else {}
        kept: list[str] = []
        for name in ("preservedMessages", "preservedSegment"):
            given = meta.get(name)
            if isinstance(given, dict):
                ids = given.get("allUuids") or given.get("uuids")
                kept += ids if isinstance(ids, list) else []
                kept += [str(given[end]) for end in ("headUuid", "tailUuid") if given.get(end)]
        self._through = self._chain.turn_before(kept)
        self._chain.add(id, None, self._place)
        for each in kept:
            self._chain.hang(str(each), self._chain.tip)

    def _compacted(self, summary: str) -> None:
        through, self._through = self._through, None
        if through != "":  # the first turn of all is kept: nothing is summarised
            self.rows.compacted(summary, self._at, self._place, through=through or "")

    # --- pointers --------------------------------------------------------------------------------

    def _parent(self, line: Line) -> int | None:
        """Return the step before a line's own; say so where the line that it names isn't there."""
        parent = line.get("parentUuid")
        step = self._chain.step(str(parent) if parent else None)
        if step is None:
            told = (
                "it goes on from a line that isn't in the file; the program shows nothing before it"
            )
            self.rows.fault(codes.GAP, self._place, told)
        return step

    def _hang(self, id: str, line: Line) -> None:
        parent = line.get("parentUuid")
        self._chain.hang(id, self._chain.step(str(parent)) if parent else None)

    def _go_to(self, leaf: object) -> None:
        """The user went back, and has said nothing since."""
        step = self._chain.step(str(leaf)) if leaf else None
        if step is not None:
            self._flush()
            self._tell_left(self._chain.go_to(step))

    def _tell_left(self, left: Left | None) -> None:
        """Say that the user went back: to the message of a turn, which is taken back with what follows."""
        if left is None:
            return
        if left.hidden:
            self.rows.fault(codes.HIDDEN, self._place, left.told(left.hidden))
        if left.turn:
            self.rows.rewound(left.turn, self._at, self._place)
