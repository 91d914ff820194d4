"""What was sent, over all sessions of a log: to whom, when, with which outcome.

    for sent in delivered(log, Wanted(platform="telegram"), whole, jobs=2): ...

A session that is stored up to its newest record is read there, some turns at a time. Any other is folded
from its records, unless it has so many that it is stored first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import TypeVar

import msgspec

from onrecord.projections.cold import fold
from onrecord.projections.deliveries import DeliveryHistory, Histories
from onrecord.projections.stored.places import (
    Place,
    has_since,
    is_on,
    places,
    reading,
    started,
    stored_in,
)
from onrecord.projections.sweeping import Progress, sweep
from onrecord.transcript.events import SessionStarted, Target
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage.journal import microseconds

T = TypeVar("T")


class Sent(DeliveryHistory, kw_only=True, omit_defaults=True):
    """A delivery and whose it is. `user`: of the session, else who wrote what is answered; `target` is
    that of the session where the delivery names none.
    """

    session: str
    user: str = ""

    @property
    def at(self) -> datetime | None:
        """When it was attempted first, by the log's clock; else when it was first heard of."""
        return self.attempts[0].at if self.attempts else self.first_at


class LeftOut(msgspec.Struct, frozen=True):
    """Records of a session that can't be read: what was sent may be among them."""

    session: str
    versions: list[int]


class Wanted(msgspec.Struct, frozen=True):
    """Which deliveries are wanted: first attempted at `since` or later and before `until`, to a platform
    and a chat; with one of these outcomes, of one of these kinds, where any are named.
    """

    since: datetime | None = None
    until: datetime | None = None
    platform: str | None = None
    chat: str | None = None
    statuses: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()

    def fits(self, sent: Sent) -> bool:
        """Tell whether a delivery is wanted."""
        at, target = sent.at, sent.target
        return (
            (not self.statuses or sent.status in self.statuses)
            and (not self.kinds or sent.kind in self.kinds)
            and (self.platform is None or (target is not None and target.platform == self.platform))
            and (self.chat is None or (target is not None and target.chat == self.chat))
            and (self.since is None or (at is not None and at >= self.since))
            and (self.until is None or (at is not None and at < self.until))
        )


Tell = Callable[[Sent], T]
"""Makes of a delivery what is told of it, in whichever process it is read: a module's function."""


def whole(sent: Sent) -> Sent:
    """Tell all of a delivery."""
    return sent


def delivered(
    log: TranscriptLog,
    wanted: Wanted,
    tell: Tell[T],
    *,
    session: str | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Iterator[T | LeftOut]:
    """Give what is told of the deliveries of all sessions, or of one: session by session, and in it by
    first attempt; in one of many records by turn. Raise StorageError.
    """
    ask = partial(told_of, wanted=wanted, tell=tell)
    found = places(log, session)
    yield from sweep(log, found, ask, jobs=jobs, in_parts=True, progress=progress)


def told_of(
    log: TranscriptLog, place: Place, wanted: Wanted, tell: Tell[T]
) -> Iterator[T | LeftOut]:
    """Give what is told of a session's deliveries that are wanted."""
    platform = wanted.platform
    if platform is not None and not reading(log, place, lambda c: is_on(c, place, platform)):
        return
    since = None if wanted.since is None else microseconds(wanted.since)
    if since is not None and not reading(log, place, lambda c: has_since(c, place, since)):
        return
    aside, histories = _histories(log, place)
    if aside:
        yield LeftOut(place.name, sorted(aside))
    begun = reading(log, place, lambda c: started(c, place))
    for history in histories:
        sent = _sent(place, history, begun)
        if wanted.fits(sent):
            yield tell(sent)


def _histories(log: TranscriptLog, place: Place) -> tuple[Iterable[int], Iterable[DeliveryHistory]]:
    if place.is_stored or place.is_long:
        found = stored_in(log).sent(place.name)
        if found is not None:
            aside, histories = found
            if place.is_long:
                return aside, histories
            return aside, sorted(histories, key=lambda history: history.versions[0])
    folded, aside = fold(log, place, Histories)
    return aside, folded.told()


def _sent(place: Place, history: DeliveryHistory, begun: SessionStarted | None) -> Sent:
    target, user = history.target, ", ".join(history.senders)
    if begun is not None:
        user = begun.user or user
        if target is None and (begun.platform or begun.chat):
            target = Target(platform=begun.platform, chat=begun.chat)
    fields = {name: getattr(history, name) for name in history.__struct_fields__}
    return Sent(**{**fields, "session": place.name, "user": user, "target": target})
