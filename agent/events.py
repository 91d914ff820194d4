"""The events of a turn, made in one place for the blocking and the async agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from onrecord.transcript.codec import digest
from onrecord.transcript.errors import LeaseLost
from onrecord.transcript.events import (
    AssistantMessageProduced,
    Event,
    ModelCalled,
    RecoveryApplied,
    StreamBroken,
    ToolCall,
    ToolResultReceived,
    TurnFinalized,
    UserMessageReceived,
)

RUN = 12
"""Hexadecimal digits that make a turn's ids its own: short, since each part of a reply names one."""


def outcome_of(error: BaseException) -> str:
    """Return how a turn ends that `error` leaves: interrupted where it was stopped, else failed.

    What isn't an Exception (KeyboardInterrupt, SystemExit, GeneratorExit) stops a turn, so does
    cancellation, and so does an error that says so by a true `interrupts`.
    """
    stops = not isinstance(error, Exception) or isinstance(error, asyncio.CancelledError)
    return "interrupted" if stops or getattr(error, "interrupts", False) else "failed"


def lost(error: BaseException | None) -> bool:
    """Tell whether another process has the session now, by an error or what it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, LeaseLost):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


class TurnEvents:
    """Makes the events of one turn, and counts its ids.

    Ids hold a random part: a turn that is run again after a crash says new things, under new names.
    """

    def __init__(self, turn: str, writer: str) -> None:
        self.turn = turn
        self.writer = writer
        self._run = uuid4().hex[:RUN]
        self._count = 0

    def next_id(self, kind: str) -> str:
        """Return a new id: m for a message, c for a model call."""
        self._count += 1
        return f"{self._run}.{kind}{self._count}"

    def user(self, text: str, message: str, turn: str | None, parts: Sequence[Any]) -> Event:
        """Say that a user's message came in."""
        return UserMessageReceived(
            message=message, text=text, turn=turn, parts=list(parts), at=_now(), writer=self.writer
        )

    def model(self, call: str, model: str, version: int, rendered: Any, profile: str) -> Event:
        """Say that a model is about to be asked."""
        return ModelCalled(
            turn=self.turn, call=call, model=model, version=version, at=_now(), writer=self.writer,
            digest="" if rendered is None else digest(rendered), profile=profile,
        )  # fmt: skip

    def produced(
        self,
        text: str,
        tool_calls: Iterable[ToolCall],
        message: str,
        finish_reason: str | None,
        reasoning: str | None,
        usage: dict[str, Any] | None,
    ) -> Event:
        """Say that the model's response is complete."""
        return AssistantMessageProduced(
            turn=self.turn, message=message, text=text, tool_calls=list(tool_calls),
            finish_reason=finish_reason, reasoning=reasoning, usage=usage, at=_now(),
            writer=self.writer,
        )  # fmt: skip

    def result(self, tool_call: str, text: str, *, is_error: bool) -> Event:
        """Say that a tool answered."""
        return ToolResultReceived(
            turn=self.turn, tool_call=tool_call, text=text, is_error=is_error, at=_now(),
            writer=self.writer,
        )  # fmt: skip

    def broken(self, reason: str, message: str | None) -> Event:
        """Say that the model's stream died."""
        return StreamBroken(
            turn=self.turn, message=message, reason=reason, at=_now(), writer=self.writer
        )

    def recovered(self, kind: str, text: str | None, prompt: str | None) -> Event:
        """Say what was done about it."""
        return RecoveryApplied(
            turn=self.turn, kind=kind, text=text, prompt=prompt, at=_now(), writer=self.writer
        )

    def partial(self, error: BaseException, message: str, text: str) -> tuple[Event, ...]:
        """Say that a stream ended in `error`, and keep what came of it."""
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        broken = self.broken(reason, message)
        if not text.strip():
            return (broken,)
        return (broken, self.recovered("partial_stream", text, None))

    def final(self, outcome: str, text: str | None) -> Event:
        """Say that the turn is over."""
        return TurnFinalized(
            turn=self.turn, outcome=outcome, text=text, at=_now(), writer=self.writer
        )


def _now() -> datetime:
    return datetime.now(UTC)
