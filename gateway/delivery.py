"""What goes out: attempted on record, then sent, then its outcome on record.

    outbox = Outbox(log, platform)
    outcome = outbox.send(session, target, text, message=message, lease=lease)

    with outbox.begin(session, target, turn=turn, message=message, lease=lease) as reply:
        for chunk in chunks:
            reply.write(chunk)
    reply.outcome

What the platform does comes back as an `Outcome`; what the log refuses (LeaseLost, StorageError) is
raised, and then nothing was sent after it. `onrecord.gateway.async_delivery` is the same, awaited.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from onrecord.gateway.course import TRIES, Shown
from onrecord.gateway.effects import Append, Ask, Check, Effect, Flow, T, Transmit, run
from onrecord.gateway.outcomes import AlreadyAttempted, Outcome
from onrecord.gateway.outgoing import DRAIN, Sender, Stopped, course_of, doubted, resumed
from onrecord.gateway.platform import Found, Platform, Request
from onrecord.gateway.sending import Course
from onrecord.gateway.standing import placeholder_of
from onrecord.transcript.events import Target
from onrecord.transcript.leases import Lease

if TYPE_CHECKING:
    from onrecord.gateway.recovery import Send, Settle
    from onrecord.transcript.log import TranscriptLog

__all__ = ["AlreadyAttempted", "Delivery", "Outbox", "Outcome", "Stopped"]


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
        """Make what is shown read `text`: a correction, a last pass. See `Course.replace`."""
        return self._run(self._course.replace(text))

    def _run(self, flow: Flow[T]) -> T:
        try:
            return run(flow, self._perform)
        except BaseException as error:
            run(self._course.leave(error), self._perform)
            raise

    def _perform(self, effect: Effect) -> object:
        return self._outbox.perform(effect, self._course.session, self._lease)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A stream that broke isn't confirmed: what was shown of it is on record as it is.
        if error is not None:
            run(self._course.leave(error), self._perform)
        elif self._course.state == "open":
            self.finish()


class Outbox(Sender[Platform]):
    """Sends for a gateway, blocking. Safe to share between threads, one delivery a thread."""

    def __init__(
        self, log: TranscriptLog, platform: Platform, *, writer: str = "gateway", tries: int = TRIES
    ) -> None:
        super().__init__(log, platform, writer=writer, tries=tries)

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
        course = course_of(
            self, session, target, turn=turn, message=message, delivery=delivery, kind=kind,
            into=into,
        )  # fmt: skip
        if placeholder is not None:
            notice = placeholder_of(delivery or message or course.delivery)
            put = self.send(
                session, target, placeholder, turn=turn, delivery=notice, kind="notice", lease=lease
            )
            if put.delivered and put.platform_messages:
                course.shown = [Shown(0, put.platform_messages[0])]
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
        reply = Delivery(self, resumed(self, plan), lease or plan.lease)
        time.sleep(plan.pause())
        return reply.finish()

    def ask(self, plan: Settle) -> Found | None:
        """Ask the platform whether it took what is in doubt; None where it can't be known.

        Then decide: `plan.confirm(found.platform_message)`, or `plan.refute()` and send it.
        """
        request = doubted(self, plan)
        return None if request is None else self.platform.lookup(request)

    def drain(self, timeout: float = DRAIN) -> bool:
        """Stop, and wait up to `timeout` seconds for answers; tell whether all came."""
        self.stop()
        return self._wait_idle(timeout)

    def perform(self, effect: Effect, session: str, lease: Lease | None) -> object:
        """Carry out one effect of a delivery."""
        self._refuse_new(effect)
        if isinstance(effect, Append):
            return self.log.append(session, *effect.events, durable=effect.durable, lease=lease)
        if isinstance(effect, Check):
            if lease is not None:
                self.log.leases.check(lease)
            return None
        if isinstance(effect, Transmit):
            with self._under_way():
                return self._transmit(effect.request)
        if isinstance(effect, Ask):
            return self.platform.lookup(effect.request)
        time.sleep(effect.seconds)
        return None

    def _transmit(self, request: Request) -> str | None:
        if request.op == "send":
            return self.platform.send(request)
        self.platform.edit(request)
        return request.platform_message
