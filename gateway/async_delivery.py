"""What goes out, for an event loop: `onrecord.gateway.delivery`, awaited.

A sender that is cancelled while the platform answers waits for the answer, for a bounded time, so that
the outcome is on record before the cancellation goes on.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from onrecord.gateway.course import TRIES, Shown
from onrecord.gateway.effects import (
    Append,
    Ask,
    Check,
    Effect,
    Flow,
    T,
    Transmit,
    answered,
    run_async,
)
from onrecord.gateway.outcomes import AlreadyAttempted, Outcome
from onrecord.gateway.outgoing import DRAIN, Sender, Stopped, course_of, doubted, resumed
from onrecord.gateway.platform import AsyncPlatform, Found, Request
from onrecord.gateway.sending import Course
from onrecord.gateway.standing import placeholder_of
from onrecord.transcript.events import Target
from onrecord.transcript.leases import Lease

if TYPE_CHECKING:
    from onrecord.gateway.recovery import Send, Settle
    from onrecord.transcript.log import TranscriptLog

__all__ = ["AlreadyAttempted", "AsyncDelivery", "AsyncOutbox", "Outcome", "Stopped"]


class AsyncDelivery:
    """As `Delivery`, awaited."""

    def __init__(self, outbox: AsyncOutbox, course: Course, lease: Lease | None) -> None:
        self._outbox = outbox
        self._course = course
        self._lease = lease
        self._last = float("-inf")

    @property
    def id(self) -> str:
        """Return the delivery's name."""
        return self._course.delivery

    @property
    def outcome(self) -> Outcome:
        """Return how it stands."""
        return self._course.outcome()

    async def write(self, chunk: str) -> None:
        """Take a chunk; what is ready goes out at the platform's pace."""
        due = time.monotonic() - self._last >= self._course.abilities.interval
        before = self._course.text
        await self._run(self._course.write(chunk, due=due))
        if self._course.text != before:
            self._last = time.monotonic()

    async def finish(self) -> Outcome:
        """Send the rest and confirm."""
        return await self._run(self._course.finish())

    async def replace(self, text: str) -> Outcome:
        """Make what is shown read `text`: a correction, a last pass. See `Course.replace`."""
        return await self._run(self._course.replace(text))

    async def _run(self, flow: Flow[T]) -> T:
        try:
            return await run_async(flow, self._perform)
        except BaseException as error:
            await run_async(self._course.leave(error), self._perform)
            raise

    async def _perform(self, effect: Effect) -> object:
        return await self._outbox.perform(effect, self._course.session, self._lease)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            await run_async(self._course.leave(error), self._perform)
        elif self._course.state == "open":
            await self.finish()


class AsyncOutbox(Sender[AsyncPlatform]):
    """As `Outbox`, awaited. A cancelled sender waits `drain` seconds for its request's answer."""

    def __init__(
        self,
        log: TranscriptLog,
        platform: AsyncPlatform,
        *,
        writer: str = "gateway",
        tries: int = TRIES,
        drain: float = DRAIN,
    ) -> None:
        super().__init__(log, platform, writer=writer, tries=tries)
        self._drain = drain

    async def begin(
        self,
        session: str,
        target: Target,
        *,
        turn: str | None = None,
        message: str | None = None,
        delivery: str | None = None,
        kind: str = "answer",
        lease: Lease | None = None,
        into: str | None = None,
        placeholder: str | None = None,
    ) -> AsyncDelivery:
        """Begin a reply. See `Outbox.begin`."""
        course = course_of(
            self, session, target, turn=turn, message=message, delivery=delivery, kind=kind,
            into=into,
        )  # fmt: skip
        if placeholder is not None:
            notice = placeholder_of(delivery or message or course.delivery)
            put = await self.send(
                session, target, placeholder, turn=turn, delivery=notice, kind="notice", lease=lease
            )
            if put.delivered and put.platform_messages:
                course.shown = [Shown(0, put.platform_messages[0])]
        return AsyncDelivery(self, course, lease)

    async def send(self, session: str, target: Target, text: str, **about: Any) -> Outcome:
        """Send a whole text, split where the platform's limit asks for it. `about`: as `begin`."""
        reply = await self.begin(session, target, **about)
        reply._course.waiting_text = text
        return await reply.finish()

    async def notice(self, session: str, target: Target, text: str, **about: Any) -> Outcome:
        """Send what isn't the reply: a status line, labelled reasoning."""
        return await self.send(session, target, text, kind="notice", **about)

    async def resume(self, plan: Send | Settle, lease: Lease | None = None) -> Outcome:
        """Send what recovery found. See `Outbox.resume`."""
        reply = AsyncDelivery(self, resumed(self, plan), lease or plan.lease)
        await asyncio.sleep(plan.pause())
        return await reply.finish()

    async def ask(self, plan: Settle) -> Found | None:
        """Ask the platform whether it took what is in doubt. See `Outbox.ask`."""
        request = doubted(self, plan)
        return None if request is None else await self.platform.lookup(request)

    async def drain(self, timeout: float = DRAIN) -> bool:  # noqa: ASYNC109 - it is the drain's own
        """Stop, and wait up to `timeout` seconds for answers; tell whether all came."""
        self.stop()
        return await asyncio.to_thread(self._wait_idle, timeout)

    async def perform(self, effect: Effect, session: str, lease: Lease | None) -> object:
        """Carry out one effect of a delivery."""
        self._refuse_new(effect)
        if isinstance(effect, Append):
            return await self.log.aio.append(
                session, *effect.events, durable=effect.durable, lease=lease
            )
        if isinstance(effect, Check):
            if lease is not None:
                await self.log.aio.leases.check(lease)
            return None
        if isinstance(effect, Transmit):
            with self._under_way():
                return await answered(self._transmit(effect.request), self._drain)
        if isinstance(effect, Ask):
            return await self.platform.lookup(effect.request)
        await asyncio.sleep(effect.seconds)
        return None

    async def _transmit(self, request: Request) -> str | None:
        if request.op == "send":
            return await self.platform.send(request)
        await self.platform.edit(request)
        return request.platform_message
