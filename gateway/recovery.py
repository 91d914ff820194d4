"""After a restart: what was left open, what is known of it, and what the caller may decide.

    recovery = Recovery(log, owner="gateway-1")
    for plan in recovery.plans():
        match plan:
            case Begin():  ...  # a message was taken in and no turn begun: run it
            case Send():   outbox.resume(plan)      # known not sent: send it, or plan.drop()
            case Settle(): plan.leave()             # may have been taken: or plan.confirm(), …
            case Close():  plan.close()             # nothing more can come of it

`plans` writes no event. It looks only at sessions that nobody else holds, takes their lease, and gives
each turn the first thing that is to be decided; ask again after deciding. A decision is one append
with an id that follows from what is decided on, so that deciding twice, here or in another process,
adds nothing. In doubt is never sent again unless the caller says so, by `outbox.resume(plan)`.

All calls block; `onrecord.gateway.async_recovery` is for event loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID, uuid5

from onrecord.gateway.standing import BY_RECOVERY, Standing, placeholder_of, standings
from onrecord.projections.conversation import Conversation
from onrecord.projections.lines import Facts
from onrecord.projections.outgoing import Outgoing, Take
from onrecord.transcript.codec import NAMESPACE
from onrecord.transcript.errors import LeaseHeld
from onrecord.transcript.events import (
    DeliveryConfirmed,
    DeliveryFailed,
    Event,
    StreamChunkDelivered,
    Target,
    TurnFinalized,
)
from onrecord.transcript.leases import DEFAULT_TTL, Lease
from onrecord.transcript.recorded import Recorded

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog

WRITER = "gateway"


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What recovery found for a turn. `lease`: the right to act on it; renew it if that takes long."""

    session: str
    turn: str
    lease: Lease
    log: TranscriptLog = field(repr=False, compare=False)

    def close(self, outcome: str = "abandoned", text: str | None = None) -> Recorded:
        """End the turn as it stands. Raise LeaseLost if another process has it now."""
        return self._decide(
            TurnFinalized(
                turn=self.turn, outcome=outcome, text=text, writer=WRITER, at=datetime.now(UTC)
            )
        )

    def _decide(self, event: Event) -> Recorded:
        # A fact isn't refused for a stale lease, and this one must be: a neighbour may be at it.
        self.log.leases.check(self.lease)
        return self.log.append(self.session, event, lease=self.lease)[0]


@dataclass(frozen=True, kw_only=True)
class Begin(_Plan):
    """Messages were taken in and nothing was begun: run the turn. `texts`: by message id."""

    texts: Mapping[str, str]
    target: Target | None = None


@dataclass(frozen=True, kw_only=True)
class Close(_Plan):
    """The turn is open and nothing more can come of it.

    `unanswered`: tool calls whose result isn't known; don't run them again unasked.
    """

    unanswered: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Delivery(_Plan):
    """`taken`: the text that the platform has; `text`: what comes after it, with blank space kept.

    `attempt`: the number under which a sender goes on; `shown`: (offset, id) of platform messages;
    `formats_tried`: markups that the platform refused; `revises`: it changes a text that was shown.
    """

    delivery: str
    text: str
    taken: str = ""
    attempt: int = 1
    target: Target | None = None
    message: str | None = None
    kind: str = "answer"
    formats_tried: tuple[str | None, ...] = ()
    shown: tuple[tuple[int, str], ...] = ()
    not_before: datetime | None = None
    revises: bool = False

    @property
    def platform_messages(self) -> list[str]:
        """Return the platform's ids of what it has."""
        return [name for _, name in self.shown]

    def pause(self) -> float:
        """Return the seconds until the platform takes the next try."""
        if self.not_before is None:
            return 0.0
        return max(0.0, (self.not_before - datetime.now(UTC)).total_seconds())

    def _give_up(self, attempt: int, reason: str, *, definite: bool) -> Recorded:
        return self._decide(
            DeliveryFailed(
                id=_decision(self, attempt, "given up"),
                delivery=self.delivery,
                offset=len(self.taken),
                reason=reason,
                definite=definite,
                evidence=BY_RECOVERY,
                attempt=attempt,
                writer=WRITER,
                at=datetime.now(UTC),
            )
        )


@dataclass(frozen=True, kw_only=True)
class Send(_Delivery):
    """A text is known and surely not sent (`taken` empty), or only its beginning was.

    `outbox.resume(plan)` sends `text`, `drop` says that it won't be.
    """

    def drop(self, reason: str = "not sent any more after a restart") -> Recorded:
        """Decide not to send it."""
        return self._give_up(max(self.attempt - 1, 1), reason, definite=True)


@dataclass(frozen=True, kw_only=True)
class Settle(_Delivery):
    """`text` was attempted and may have been taken. Ask the platform, or leave the doubt standing.

    `doubt`: the attempt in doubt; `repeatable`: it was an edit, so that sending it again shows
    nothing twice; `wire`: the digest of the bytes that were sent, where they are known. `outbox.ask`
    looks it up where the platform can.
    """

    doubt: int
    repeatable: bool = False
    complete: bool = True
    wire: str | None = None

    def confirm(self, *platform_messages: str, evidence: str = "lookup") -> Recorded:
        """Decide that the platform has it, and on what evidence."""
        now, ident = datetime.now(UTC), _decision(self, self.doubt, "taken")
        if self.complete:
            event: Event = DeliveryConfirmed(
                id=ident, delivery=self.delivery, evidence=evidence, attempt=self.doubt,
                platform_messages=[*self.platform_messages, *platform_messages], writer=WRITER,
                at=now,
            )  # fmt: skip
        else:
            event = StreamChunkDelivered(
                delivery=self.delivery, through=len(self.taken) + len(self.text),
                attempt=self.doubt, writer=WRITER, at=now,
                platform_message=platform_messages[-1] if platform_messages else None,
            )  # fmt: skip
        return self._decide(event)

    def refute(self, evidence: str = "lookup") -> Recorded:
        """Decide that the platform never took it; it may then be sent."""
        event = DeliveryFailed(
            id=_decision(self, self.doubt, "refused"), delivery=self.delivery,
            offset=len(self.taken), reason="the platform doesn't have it", evidence=evidence,
            attempt=self.doubt, writer=WRITER, at=datetime.now(UTC),
        )  # fmt: skip
        return self._decide(event)

    def leave(self, reason: str = "the sender died before it knew") -> Recorded:
        """Decide to leave it in doubt, on record and said so."""
        return self._give_up(self.doubt, reason, definite=False)


Plan: TypeAlias = Begin | Send | Settle | Close


class Recovery:
    """Finds what a crash left. `held`: leases that this process has already, by session."""

    def __init__(
        self,
        log: TranscriptLog,
        owner: str,
        *,
        ttl: float = DEFAULT_TTL,
        held: Mapping[str, Lease] | None = None,
    ) -> None:
        self.log = log
        self.owner = owner
        self.ttl = ttl
        self.leases: dict[str, Lease] = {}
        self._held = dict(held or {})

    def plans(self, sessions: Iterable[str] | None = None) -> list[Plan]:
        """Return what is to be decided, by session and turn; all sessions unless some are named."""
        names = sessions if sessions is not None else [head.name for head in self.log.sessions()]
        return [plan for session in names for plan in self._session(session)]

    def release(self) -> None:
        """Give back the leases that `plans` took."""
        for session in list(self.leases):
            self.log.leases.release(self.leases.pop(session))

    def _session(self, session: str) -> list[Plan]:
        lease = self._held.get(session) or self.leases.get(session)
        if lease is None:
            if not self.log.leases.is_free(session, self.owner) or not self._anything(session):
                return []
            try:
                lease = self.log.leases.acquire(session, self.owner, self.ttl)
            except LeaseHeld:
                return []
            self.leases[session] = lease
        # Read under the lease: who held it before may have gone on until then.
        return list(_Reading(self.log, session, lease).plans())

    def _anything(self, session: str) -> bool:
        idle = Lease(session, self.owner, 0, datetime.now(UTC))
        return any(True for _ in _Reading(self.log, session, idle).plans())


class _Reading:
    """One session, folded, and what is to be decided in it."""

    def __init__(self, log: TranscriptLog, session: str, lease: Lease) -> None:
        self._log, self._session, self._lease = log, session, lease
        records = list(log.read(session))
        self._conversation = Conversation()
        for recorded in records:
            self._conversation.apply(recorded)
        self._standings, self._origins = standings(recorded.event for recorded in records)

    def plans(self) -> Iterator[Plan]:
        turns = [view.facts for view in self._conversation.views()]
        counted = [facts.name for facts in turns if facts.counts]
        for facts in turns:
            if facts.name in self._conversation.hidden and facts.closed:
                continue
            found: list[Settle] | list[Send] = list(self._settles(facts))
            found = found or list(self._sends(facts, counted))
            if found:
                yield from found
            elif not facts.closed:
                yield self._begin(facts) or self._close(facts)

    def _settles(self, facts: Facts) -> Iterator[Settle]:
        for delivery in facts.deliveries.values():
            standing = self._standings.get(delivery.id)
            if delivery.kind == "notice" or standing is None or standing.last is None:
                continue
            # The newest first: where it is settled, what an earlier one tried may be too.
            for take in sorted(delivery.takes, key=lambda t: (t.attempt, t.first), reverse=True):
                if take.attempt in standing.given_up or not _in_doubt(take, delivery):
                    continue
                whole = self._whole(facts, delivery)
                revises = _revises(take, delivery)
                # The message to edit has to be known, and only the last one can be gone on with.
                known = bool(standing.shown) and not (revises and len(standing.shown) > 1)
                yield Settle(
                    doubt=take.attempt, repeatable=known and _edits(take, standing),
                    text=take.visible[take.taken :], revises=revises,
                    wire=standing.last.wire if take.attempt == standing.attempt else None,
                    complete=whole is None or len(take.visible.strip()) >= len(whole.strip()),
                    **self._about(facts, standing, take.taken_text),
                )  # fmt: skip
                break

    def _sends(self, facts: Facts, counted: list[str]) -> Iterator[Send]:
        if facts.closed:
            # A turn that is over is only sent where nothing has begun since.
            completed = facts.final is not None and facts.final[1].outcome == "completed"
            if not completed or facts.name != counted[-1]:
                return
        answered = set[str]()
        for delivery in facts.deliveries.values():
            standing = self._standings.get(delivery.id)
            if delivery.kind == "notice" or standing is None or not delivery.takes:
                continue
            answered.add(delivery.message or "")
            take = max(delivery.takes, key=lambda t: (t.attempt, t.first))
            if standing.confirmed or take.attempt in standing.given_up:
                continue
            whole = self._whole(facts, delivery) or take.text
            # An earlier attempt may be the one that the platform took.
            begun = (t.taken_text for t in delivery.takes if whole.startswith(t.taken_text))
            taken = max(begun, key=len, default="")
            if whole[len(taken) :].strip() and not standing.refused:
                about = self._about(facts, standing, taken)
                yield Send(text=whole[len(taken) :], **about)
        yield from self._unattempted(facts, answered)

    def _unattempted(self, facts: Facts, answered: set[str]) -> Iterator[Send]:
        version, event = next(reversed(facts.produced.values()), (0, None))
        if event is None or event.tool_calls or not event.text.strip():
            return
        later = any(d.first > version for d in facts.deliveries.values() if d.kind != "notice")
        standing = self._standings.get(f"{event.message}/out") or Standing(f"{event.message}/out")
        tracked = bool(self._origins or self._conversation.deliveries)
        if event.message in answered or later or standing.given_up or not tracked:
            return
        standing.message = event.message
        holder = self._standings.get(placeholder_of(event.message))
        if holder is not None and holder.messages:
            standing.shown = [(0, holder.messages[0])]
        yield Send(text=event.text, **self._about(facts, standing, ""))

    def _begin(self, facts: Facts) -> Begin | None:
        said = [s for s in facts.users.values() if not s.retracted]
        if not said or facts.last > max(v for s in facts.users.values() for v in s.versions):
            return None
        if facts.produced or facts.deliveries or facts.recovered:
            return None
        return Begin(
            session=self._session, turn=facts.name, lease=self._lease, log=self._log,
            texts={s.message: s.text for s in said}, target=self._target(facts),
        )  # fmt: skip

    def _close(self, facts: Facts) -> Close:
        answered = self._conversation.calls.results.keys()
        calls = [c.id for _, event in facts.produced.values() for c in event.tool_calls]
        return Close(
            session=self._session, turn=facts.name, lease=self._lease, log=self._log,
            unanswered=tuple(call for call in calls if call not in answered),
        )  # fmt: skip

    def _about(self, facts: Facts, standing: Standing, taken: str) -> dict[str, Any]:
        return {
            "session": self._session, "turn": facts.name, "lease": self._lease, "log": self._log,
            "delivery": standing.delivery, "taken": taken, "message": standing.message,
            "attempt": _next_attempt(standing, taken), "shown": tuple(standing.shown),
            "target": standing.target or self._target(facts), "not_before": standing.not_before,
            "formats_tried": tuple(standing.formats_refused),
        }  # fmt: skip

    def _target(self, facts: Facts) -> Target | None:
        return next((self._origins[m] for m in reversed(facts.users) if m in self._origins), None)

    @staticmethod
    def _whole(facts: Facts, delivery: Outgoing) -> str | None:
        """Return the whole text where the delivery is a beginning of it."""
        found = facts.produced.get(delivery.message or "")
        if found is None:
            return None
        shown = max((take.text for take in delivery.takes), key=len, default="")
        return found[1].text if found[1].text.startswith(shown) else None


def _in_doubt(take: Take, delivery: Outgoing) -> bool:
    seen = take.visible
    if not seen[take.taken :].strip():
        return False
    return not any(other.taken_text.startswith(seen.rstrip()) for other in delivery.takes)


def _edits(take: Take, standing: Standing) -> bool:
    newest = take.attempt == standing.attempt and standing.last is not None
    return standing.last.op == "edit" if newest and standing.last else take.edit


def _revises(take: Take, delivery: Outgoing) -> bool:
    shown = (other.taken_text.rstrip() for other in delivery.takes if other is not take)
    return any(not take.visible.startswith(text) for text in shown)


def _next_attempt(standing: Standing, taken: str) -> int:
    last = standing.last
    if last is None:
        return 1
    follows = len(taken) == last.offset + len(last.text)
    return standing.attempt if follows else standing.attempt + 1


def _decision(plan: _Delivery, attempt: int, what: str) -> UUID:
    return uuid5(
        NAMESPACE, f"{what}\0{plan.session}\0{plan.delivery}\0{attempt}\0{len(plan.taken)}"
    )
