"""What the blocking and the async outbox are both made of."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import uuid4

from onrecord.gateway.course import Shown
from onrecord.gateway.effects import Append, Effect
from onrecord.gateway.platform import AsyncPlatform, Platform, Request
from onrecord.gateway.sending import Course
from onrecord.transcript.errors import OnRecordError
from onrecord.transcript.events import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onrecord.gateway.recovery import Send, Settle
    from onrecord.transcript.log import TranscriptLog

P = TypeVar("P", bound=Platform | AsyncPlatform)

DRAIN = 5.0
"""Seconds that a cancelled sender waits for the platform's answer."""


class Stopped(OnRecordError):
    """The outbox was told to stop: what was under way is on record, nothing new goes out."""

    interrupts = True


def course_of(
    outbox: Sender[Any],
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
        session, name, target, outbox.platform.abilities, outbox.platform.render, turn, message,
        kind, outbox.writer, outbox.tries, shown=[Shown(0, into)] if into else [],
    )  # fmt: skip


def resumed(outbox: Sender[Any], plan: Send | Settle) -> Course:
    if plan.target is None:
        raise ValueError(
            f"delivery {plan.delivery!r}: the log doesn't say where it goes; "
            "give dataclasses.replace(plan, target=…)"
        )
    course = Course(
        plan.session, plan.delivery, plan.target, outbox.platform.abilities, outbox.platform.render,
        plan.turn, plan.message, plan.kind, outbox.writer, outbox.tries, text=plan.taken,
        attempt=plan.attempt, waiting_text=plan.text, resumed=True,
        shown=[Shown(start, name) for start, name in plan.shown], revises=plan.revises,
    )  # fmt: skip
    course.plain = sum(form in plan.formats_tried for form in course.abilities.formats)
    return course


def doubted(outbox: Sender[Any], plan: Settle) -> Request | None:
    """Return the request that is in doubt; None where it can't be made again as it was.

    A platform asked for another request would say no, and the text would go out twice.
    """
    if not outbox.platform.abilities.lookup:
        return None
    wire, request = resumed(outbox, plan).waiting_request()
    return request if wire == plan.wire else None


class Sender(Generic[P]):
    """What both outboxes are made of."""

    def __init__(self, log: TranscriptLog, platform: P, *, writer: str, tries: int) -> None:
        self.log = log
        self.platform = platform
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

    def _wait_idle(self, timeout: float) -> bool:
        with self._idle:
            return self._idle.wait_for(lambda: self._busy == 0, timeout)

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
