"""What goes out: attempted on record, then sent, then its outcome on record.

    outbox = Outbox(log, platform)
    outcome = outbox.send(session, target, text, message=message, lease=lease)

    with outbox.begin(session, target, turn=turn, message=message, lease=lease) as reply:
        for chunk in chunks:
            reply.write(chunk)
    reply.outcome

What the platform does comes back as an `Outcome`; what the log refuses (LeaseLost, StorageError) is
raised, and then nothing was sent after it. `AsyncOutbox` is the same with `await`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from onrecord.gateway.effects import (
    Append,
    Ask,
    Check,
    Effect,
    Flow,
    T,
    Transmit,
    answered,
    run,
    run_async,
)
from onrecord.gateway.platform import AsyncPlatform, Platform, Request
from onrecord.gateway.sending import TRIES, AlreadyAttempted, Course, Outcome, Shown
from onrecord.transcript.errors import OnRecordError
from onrecord.transcript.events import Target
from onrecord.transcript.leases import Lease

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onrecord.gateway.recovery import Send, Settle
    from onrecord.transcript.log import TranscriptLog

__all__ = [
    "AlreadyAttempted",
    "AsyncDelivery",
    "AsyncOutbox",
    "Delivery",
    "Outbox",
    "Outcome",
    "Stopped",
]

DRAIN = 5.0
"""Seconds that a cancelled sender waits for the platform's answer."""


class Stopped(OnRecordError):
    """The outbox was told to stop: what was under way is on record, nothing new goes out."""

    interrupts = True


def _course(
    outbox: _Outbox,
    session: str,
    target: Target,
    *,
    turn: str | None,
    message: str | None,
    delivery: str | None,
    kind: str,
    into: str | None,
) -> Course:
    # One message goes out once: its delivery has the same name in every process.
    name = delivery or (f"{message}/out" if message else uuid4().hex)
    return Course(
        session, name, target, outbox.platform.abilities, outbox.platform.render, turn, message, kind,
        outbox.writer, outbox.tries, shown=[Shown(0, into)] if into else [],
    )  # fmt: skip


def _resumed(outbox: _Outbox, plan: Send | Settle) -> Course:
    course = Course(
        plan.session, plan.delivery, plan.target, outbox.platform.abilities, outbox.platform.render,
        plan.turn, plan.message, plan.kind, outbox.writer, outbox.tries, text=plan.taken,
        attempt=plan.attempt, waiting_text=plan.text, resumed=True,
        shown=[Shown(start, name) for start, name in plan.shown],
    )  # fmt: skip
    formats = course.abilities.formats
    course.plain = formats.index(plan.format) if plan.format in formats else len(formats) - 1
    return course


class _Outbox:
    """What both outboxes are made of."""

    platform: Platform | AsyncPlatform

    def __init__(self, log: TranscriptLog, *, writer: str, tries: int) -> None:
        self.log = log
        self.writer = writer
        self.tries = tries
        self._stopped = False
        self._busy = 0
        self._idle = threading.Condition()

    def stop(self) -> None:
        """Let what is under way be answered, and begin nothing new. Safe in a signal handler."""
        self._stopped = True

    @property
    def busy(self) -> int:
        """Return how many requests wait for the platform's answer."""
        return self._busy

    def _refuse_new(self, effect: Effect) -> None:
        if self._stopped and isinstance(effect, Append) and any(e.intent for e in effect.events):
            raise Stopped("the outbox is stopped; what isn't sent yet waits for recovery")

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        with self._idle:
            self._busy += 1
        try:
            yield
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()


class Delivery:
    """A reply that is being written, chunk by chunk. A context manager: leaving it finishes it."""

    def __init__(self, outbox: Outbox, course: Course, lease: Lease | None) -> None:
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

    def write(self, chunk: str) -> None:
        """Take a chunk; what is ready goes out at the platform's pace."""
        due = time.monotonic() - self._last >= self._course.abilities.interval
        before = self._course.text
        self._run(self._course.write(chunk, due=due))
        if self._course.text != before:
            self._last = time.monotonic()

    def finish(self) -> Outcome:
        """Send the rest and confirm."""
        return self._run(self._course.finish())

    def replace(self, text: str) -> Outcome:
        """Make what is shown read `text` (a correction, a last pass of markup). See Course.replace."""
        return self._run(self._course.replace(text))

    def _run(self, flow: Flow[T]) -> T:
        return run(
            flow, lambda effect: self._outbox.perform(effect, self._course.session, self._lease)
        )

    def __enter__(self) -> Delivery:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A stream that broke isn't confirmed: what was shown of it is on record as it is.
        if error is None and self._course.state == "open":
            self.finish()


class Outbox(_Outbox):
    """Sends for a gateway, blocking. Safe to share between threads, one delivery a thread."""

    platform: Platform

    def __init__(
        self, log: TranscriptLog, platform: Platform, *, writer: str = "gateway", tries: int = TRIES
    ) -> None:
        super().__init__(log, writer=writer, tries=tries)
        self.platform = platform

    def begin(
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
    ) -> Delivery:
        """Begin a reply. `message`: the produced message's id, known before or after.

        `into`: a message of the platform that the reply replaces by edits. `placeholder`: a text to
        send first for that, as a notice: on platforms without idempotent sends the reply then goes
        out by edits alone, which may be repeated.
        """
        if placeholder is not None:
            name = f"{delivery or message}/placeholder" if delivery or message else None
            shown = self.send(
                session, target, placeholder, turn=turn, delivery=name, kind="notice", lease=lease
            )
            into = (
                shown.platform_messages[0] if shown.delivered and shown.platform_messages else None
            )
        course = _course(
            self,
            session,
            target,
            turn=turn,
            message=message,
            delivery=delivery,
            kind=kind,
            into=into,
        )
        return Delivery(self, course, lease)

    def send(self, session: str, target: Target, text: str, **about: Any) -> Outcome:
        """Send a whole text, split where the platform's limit asks for it. `about`: as `begin`."""
        reply = self.begin(session, target, **about)
        reply._course.waiting_text = text
        return reply.finish()

    def notice(self, session: str, target: Target, text: str, **about: Any) -> Outcome:
        """Send what isn't the reply: a status line, labelled reasoning."""
        return self.send(session, target, text, kind="notice", **about)

    def resume(self, plan: Send | Settle, lease: Lease | None = None) -> Outcome:
        """Send what recovery found unsent, or again what is in doubt: same delivery, next attempt.

        A platform's retry-after is waited for first.
        """
        reply = Delivery(self, _resumed(self, plan), lease or plan.lease)
        time.sleep(plan.pause())
        return reply.finish()

    def drain(self, timeout: float = DRAIN) -> bool:
        """Stop, and wait up to `timeout` seconds for answers; tell whether all came."""
        self.stop()
        with self._idle:
            return self._idle.wait_for(lambda: self._busy == 0, timeout)

    def perform(self, effect: Effect, session: str, lease: Lease | None) -> object:
        """Carry out one effect of a delivery."""
        self._refuse_new(effect)
        if isinstance(effect, Append):
            return self.log.append(session, *effect.events, durable=effect.durable, lease=lease)
        if isinstance(effect, Check):
            return self.log.leases.check(lease) if lease else None
        if isinstance(effect, Transmit):
            with self._under_way():
                return self._transmit(effect.request)
        if isinstance(effect, Ask):
            return self.platform.lookup(effect.request)
        return time.sleep(effect.seconds)

    def _transmit(self, request: Request) -> str | None:
        if request.op == "send":
            return self.platform.send(request)
        self.platform.edit(request)
        return request.platform_message


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
        """Make what is shown read `text` (a correction, a last pass of markup). See Course.replace."""
        return await self._run(self._course.replace(text))

    async def _run(self, flow: Flow[T]) -> T:
        return await run_async(
            flow, lambda effect: self._outbox.perform(effect, self._course.session, self._lease)
        )

    async def __aenter__(self) -> AsyncDelivery:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and self._course.state == "open":
            await self.finish()


class AsyncOutbox(_Outbox):
    """As `Outbox`, awaited. A cancelled sender waits `drain` seconds for the answer to its request."""

    platform: AsyncPlatform

    def __init__(
        self,
        log: TranscriptLog,
        platform: AsyncPlatform,
        *,
        writer: str = "gateway",
        tries: int = TRIES,
        drain: float = DRAIN,
    ) -> None:
        super().__init__(log, writer=writer, tries=tries)
        self.platform = platform
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
        if placeholder is not None:
            name = f"{delivery or message}/placeholder" if delivery or message else None
            shown = await self.send(
                session, target, placeholder, turn=turn, delivery=name, kind="notice", lease=lease
            )
            into = (
                shown.platform_messages[0] if shown.delivered and shown.platform_messages else None
            )
        course = _course(
            self,
            session,
            target,
            turn=turn,
            message=message,
            delivery=delivery,
            kind=kind,
            into=into,
        )
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
        reply = AsyncDelivery(self, _resumed(self, plan), lease or plan.lease)
        await asyncio.sleep(plan.pause())
        return await reply.finish()

    async def drain(self, timeout: float = DRAIN) -> bool:  # noqa: ASYNC109 - it is the drain's own
        """Stop, and wait up to `timeout` seconds for answers; tell whether all came."""
        self.stop()
        end = time.monotonic() + timeout
        while self._busy and time.monotonic() < end:
            await asyncio.sleep(0.01)
        return self._busy == 0

    async def perform(self, effect: Effect, session: str, lease: Lease | None) -> object:
        """Carry out one effect of a delivery."""
        self._refuse_new(effect)
        if isinstance(effect, Append):
            return await self.log.aio.append(
                session, *effect.events, durable=effect.durable, lease=lease
            )
        if isinstance(effect, Check):
            return await asyncio.to_thread(self.log.leases.check, lease) if lease else None
        if isinstance(effect, Transmit):
            with self._under_way():
                return await answered(self._transmit(effect.request), self._drain)
        if isinstance(effect, Ask):
            return await self.platform.lookup(effect.request)
        return await asyncio.sleep(effect.seconds)

    async def _transmit(self, request: Request) -> str | None:
        if request.op == "send":
            return await self.platform.send(request)
        await self.platform.edit(request)
        return request.platform_message
