"""What sending asks of the world, as values, and how a blocking and an async caller carry it out.

The rules of sending are written once, as generators that yield effects and are given the results;
`run` and `run_async` differ in nothing but how they wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias, TypeVar

import msgspec

from onrecord.gateway.platform import Request
from onrecord.transcript.events import Event

T = TypeVar("T")


class Append(msgspec.Struct, frozen=True):
    """Write events to the session; gives the records. `durable`: wait for the disk."""

    events: tuple[Event, ...]
    durable: bool = True


class Check(msgspec.Struct, frozen=True):
    """See that the lease still holds; raises LeaseLost."""


class Transmit(msgspec.Struct, frozen=True):
    """Make one request to the platform; gives its message id."""

    request: Request


class Ask(msgspec.Struct, frozen=True):
    """Look a request up at the platform; gives Found or None."""

    request: Request


class Wait(msgspec.Struct, frozen=True):
    """Let `seconds` pass."""

    seconds: float


Effect: TypeAlias = Append | Check | Transmit | Ask | Wait
Flow: TypeAlias = Generator[Effect, Any, T]


def run(flow: Flow[T], perform: Callable[[Effect], object]) -> T:
    """Carry a flow out, blocking; return its result."""
    try:
        effect = next(flow)
        while True:
            try:
                result = perform(effect)
            except BaseException as error:  # noqa: BLE001 - the flow decides, and raises it again
                effect = flow.throw(error)
            else:
                effect = flow.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


class NotBegun(BaseException):
    """The effect was not begun: its caller is stopped."""


class Finished(BaseException):
    """A request was answered although its caller was cancelled: the result, and the cancellation."""

    def __init__(self, result: object, error: Exception | None, stop: BaseException) -> None:
        super().__init__()
        self.result = result
        self.error = error
        self.stop = stop


async def run_async(flow: Flow[T], perform: Callable[[Effect], Awaitable[object]]) -> T:
    """Carry a flow out on an event loop; return its result.

    A caller cancelled while the platform answers still gets the outcome recorded: the cancellation is
    raised after that, before anything else begins.
    """
    stop: BaseException | None = None
    try:
        effect = next(flow)
        while True:
            try:
                if stop is not None and not _is_outcome(effect):
                    effect = flow.throw(NotBegun())
                    continue
                result = await perform(effect)
            except Finished as end:
                stop = end.stop
                effect = flow.throw(end.error) if end.error else flow.send(end.result)
            except BaseException as error:  # noqa: BLE001 - the flow decides, and raises it again
                effect = flow.throw(error)
            else:
                effect = flow.send(result)
    except NotBegun:
        assert stop is not None, "an effect is only left out for a caller that is stopped"
        raise stop from None
    except StopIteration as end:
        if stop is not None:
            raise stop from None
        value: T = end.value
        return value


def _is_outcome(effect: Effect) -> bool:
    return isinstance(effect, Append) and not any(event.intent for event in effect.events)


async def answered(work: Awaitable[T], drain: float) -> T:
    """Await a request; when cancelled, give it `drain` seconds to be answered.

    Raise Finished where it was, else CancelledError.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as stop:
        if task.cancelled():
            raise
        try:
            await asyncio.wait({task}, timeout=drain)
        finally:
            if not task.done():
                task.cancel()
        if not task.done():
            await asyncio.wait({task})
        if task.cancelled():
            raise
        error = task.exception()
        if error is not None and not isinstance(error, Exception):
            raise
        raise Finished(None if error else task.result(), error, stop) from None
