"""The delivery history: per delivery, what was attempted, what was taken, and what is in doubt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal

import msgspec

from onrecord.projections.conversation import Conversation
from onrecord.projections.outgoing import Outgoing, Take
from onrecord.transcript.events import (
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    DeliveryRevised,
    StreamChunkDelivered,
    Target,
)
from onrecord.transcript.recorded import Recorded, Step

Status = Literal["not_sent", "in_doubt", "partial", "delivered", "failed"]


class AttemptHistory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One attempt. `text`: as attempted, whole, of `size` code points; `taken`: those that the platform
    took.

    `refused`: it is known that something of it was not taken; `op` and `format`: how it went out.
    """

    attempt: int
    text: str
    at: datetime
    size: int = 0
    taken: int = 0
    refused: bool = False
    replaced: bool = False
    op: str | None = None
    format: str | None = None
    versions: list[int] = []


class Failure(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A send that didn't succeed. `definite`: nothing from `offset` on was taken."""

    offset: int
    reason: str
    definite: bool
    at: datetime
    version: int
    attempt: int | None = None
    not_before: datetime | None = None
    evidence: str | None = None


class DeliveryHistory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One delivery. Times are those of the log.

    `status`: `delivered` (all text was taken), `partial` (a beginning was), `in_doubt` (text was
    attempted and it isn't known whether it was taken), `failed` (nothing was taken), `not_sent` (an
    outcome without an attempt). `complete`: the platform confirmed it as a whole, last at
    `confirmed_at`. `text`: what the user may have read. `senders`: who wrote what its turn answers.
    `late`: versions of what a process wrote after it had lost the session.
    """

    delivery: str
    kind: str
    status: Status
    text: str
    turn: str = ""
    message: str = ""
    target: Target | None = None
    complete: bool = False
    deleted: bool = False
    attempts: list[AttemptHistory] = []
    failures: list[Failure] = []
    platform_messages: list[str] = []
    evidence: list[str] = []
    first_at: datetime | None = None
    last_at: datetime | None = None
    confirmed_at: datetime | None = None
    senders: list[str] = []
    late: list[int] = []
    versions: list[int] = []


class Histories:
    """A fold of a session's records into the history of each of its deliveries."""

    def __init__(self) -> None:
        self._conversation = Conversation()
        self._by_version: dict[int, Recorded | Step] = {}
        self._late: set[int] = set()
        self._generation = 0

    def take(self, recorded: Recorded | Step) -> None:
        """Take the next record in."""
        event, version, generation = recorded.event, recorded.version, recorded.generation
        self._conversation.evolve(event, version)
        if generation:
            if generation < self._generation:
                self._late.add(version)
            self._generation = max(generation, self._generation)
        if hasattr(event, "delivery"):
            self._by_version[version] = recorded

    def told(self) -> Iterator[DeliveryHistory]:
        """Give the histories, by first attempt."""
        for delivery in self._conversation.deliveries.values():
            yield history_of(delivery, self._conversation, self._by_version, self._late)


def deliveries(records: Iterable[Recorded]) -> list[DeliveryHistory]:
    """Return the history of each delivery of a session, notices among them, by first attempt."""
    histories = Histories()
    for recorded in records:
        histories.take(recorded)
    return list(histories.told())


def history_of(
    delivery: Outgoing,
    conversation: Conversation,
    by_version: Mapping[int, Recorded | Step],
    late: Collection[int] = (),
) -> DeliveryHistory:
    """Return the history of one delivery of a folded session.

    `by_version`: the delivery's records at least; `late`: versions that were written under a lease
    that another process had taken over by then.
    """
    records = [by_version[version] for version in conversation.records_of(delivery)]
    told = DeliveryHistory(
        delivery=delivery.id,
        kind=delivery.kind,
        status=_status(delivery),
        text=max((take.visible for take in delivery.takes), key=len, default=""),
        turn=delivery.turn or "",
        message=delivery.message or "",
        complete=any(take.confirmed for take in delivery.takes),
        deleted=delivery.deleted,
        first_at=records[0].recorded_at,
        last_at=records[-1].recorded_at,
        late=[recorded.version for recorded in records if recorded.version in late],
        versions=[recorded.version for recorded in records],
    )
    told.attempts = [_attempt(take, by_version) for take in delivery.takes]
    if (facts := conversation.turns.get(delivery.turn)) is not None:
        senders = (said.sender for said in facts.users.values() if said.sender)
        told.senders = list(dict.fromkeys(senders))
    for recorded in records:
        _add(told, recorded)
    return told


def _status(delivery: Outgoing) -> Status:
    live = [take for take in delivery.takes if not take.superseded]
    if not live:
        return "not_sent"
    if any(take.visible.strip() and take.taken < len(take.visible) for take in live):
        return "in_doubt"
    last = max(live, key=lambda take: (take.attempt, take.first))
    if any(take.taken >= len(take.text) and take.text for take in live) and not last.refused:
        return "delivered"
    return "partial" if any(take.taken_text.strip() for take in live) else "failed"


def _attempt(take: Take, by_version: Mapping[int, Recorded | Step]) -> AttemptHistory:
    first = by_version[take.first]
    event = first.event
    return AttemptHistory(
        attempt=take.attempt,
        text=take.text,
        at=first.recorded_at,
        size=take.size,
        taken=take.taken,
        refused=bool(take.refused) and take.taken < len(take.text),
        replaced=take.superseded,
        op=event.op if isinstance(event, DeliveryAttempted) else None,
        format=event.format if isinstance(event, DeliveryAttempted) else None,
        versions=take.versions,
    )


def _add(told: DeliveryHistory, recorded: Recorded | Step) -> None:
    event = recorded.event
    if isinstance(event, DeliveryAttempted):
        told.target = told.target or event.target
    elif isinstance(event, StreamChunkDelivered):
        _note(told.platform_messages, event.platform_message)
    elif isinstance(event, DeliveryConfirmed):
        told.confirmed_at = recorded.recorded_at
        for platform_message in event.platform_messages:
            _note(told.platform_messages, platform_message)
        _note(told.evidence, event.evidence)
    elif isinstance(event, DeliveryFailed):
        told.failures.append(
            Failure(
                offset=event.offset,
                reason=event.reason,
                definite=event.definite,
                at=recorded.recorded_at,
                version=recorded.version,
                attempt=event.attempt,
                not_before=event.not_before,
                evidence=event.evidence,
            )
        )
        _note(told.evidence, event.evidence)
    elif isinstance(event, DeliveryRevised):
        told.deleted = told.deleted or not event.text.strip()


def _note(known: list[str], value: str | None) -> None:
    if value and value not in known:
        known.append(value)
