"""A session as a document for people: its turns, each with its messages, when they were said and seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec
import regex

from onrecord.projections.conversation import Conversation
from onrecord.projections.promise import check_reading
from onrecord.projections.rows import Row
from onrecord.projections.transcript import folded
from onrecord.transcript.events import ToolCall
from onrecord.transcript.recorded import Recorded

SEEN = {
    "delivered": "delivered",
    "partial": "the user saw this much of it",
    "in_doubt": "in doubt: nobody knows whether it arrived",
    "undelivered": "never delivered",
}
"""What is said of a message's delivery; nothing where nothing is known to have been sent."""
MADE_UP = "nothing was said here: this closes the turn for the model"
COMPACTED, UNDONE = "compacted", "undone"
WHY_OUT = {
    COMPACTED: "out of the model's view: a summary stands for it",
    UNDONE: "out of the model's view: undone",
}

_UNSEEN = regex.compile(
    r"[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]"
    r"--[\n\t\u200c\u200d\ufe00-\ufe0f]]",
    regex.VERSION1,
)


class Call(msgspec.Struct, frozen=True):
    """A call of a tool, and the row of its result if there is one."""

    call: ToolCall
    result: Row | None = None


class Message(msgspec.Struct, frozen=True):
    """A row. `at`: when its first event was recorded; `until`: when its last one was."""

    row: Row
    at: datetime
    until: datetime
    calls: list[Call] = []

    @property
    def seen(self) -> str:
        """What the user has seen of it, in words; empty where there is nothing to say."""
        return MADE_UP if self.row.origin == "synthetic" else SEEN.get(self.row.delivery, "")


class Turn(msgspec.Struct, frozen=True):
    """`out`: why the model isn't shown it any more (compacted, undone), empty if it is."""

    name: str
    messages: list[Message]
    out: str = ""


class Document(msgspec.Struct, frozen=True):
    """A session as of `version`; `summary`: what stands for the turns that were compacted."""

    session: str
    version: int
    turns: list[Turn]
    summary: Message | None = None


def document(
    session: str, records: Iterable[Recorded], *, at: int | datetime | None = None,
    full: bool = False,
) -> Document:  # fmt: skip
    """Return a session as a document, held against the promise.

    `at`: as it stood at that version or time. `full`: with what was compacted or undone. Raise
    DeliveredNotProjected when a delivered text isn't in it.
    """
    times: dict[int, datetime] = {}

    def noted() -> Iterator[Recorded]:
        for recorded in records:
            times[recorded.version] = recorded.recorded_at
            yield recorded

    conversation, reading = folded(noted(), at=at)
    check_reading(session, reading, conversation.rows(full=full), full=full)
    turns = list(_turns(conversation, times, full=full))
    compaction = conversation.compaction()
    summary = None if compaction is None else _message(compaction.row(), times)
    return Document(session, conversation.version, turns, summary)


def _turns(conversation: Conversation, times: dict[int, datetime], *, full: bool) -> Iterator[Turn]:
    out = conversation.taken_out()
    for view in conversation.views():
        name = view.facts.name
        if not view.rows or (name in out and not full):
            continue
        why = (UNDONE if name in conversation.hidden else COMPACTED) if name in out else ""
        yield Turn(name, list(_messages(view.rows, times)), why)


def _messages(rows: list[Row], times: dict[int, datetime]) -> Iterator[Message]:
    """Yield messages; a result goes with its call, which it follows."""
    waiting: Message | None = None
    for row in rows:
        if waiting is not None and _answers(row, waiting.calls):
            continue
        if waiting is not None:
            yield waiting
        waiting = _message(row, times)
    if waiting is not None:
        yield waiting


def _answers(row: Row, calls: list[Call]) -> bool:
    """Tell whether a row is the result of one of the calls, and put it there."""
    for n, call in enumerate(calls):
        if row.role == "tool" and call.call.id == row.tool_call and call.result is None:
            calls[n] = Call(call.call, row)
            return True
    return False


def _message(row: Row, times: dict[int, datetime]) -> Message:
    calls = [Call(call) for call in row.tool_calls]
    return Message(row, times[row.versions[0]], times[row.versions[-1]], calls)


def visible(text: str) -> str:
    r"""Return a text in which every character that acts unseen is spelled out, such as \u202e.

    Those are controls, directions and whatever has no width. Blank space of all scripts stays, and so
    does what joins the letters of a script or the parts of an emoji.
    """
    told = text.replace("\r\n", "\n")
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), told)
