"""Appends that wait for the same commit and say one thing: chunks of one delivery.

Chunks are joined before ids are made, so the part that is stored has the first chunk's id. Whoever
says one of the others again is answered with the part that holds its text (`offsets.holds`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onrecord.transcript.append import ANY, Append, Draft
from onrecord.transcript.events import DeliveryAttempted, Event, StreamChunkDelivered

JOINED = 16_384
"""Code points that a text may have to be joined with the next."""


class Group:
    """Appends that are written as one; most are alone."""

    __slots__ = ("appends", "drafts", "event", "texts")

    def __init__(self, append: Append) -> None:
        self.appends = [append]
        self.event = append.events[0] if len(append.events) == 1 else None
        self.texts: list[str] = []
        self.drafts: list[Draft] | None = append.drafts

    @property
    def first(self) -> Append:
        """The append that gives session, lease and expected version."""
        return self.appends[0]

    def events(self) -> Sequence[Event]:
        """Return what is to be said."""
        if len(self.appends) == 1:
            return self.first.events
        assert self.event is not None
        if self.texts:
            return (msgspec.structs.replace(self.event, text="".join(self.texts)),)
        return (self.event,)

    def takes(self, append: Append) -> bool:
        """Take another append in, if it goes on where this one ends."""
        one, two = self.event, append.events[0] if len(append.events) == 1 else None
        if one is None or type(one) is not type(two) or append.lease != self.first.lease:
            return False
        assert two is not None
        if one.id is not None or two.id is not None:
            return False
        if append.expected_version != ANY or self.first.expected_version != ANY:
            return False
        if isinstance(one, DeliveryAttempted):
            assert isinstance(two, DeliveryAttempted)
            return self._take_text(one, two, append)
        if isinstance(one, StreamChunkDelivered):
            assert isinstance(two, StreamChunkDelivered)
            return self._take_through(one, two, append)
        return False

    def _take_text(self, one: DeliveryAttempted, two: DeliveryAttempted, append: Append) -> bool:
        texts = self.texts or [one.text]
        end = one.offset + sum(map(len, texts))
        if not one.text or not two.text or two.offset != end or end - one.offset > JOINED:
            return False
        if msgspec.structs.replace(two, text=one.text, offset=one.offset) != one:
            return False
        self.texts = [*texts, two.text]
        self.appends.append(append)
        return True

    def _take_through(
        self, one: StreamChunkDelivered, two: StreamChunkDelivered, append: Append
    ) -> bool:
        if msgspec.structs.replace(two, through=one.through) != one:
            return False
        if two.through > one.through:
            self.event = two
        self.appends.append(append)
        return True


def join(appends: Sequence[Append]) -> list[Group]:
    """Return the appends in groups; those of a session stay in order."""
    if len(appends) == 1:
        return [Group(appends[0])]
    groups: list[Group] = []
    latest: dict[str, Group] = {}
    for append in appends:
        group = latest.get(append.session)
        if group is None or not group.takes(append):
            latest[append.session] = group = Group(append)
            groups.append(group)
    return groups
