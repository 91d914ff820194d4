"""The rules of sending: what is written before a text goes out, and what after, in which order.

One `Course` is one delivery. It does nothing itself: its methods are flows (see `effects`), so that
the blocking and the async gateway follow the same rules. For each part: the attempt is durable, the
lease is checked, the stored text is sent, the outcome is recorded. Whatever fails before the request
leaves a definite failure, whatever stops it midway leaves a doubt, and both are on record.
"""

from __future__ import annotations

from datetime import timedelta
from typing import cast

from onrecord.gateway.course import Shown, Standpoint
from onrecord.gateway.effects import Append, Ask, Check, Flow, NotBegun, Transmit, Wait
from onrecord.gateway.outcomes import (
    AlreadyAttempted,
    Outcome,
    RateLimited,
    SendError,
    SendInDoubt,
    SendRefused,
    classify,
)
from onrecord.gateway.platform import Found, Request
from onrecord.gateway.splitting import split, steady
from onrecord.gateway.standing import ANSWERED, REFUSED
from onrecord.transcript import failpoints
from onrecord.transcript.errors import OnRecordError
from onrecord.transcript.events import (
    DeliveryAttempted,
    Event,
    StreamChunkDelivered,
)
from onrecord.transcript.recorded import Recorded

FIRST_PAUSE = 0.2
"""Seconds before the second try; doubled with each."""


class Course(Standpoint):
    """One delivery under way: see `Standpoint` for what it knows, here for what it does."""

    def write(self, chunk: str, *, due: bool = True) -> Flow[None]:
        """Take a chunk of a stream, and send what is ready if `due`."""
        self.waiting_text += chunk
        if not due or self.state != "open" or self.abilities.streaming == "whole":
            return
        ready = steady(self.waiting_text)
        if self.waiting_text[:ready].strip():
            yield from self._place(ready)

    def finish(self) -> Flow[Outcome]:
        """Send what is left and confirm the delivery."""
        if self.state == "open" and self.waiting_text.strip():
            self.finishing = True
            yield from self._place(len(self.waiting_text))
        elif self.state == "open" and self.text:
            self.waiting_text, self.state = "", "delivered"
            self._let_go()
            yield Append((self._confirmation(self._now()),), durable=False)
        elif self.state == "open":
            self.state = "empty"
        return self.outcome()

    def leave(self, original: BaseException) -> Flow[None]:
        """Say what was taken and isn't said yet, as `original` passes by."""
        held = self._let_go()
        if held:
            try:
                yield Append(held, durable=False)
            except OnRecordError as error:
                original.add_note(f"the outcome could not be recorded: {error}")

    def replace(self, text: str) -> Flow[Outcome]:
        """Make the platform's messages read `text`: a longer text goes on, another starts over.

        Raise ValueError, before anything is sent, where the platform can't: it has no edits, or
        `text` is blank or needs fewer messages than are shown.
        """
        if self.state not in ("open", "delivered") or not self.text:
            raise ValueError(f"delivery {self.delivery!r} is {self.state}: nothing stands to edit")
        if not text.strip():
            raise ValueError("an edit to blank text; platforms refuse it")
        self.waiting_text = ""
        if text == self.text:
            return (yield from self.finish()) if self.state == "open" else self.outcome()
        self.state = "open"
        same = _common(self.text, text)
        if same == len(self.text):
            self.waiting_text, self.finishing = text[same:], True
            yield from self._place(len(self.waiting_text), edit=True)
            return self.outcome()
        return (yield from self._revise(text, _changed_from(text, same)))

    def _place(self, ready: int, *, edit: bool = False) -> Flow[None]:
        """Send the first `ready` code points of what waits, each message's part by itself."""
        new, kept = self.waiting_text[:ready], self.waiting_text[ready:]
        edits = edit or self.abilities.streaming == "edit"
        start = self.shown[-1].start if edits and self.shown else len(self.text)
        shown = len(self.text) - start
        pieces = split(
            self.text[start:] + new, self.abilities.limit, self.abilities.count, at_least=shown
        )
        for number, piece in enumerate(pieces):
            grows = edits and bool(self.shown) and number == 0
            part = piece[shown:] if grows else piece
            last = self.finishing and number + 1 == len(pieces)
            if self.text:
                failpoints.hit("between-edits" if grows else "between-parts")
            if part and not (yield from self._part(part, start if grows else None, last=last)):
                break
            new = new[len(part) :]
        self.waiting_text = new + kept

    def _revise(self, text: str, changed: int) -> Flow[Outcome]:
        """Change text that was sent: the next attempt, from the first changed offset."""
        first = max((n for n, s in enumerate(self.shown) if s.start <= changed), default=0)
        start = self.shown[first].start
        pieces = split(text[start:], self.abilities.limit, self.abilities.count)
        if first + len(pieces) < len(self.shown) or not self._can_edit(first):
            raise ValueError(
                "the new text leaves a message empty, or the platform gave no id to edit"
            )
        # Where the first message is to end earlier than it did, its new end is what changes first.
        changed = min(changed, start + _changed_from(pieces[0], len(pieces[0])))
        before, self.text = self.text, text[:changed]
        self.attempt += 1
        self.finishing = False
        # The last part's outcome says the revision too: a crash between the two would show a text
        # that was replaced as one that stands.
        self.revises = True
        for number, piece in enumerate(pieces):
            at = first + number
            part = piece[changed - start :] if number == 0 else piece
            if at < len(self.shown) and number:
                self.shown[at].start = len(self.text)
            edits = self.shown[at] if at < len(self.shown) else None
            last = number + 1 == len(pieces)
            start_of = edits.start if edits else None
            if not (yield from self._part(part, start_of, edits, last=last)):
                self.waiting_text = text[len(self.text) :]
                self.text = before if number == 0 else self.text
                self.revises = False
                return self.outcome()
        self.revises = False
        return self.outcome()

    def waiting_request(self) -> tuple[str, Request]:
        """Return what waits as the one request that it was, with the digest of its bytes."""
        edited = self.shown[-1] if self.abilities.streaming == "edit" and self.shown else None
        start = edited.start if edited else None
        event, request = self._attempt(self.waiting_text, len(self.text), start, edited)
        return event.wire or "", request

    def _can_edit(self, first: int) -> bool:
        return all(s.platform_message for s in self.shown[first:])

    def _part(
        self, part: str, start: int | None, edits: Shown | None = None, *, last: bool = False
    ) -> Flow[bool]:
        """Send one part until it is taken or given up; tell whether it was taken.

        `start`: where the message begins that it is an edit of; None for a message of its own.
        `last`: nothing follows, so that its outcome confirms the delivery.
        """
        shown = edits or (self.shown[-1] if start is not None else None)
        offset = len(self.text)
        for number in range(self.tries):
            event, request = self._attempt(part, offset, start, shown)
            stored = yield from self._record(event)
            error = yield from self._transmit(event, request)
            if isinstance(error, SendError):
                again = yield from self._failed(event, request, error, number)
                known = again.platform_message or "" if isinstance(again, Found) else None
            else:
                again, known = False, error
            if known is not None:
                yield from self._taken(stored, known, shown, last=last)
                return True
            if not again:
                return False
            self.attempt += 1
        return False

    def _record(self, event: DeliveryAttempted) -> Flow[str]:
        """Make the attempt durable; return the stored text. Any error means: nothing is sent."""
        try:
            earlier = self._let_go(event)
            records: tuple[Recorded, ...] = yield Append((*earlier, event))
        except (OnRecordError, NotBegun):
            raise
        except BaseException as stop:
            # Once begun the append completes, so the attempt may be there: nothing of it was sent.
            yield from self._note(stop, self._failure(event, "stopped before it was sent"))
            raise
        stored = cast("DeliveryAttempted", records[-1].event)
        if stored.at != event.at:
            raise AlreadyAttempted(
                f"delivery {event.delivery!r}, attempt {event.attempt}, offset {event.offset} was "
                f"attempted at {stored.at}; nothing was sent now, ask recovery what is known of it",
                session=self.session, delivery=event.delivery,
            )  # fmt: skip
        return stored.text

    def _transmit(self, event: DeliveryAttempted, request: Request) -> Flow[str | SendError]:
        try:
            yield Check()
        except BaseException as error:
            yield from self._note(error, self._failure(event, f"not sent: {type(error).__name__}"))
            raise
        try:
            for name in ("attempted", "terminated", "stopped"):
                failpoints.hit(name)
            if self.resumed:
                failpoints.hit("recovery-sending")
            answer: str | None = yield Transmit(request)
            failpoints.hit("answer-read")
        except Exception as error:
            known = classify(error)
            if known is None:
                yield from self._note(error, self._failure(event, _say(error), definite=False))
                raise
            if known is not error:
                known.__cause__ = error
            return known
        except BaseException as stop:
            yield from self._note(stop, self._failure(event, _say(stop), definite=False))
            raise
        return answer or ""

    def _taken(
        self, stored: str, platform_message: str, shown: Shown | None, *, last: bool
    ) -> Flow[None]:
        edits = shown is not None
        if shown is None:
            shown = Shown(len(self.text), None)
            self.shown.append(shown)
        shown.platform_message = platform_message or shown.platform_message
        self.text += stored
        now = self._now()
        if last:
            self.state = "delivered"
            outcomes: tuple[Event, ...] = (self._confirmation(now),)
            self._let_go()
            if self.revises:
                outcomes = (self._revised(now), *outcomes)
        else:
            chunk = StreamChunkDelivered(
                delivery=self.delivery, through=len(self.text), attempt=self.attempt,
                platform_message=shown.platform_message, at=now, writer=self.writer,
            )  # fmt: skip
            if edits and not self.revises:
                self._hold(chunk, now)
                return
            outcomes = (*self._let_go(), chunk)
        yield Append(outcomes, durable=False)
        if last:
            failpoints.hit("confirmed")

    def _failed(
        self, event: DeliveryAttempted, request: Request, error: SendError, number: int
    ) -> Flow[bool | Found]:
        """Record a failure; tell whether to try again, or what a lookup found."""
        self.error, last = error, number + 1 >= self.tries
        if isinstance(error, RateLimited):
            until = self._now() + timedelta(seconds=error.retry_after)
            # The time is durable before the sleep, so that it survives a crash.
            late = self._failure(event, str(error), not_before=until, evidence=ANSWERED)
            yield Append((*self._let_go(), late))
            if last or error.retry_after > self.longest_wait:
                self.state, self.not_before = "waiting", until
                return False
            failpoints.hit("retry-after")
            yield Wait(error.retry_after)
            return True
        if isinstance(error, SendRefused):
            return (yield from self._refused(event, error, last=last))
        failure = self._failure(event, str(error), definite=error.definite)
        yield Append((*self._let_go(), failure), durable=False)
        repeatable, found = True, None
        if isinstance(error, SendInDoubt):
            found = yield from self._look(event, request)
            if found is not None and found.taken:
                self.evidence = "lookup"
                return found
            repeatable = found is not None or request.op == "edit" or self.abilities.idempotent
        if last or not repeatable:
            known = error.definite or found is not None
            self.state = "not_sent" if known else "in_doubt"
            return False
        yield Wait(FIRST_PAUSE * 2**number)
        return True

    def _refused(self, event: DeliveryAttempted, error: SendRefused, *, last: bool) -> Flow[bool]:
        """Record a refusal; tell whether another markup is left to try in the same delivery."""
        self.plain += 1
        over = last or not error.markup or self.plain >= len(self.abilities.formats)
        evidence = REFUSED if over else ANSWERED
        failure = self._failure(event, str(error), evidence=evidence)
        yield Append((*self._let_go(), failure), durable=False)
        failpoints.hit("markup-refused")
        self.state = "refused" if over else self.state
        return not over

    def _look(self, event: DeliveryAttempted, request: Request) -> Flow[Found | None]:
        if not self.abilities.lookup:
            return None
        try:
            found: Found | None = yield Ask(request)
        except Exception as error:
            if classify(error) is None:
                raise
            return None
        if found is not None and not found.taken:
            failure = self._failure(event, "the platform doesn't have it", evidence="lookup")
            yield Append((*self._let_go(), failure))
        return found

    def _note(self, original: BaseException, event: Event) -> Flow[None]:
        """Record what is known as `original` passes by; it is never masked by a failing append."""
        self.state = "stopped"
        try:
            yield Append((*self._let_go(), event))
        except OnRecordError as error:
            original.add_note(f"the outcome could not be recorded: {error}")


def _say(error: BaseException) -> str:
    return f"{type(error).__name__}{f': {error}' if str(error) else ''} while the platform answered"


def _common(one: str, other: str) -> int:
    limit = min(len(one), len(other))
    return next((i for i in range(limit) if one[i] != other[i]), limit)


def _changed_from(text: str, same: int) -> int:
    """Return where an edit starts over: never where nothing but blank text would follow."""
    return min(same, max(len(text.rstrip()) - 1, 0))
