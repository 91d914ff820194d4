"""What an agent loop calls on an event loop: `onrecord.agent.turn`, awaited.

    agent = AsyncAgent(log, session)
    async with agent.turn(receipt.turn) as turn:
        await turn.model_called("gpt-5", rendered=messages)
        async with turn.stream() as answer:
            async for chunk in chunks:
                answer.add(chunk)
        await turn.end(text=answer.text)

A cancelled turn is closed as interrupted before the cancellation goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from onrecord.agent.events import TurnEvents, lost, outcome_of
from onrecord.transcript import failpoints
from onrecord.transcript.errors import LeaseLost, OnRecordError
from onrecord.transcript.events import Event, ToolCall
from onrecord.transcript.leases import Lease
from onrecord.transcript.recorded import Recorded

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog


class AsyncAgent:
    """Writes what an agent does in a session. `lease`: the right to, where processes share it."""

    def __init__(
        self, log: TranscriptLog, session: str, *, lease: Lease | None = None, writer: str = "agent"
    ) -> None:
        self.log = log
        self.session = session
        self.lease = lease
        self.writer = writer

    async def receive(
        self,
        text: str,
        *,
        message: str | None = None,
        turn: str | None = None,
        parts: Sequence[Any] = (),
    ) -> str:
        """Record a user's message where no gateway did; return the turn that it belongs to."""
        name = message or uuid4().hex
        made = TurnEvents(turn or name, self.writer).user(text, name, turn, parts)
        await self.append(made)
        return turn or name

    def turn(self, name: str) -> AsyncTurn:
        """Open a turn. `name`: as the inbox's receipt, or `receive`, says."""
        return AsyncTurn(self, name)

    async def append(self, *events: Event, durable: bool = True) -> tuple[Recorded, ...]:
        """Write events to the session; `durable`: on the disk when it returns."""
        return await self.log.aio.append(self.session, *events, durable=durable, lease=self.lease)


class AsyncTurn:
    """One turn. A context manager; each method returns when its record is durable.

    But for an answer without tool calls: the next record carries it to the disk, which is there before
    anything of the answer is sent.
    """

    def __init__(self, agent: AsyncAgent, name: str) -> None:
        self.name = name
        self.closed = False
        self._agent = agent
        self._events = TurnEvents(name, agent.writer)

    def next_message(self) -> str:
        """Return an id for a message to come, for a delivery that begins before it is complete."""
        return self._events.next_id("m")

    async def model_called(
        self,
        model: str = "",
        *,
        rendered: Any = None,
        version: int | None = None,
        profile: str = "",
        call: str = "",
    ) -> str:
        """Record which transcript the model is asked with, before it is; return the call's id.

        `rendered`: the messages as they go to the model; `version`: the session's version that they
        go up to, the current one if absent; `profile`: the one that rendered them. With all three,
        `onrecord replay --verify` can tell whether they would be the same today.
        """
        call = call or self._events.next_id("c")
        if version is None:
            version = await self._agent.log.aio.version(self._agent.session)
        await self._agent.append(self._events.model(call, model, version, rendered, profile))
        return call

    async def produced(
        self,
        text: str,
        tool_calls: Iterable[ToolCall] = (),
        *,
        message: str | None = None,
        finish_reason: str | None = None,
        reasoning: str | None = None,
        usage: dict[str, Any] | None = None,
    ) -> str:
        """Record a complete response, before its tools run and before it is sent; return its id."""
        message = message or self.next_message()
        calls = list(tool_calls)
        await self._agent.append(
            self._events.produced(text, calls, message, finish_reason, reasoning, usage),
            durable=bool(calls),
        )
        if not calls:
            failpoints.hit("answer-durable")
        return message

    async def tool_result(self, tool_call: str, text: str, *, is_error: bool = False) -> None:
        """Record what a tool answered."""
        failpoints.hit("tool-ran")
        await self._agent.append(self._events.result(tool_call, text, is_error=is_error))

    def stream(self, message: str | None = None) -> AsyncStream:
        """Gather a response as it streams; its text is kept however the stream ends."""
        return AsyncStream(self, message or self.next_message())

    async def broken(self, reason: str, message: str | None = None) -> None:
        """Record that the model's stream died."""
        await self._agent.append(self._events.broken(reason, message))

    async def recovered(
        self, kind: str, text: str | None = None, prompt: str | None = None
    ) -> None:
        """Record what was done about a broken or empty answer."""
        await self._agent.append(self._events.recovered(kind, text, prompt))

    async def end(self, outcome: str = "completed", text: str | None = None) -> None:
        """Close the turn. `text`: the final answer, where the agent has one."""
        failpoints.hit("before-final")
        await self._agent.append(self._events.final(outcome, text))
        self.closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.closed:
            return
        if error is None:
            await self.end()
            return
        if lost(error):
            error.add_note("the turn was left open: another process has the session")
            return
        try:
            if self._agent.lease is not None:
                await self._agent.log.aio.leases.check(self._agent.lease)
            await self.end(outcome_of(error))
        except LeaseLost:
            error.add_note("the turn was left open: another process has the session")
        except OnRecordError as refused:
            error.add_note(f"the end of turn {self.name!r} could not be recorded: {refused}")


class AsyncStream:
    """A response that is being streamed. A context manager: leaving it records what it came to."""

    def __init__(self, turn: AsyncTurn, message: str) -> None:
        self.message = message
        self.tool_calls: list[ToolCall] = []
        self.finish_reason: str | None = None
        self.reasoning: str | None = None
        self.usage: dict[str, Any] | None = None
        self._turn = turn
        self._chunks: list[str] = []

    @property
    def text(self) -> str:
        """Return what came so far."""
        return "".join(self._chunks)

    def add(self, chunk: str) -> str:
        """Take a piece of text, and return it."""
        self._chunks.append(chunk)
        return chunk

    def call(self, call: ToolCall) -> None:
        """Take a complete tool call."""
        self.tool_calls.append(call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        failpoints.hit("model-text")
        if error is None:
            await self._turn.produced(
                self.text, self.tool_calls, message=self.message, finish_reason=self.finish_reason,
                reasoning=self.reasoning, usage=self.usage,
            )  # fmt: skip
            return
        try:
            await self._turn._agent.append(
                *self._turn._events.partial(error, self.message, self.text)
            )
        except OnRecordError as refused:
            error.add_note(f"what was streamed could not be recorded: {refused}")
