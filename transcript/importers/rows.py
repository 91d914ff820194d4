"""The rows of a foreign transcript, one after another, as events.

Every format tells its rows here, so that turns, repetitions and broken alternation are one thing
everywhere. What a source holds twice is one event and a fault; whatever breaks the roles is a fault
and stays as it was said. Ids follow from what the source calls a thing and where it stands: reading a
source again says the same events, and the log takes what is new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias
from uuid import uuid5

import msgspec

from onrecord.transcript import codec
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    Event,
    RecoveryApplied,
    SourceFaultFound,
    StreamBroken,
    Target,
    ToolCall,
    ToolResultReceived,
    TranscriptCompacted,
    TranscriptRewound,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.events import (
    Source as MessageSource,
)
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.source import Entry
from onrecord.transcript.mending import storable

Outcome: TypeAlias = Literal["delivered", "in_doubt", "failed"]


class SourceRows:
    """One session's rows. Collects entries; `take` hands them out.

    `key`s are unique in the session and stay the same when the source is read again; `at`: µs since
    1970, UTC; `place`: where it stands, for people (`messages 123`, `rollout.jsonl:45`). What has no key
    of its own is known by its place; where that changes (a file that is rotated), by the `key` given.
    """

    def __init__(self, source: str, session: str, *, check_keys: bool = True) -> None:
        """Begin a session of a format. `check_keys`: a source of it can hold a key twice."""
        self.format = source
        self.session = storable(session)
        self.turn = ""
        self._writer = f"import:{source}"
        self._entries: list[Entry] = []
        self._open = False
        self._at: int | None = None  # of the last row, for what has no time of its own
        self._answered = False  # by a response without calls, or something that went out
        self._last = ""  # what the last row was: user, prompt, assistant, calls, tool
        self._message: tuple[str, MessageSource | None] = ("", None)
        self._check_keys = check_keys
        self._keys: set[str] = set()
        self._said: set[bytes] = set()
        self._calls: dict[str, bool] = {}  # of the open turn; answered?
        self._names: dict[str, str] = {}
        self._instructions: list[tuple[str, int | None, str]] = []

    def take(self) -> list[Entry]:
        """Return what was collected since the last time."""
        taken, self._entries = self._entries, []
        return taken

    def add(
        self, event: Event, at: int | None, place: str, count: int = 0, *, key: str = ""
    ) -> None:
        """Add an event as it is, with its writer, its place and an id that follows from them."""
        id = event.id
        if event.natural_key is None:
            name = ["import", self.format, self.session, event.type, storable(key or place)]
            id = uuid5(codec.NAMESPACE, codec.canonical(name))
        event = msgspec.structs.replace(event, id=id, writer=self._writer, imported_from=place)
        self._add(event, at, count)

    def fault(
        self, code: str, place: str, detail: str, turn: str | None = None, *, key: str = ""
    ) -> None:
        """Say what is wrong with the source at a place."""
        self._add(
            SourceFaultFound(
                code=code, place=key or place, detail=detail, turn=turn or self.turn or None,
                writer=self._writer, imported_from=place,
            ), self._at,
        )  # fmt: skip

    # --- rows ------------------------------------------------------------------------------------

    def user(
        self,
        key: str,
        text: str,
        at: int | None,
        place: str,
        *,
        sender: str | None = None,
        source: MessageSource | None = None,
        parts: Sequence[Any] = (),
        observed: bool = False,
    ) -> None:
        """A message of the user: it opens a turn, and ends the one before.

        `observed`: said in the chat, and not to the agent; it opens no turn of its own if one is open.
        """
        if self._is_known(key, at, place):
            return
        if not (observed and self._open):
            if self._open and self._last == "user" and not observed:
                if self._is_the_same(text, source):
                    self.fault(
                        codes.DUPLICATE, place, "a second row of the same message of the user"
                    )
                    return
                self.fault(
                    codes.BROKEN, place, "two messages of the user with no answer between them"
                )
            self._begin(key, at)
        if not observed:
            self._last = "user"
            self._message = (text, source)
        self._add(
            UserMessageReceived(
                message=key, text=text, turn=self.turn, parts=list(parts), sender=sender, source=source,
                writer=self._writer, imported_from=place,
            ), at, 1,
        )  # fmt: skip

    def prompt(
        self,
        key: str,
        text: str,
        at: int | None,
        place: str,
        *,
        kind: str = "continue",
        marked: bool = False,
    ) -> None:
        """A prompt that the program made up and stored as the user's: it is no row.

        `marked`: the source says itself that it isn't the user's; that is no fault.
        """
        if self._is_known(key, at, place):
            return
        self._need_turn(key, at, place)
        if not marked:
            told = f"a prompt of the program ({kind}) is stored as the user's message"
            self.fault(codes.SYNTHETIC, place, told)
        self._last = "prompt"
        self.add(RecoveryApplied(turn=self.turn, kind=kind, prompt=text), at, place, 1)

    def instructed(self, text: str, at: int | None, place: str) -> None:
        """What the program told the model as its system: kept with the turn, or the first; no row."""
        self._instructions.append((text, at, place))
        if self.turn:
            self._instruct()

    def assistant(
        self,
        key: str,
        text: str,
        at: int | None,
        place: str,
        *,
        calls: Sequence[ToolCall] = (),
        finish_reason: str | None = None,
        reasoning: str | None = None,
        usage: dict[str, Any] | None = None,
    ) -> None:
        """One response of the model, or a text that stands for one."""
        if self._is_known(key, at, place):
            return
        self._need_turn(key, at, place)
        if calls and all(self._names.get(call.id) in self._calls for call in calls):
            self.fault(codes.DUPLICATE, place, "a second row with the same tool calls")
            return
        if self._repeats(text) and not calls:
            self.fault(
                codes.DUPLICATE, place, "a second row with a text that this turn has already"
            )
            self._last, self._answered = "assistant", True
            kind = "prior_turn_content"
            self.add(RecoveryApplied(turn=self.turn, kind=kind, text=text), at, place, 1)
            return
        if self._last == "assistant":
            self.fault(codes.BROKEN, place, "two answers with no message of the user between them")
        self._last = "calls" if calls else "assistant"
        self._answered = self._answered or (not calls and bool(text.strip()))
        own = [self._named(call, place) for call in calls]
        self._add(
            AssistantMessageProduced(
                turn=self.turn, message=key, text=text, tool_calls=own, finish_reason=finish_reason,
                reasoning=reasoning, usage=usage, writer=self._writer, imported_from=place,
            ), at, 1,
        )  # fmt: skip

    def tool(
        self, call: str, text: str, at: int | None, place: str, *, is_error: bool = False
    ) -> None:
        """A tool's result, by the id of its call as the source has it."""
        self._at = self._at if at is None else at
        self._need_turn(f"result:{call}", at, place)
        name = self._names.get(call, call)
        if self._calls.get(name):
            self.fault(codes.DUPLICATE, place, "a second result of the same call")
            return
        if name not in self._calls:
            self.fault(codes.BROKEN, place, "a tool's result without a call before it")
        self._calls[name] = True
        self._last = "tool"
        self._add(
            ToolResultReceived(
                turn=self.turn, tool_call=name, text=text, is_error=is_error, writer=self._writer,
                imported_from=place,
            ), at, 1,
        )  # fmt: skip

    def broken(self, reason: str, at: int | None, place: str) -> None:
        """The model's stream died here."""
        if self.turn:
            self.add(StreamBroken(turn=self.turn, reason=reason), at, place)

    def compacted(self, summary: str, at: int | None, place: str, *, through: str = "") -> None:
        """What was said up to turn `through` (absent: all of it) is summarised for the model."""
        through = through or self.turn
        if through:
            self.close(at)
            self.add(TranscriptCompacted(through_turn=through, summary=summary), at, place, 1)

    def rewound(self, to_turn: str, at: int | None, place: str) -> None:
        """That turn and what came after it were taken back."""
        self.close(at)
        self.add(TranscriptRewound(to_turn=to_turn), at, place)

    # --- what went out -----------------------------------------------------------------------------

    def delivered(
        self,
        delivery: str,
        text: str,
        at: int | None,
        place: str,
        *,
        key: str = "",
        turn: str | None = None,
        message: str | None = None,
        target: Target | None = None,
        platform_messages: Sequence[str] = (),
        outcome: Outcome = "delivered",
        kind: str = "answer",
        reason: str = "",
    ) -> None:
        """A text that the source says went out, with what it knows of the outcome."""
        if kind == "answer" and turn in (None, self.turn):
            self._answered = True
        self._add(
            DeliveryAttempted(
                delivery=delivery, text=text, turn=turn or self.turn or None, message=message,
                kind=kind, target=target, writer=self._writer, imported_from=place,
            ), at,
        )  # fmt: skip
        if outcome == "delivered":
            event: Event = DeliveryConfirmed(
                delivery=delivery, platform_messages=list(platform_messages), evidence="source"
            )
        else:
            event = DeliveryFailed(
                delivery=delivery, reason=reason, definite=outcome == "failed", evidence="source"
            )
        self.add(event, at, place, key=key)

    # --- the end ---------------------------------------------------------------------------------

    def close(self, at: int | None, outcome: str = "") -> None:
        """The open turn is over: completed if it was answered, else abandoned, unless it is said.

        No record of the source says so, so the event has no place there.
        """
        if self._open:
            self._open = False
            outcome = outcome or ("completed" if self._answered else "abandoned")
            self._add(TurnFinalized(turn=self.turn, outcome=outcome, writer=self._writer), at)

    def finish(self, at: int | None = None) -> None:
        """The source has no more rows for now: a turn that has its answer is over, another stays open."""
        if self._last == "assistant" and self._answered:
            self.close(at)

    # --- inside ----------------------------------------------------------------------------------

    def _add(self, event: Event, at: int | None, count: int = 0) -> None:
        """Add an event: what has no time happened when the row before it did, and not at the import."""
        self._entries.append((event, self._at if at is None else at, count))

    def _is_known(self, key: str, at: int | None, place: str) -> bool:
        """Tell whether the source has a row of this key already, and say so."""
        self._at = self._at if at is None else at
        if not self._check_keys:
            return False
        if key in self._keys:
            self.fault(codes.DUPLICATE, place, "a second row under the id of an earlier one")
            return True
        self._keys.add(key)
        return False

    def _begin(self, name: str, at: int | None) -> None:
        self.close(at)
        self.turn, self._open, self._answered, self._last = name, True, False, ""
        self._said.clear()
        self._calls.clear()
        self._names.clear()
        self._instruct()

    def _instruct(self) -> None:
        """Tell the instructions that waited for a turn."""
        for text, at, place in self._instructions:
            told = RecoveryApplied(turn=self.turn, kind="instructions", prompt=text)
            self.add(told, at, place, 1)
        self._instructions.clear()

    def _need_turn(self, key: str, at: int | None, place: str) -> None:
        """Open a turn for a row that stands before any message of the user."""
        if not self.turn:
            self._begin(f"start:{key}", at)
            self.fault(
                codes.BROKEN, place, "the transcript doesn't begin with a message of the user"
            )

    def _is_the_same(self, text: str, source: MessageSource | None) -> bool:
        """Tell whether the user's message is the last one again: its words, and no other origin."""
        words, origin = self._message
        return text.strip() == words.strip() and (not (source and origin) or source == origin)

    def _repeats(self, text: str) -> bool:
        """Tell whether a response of this turn had the text already."""
        words = text.strip()
        if not words:
            return False
        digest = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = digest in self._said
        self._said.add(digest)
        return known

    def _named(self, call: ToolCall, place: str) -> ToolCall:
        """Give a call an id that is unique in its turn."""
        name, number = call.id or f"call:{place}", 1
        while name in self._calls:
            number += 1
            name = f"{call.id}#{number}"
        self._calls[name] = False
        self._names[call.id] = name
        return call if name == call.id else msgspec.structs.replace(call, id=name)
