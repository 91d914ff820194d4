"""Our own log, with its stored projections, as messages of the `openai` profile.

each: a durable commit an event, and the stored transcript caught up after each turn. tail: the
user's message, then the rest of the turn in one append. log: as `each`, with the projection caught
up when it is read only. bounded: as `each`, with all but the last turns of a seed compacted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from onrecord.projections.profiles import render
from onrecord.projections.stored import StoredProjections
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryConfirmed,
    Event,
    ToolCall,
    ToolResultReceived,
    TranscriptCompacted,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog
from store import Store
from workload import SaidTurn

TURNS_A_BATCH = 250
VISIBLE_TURNS = 12
"""Turns that a compacted seed leaves in the model's view: about fifty messages."""


class OnRecord(Store):
    def __init__(self, folder: Path, variant: str, url: str = "") -> None:
        super().__init__(folder, variant)
        self.log = TranscriptLog.open(url or folder / "log.db")
        self.stored = StoredProjections(self.log)

    def close(self) -> None:
        self.log.close()

    def append(self, session: str, turn: SaidTurn) -> None:
        question, called, returned, answered, ended = turn_events(turn)
        self.log.append(session, question)
        if self.variant == "tail":
            self.log.append(session, called, returned, answered, ended)
        else:
            self.log.append(session, called)
            self.log.append(session, returned)
            self.log.append(session, answered, ended)
        if self.variant != "log":
            self.stored.catch_up(session)

    def seed(self, session: str, turns: Iterable[SaidTurn]) -> None:
        names: list[str] = []
        for batch in batches(turns, TURNS_A_BATCH):
            names += (turn.name for turn in batch)
            self.log.append(session, *(event for turn in batch for event in turn_events(turn)))
        if self.variant == "bounded":
            summary = TranscriptCompacted(through_turn=names[-1 - VISIBLE_TURNS], summary="s" * 400)
            self.log.append(session, summary)
        self.stored.catch_up(session)

    def load(self, session: str) -> list[dict[str, Any]]:
        return _messages(self.stored.transcript(session).rows)

    def tail(self, session: str, count: int) -> list[dict[str, Any]]:
        return _messages(self.stored.transcript(session, last=count).rows)[-count:]

    def stream(self, session: str, question: str, chunks: Iterable[str]) -> None:
        self.log.append(session, UserMessageReceived(message="u", text=question))
        said, offset = [], 0
        for chunk in chunks:
            attempt = DeliveryAttempted(
                delivery="d", turn="u", message="a", text=chunk, offset=offset
            )
            self.log.append(session, attempt)
            said.append(chunk)
            offset += len(chunk)
        answer = AssistantMessageProduced(turn="u", message="a", text="".join(said))
        self.log.append(session, answer, DeliveryConfirmed(delivery="d"), TurnFinalized(turn="u"))


def open_store(folder: Path, variant: str) -> Store:
    return OnRecord(folder, variant)


def turn_events(turn: SaidTurn) -> tuple[Event, ...]:
    """Return a turn as events; the last two are appended together."""
    name = turn.name
    call = ToolCall(id=turn.call, name=turn.tool, arguments=turn.arguments)
    return (
        UserMessageReceived(message=name, text=turn.question),
        AssistantMessageProduced(turn=name, message=f"{name}/1", tool_calls=[call]),
        ToolResultReceived(turn=name, tool_call=turn.call, text=turn.result),
        AssistantMessageProduced(turn=name, message=f"{name}/2", text=turn.answer),
        TurnFinalized(turn=name),
    )


def batches(turns: Iterable[SaidTurn], size: int) -> Iterator[list[SaidTurn]]:
    """Yield turns by the `size`."""
    left = iter(turns)
    while batch := list(islice(left, size)):
        yield batch


def _messages(rows: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = render(rows, "openai")["messages"]
    return messages
