"""The end of a session, folded: from a turn on that nothing later reaches back beyond.

Records go in; out come the turns that changed and what was learnt of names. An event that names
something of the turns before (`Before` knows what they named) raises Touched, and the fold begins again
at an earlier turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from onrecord.projections.conversation import Compaction, Conversation
from onrecord.projections.deliveries import DeliveryHistory, history_of
from onrecord.projections.findings import Finding, findings_of_turn, session_findings
from onrecord.projections.promise import check_reading
from onrecord.projections.promised import Reading
from onrecord.projections.stored.names import Said, names_of
from onrecord.projections.turn_rows import TurnView
from onrecord.transcript.events import ContentErased, Event, TranscriptRewound
from onrecord.transcript.recorded import Step

EVERYTHING = -1
"""As the turn that was touched: the fold begins at the session's start."""


class Touched(Exception):
    """An event speaks of a turn before the tail: of the one at `place`, or of EVERYTHING."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


class Before:
    """What was said before a tail: `known` names and their places, and how to look for another."""

    def __init__(self, known: Mapping[str, int], look: Callable[[str], int | None]) -> None:
        self._known = known
        self._look = look

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def __getitem__(self, name: str) -> int:
        return self._known[name]

    def find(self, name: str) -> int | None:
        """Return the place of a name that wasn't asked for."""
        return self._look(name)


class Cut(msgspec.Struct, frozen=True):
    """Where a fold begins: `place` turns and all records up to `version` lie before it.

    `tracked`: the session had deliveries; `generation`: the newest lease before it.
    """

    place: int = 0
    version: int = 0
    tracked: bool = False
    generation: int = 0


class Turn(msgspec.Struct, frozen=True):
    """A turn as it is stored."""

    view: TurnView
    place: int
    first_version: int
    generation: int
    clean: bool
    shown: bool
    findings: list[Finding]
    deliveries: list[DeliveryHistory]
    stored: bool
    """Some of its findings or deliveries may be stored already."""


class Tail(msgspec.Struct):
    """A session from a cut on."""

    session: str
    cut: Cut = msgspec.field(default_factory=Cut)
    version: int = 0
    generation: int = 0
    conversation: Conversation = msgspec.field(default_factory=Conversation)
    reading: Reading = msgspec.field(default_factory=Reading)
    names: dict[str, int] = msgspec.field(default_factory=dict)
    fresh: dict[str, int] = msgspec.field(default_factory=dict)
    _clean: list[int] = msgspec.field(default_factory=list)
    _soiled: set[int] = msgspec.field(default_factory=set)
    _generations: list[int] = msgspec.field(default_factory=list)
    _late: set[int] = msgspec.field(default_factory=set)
    _told: dict[int, Step] = msgspec.field(default_factory=dict)
    _out: set[str] = msgspec.field(default_factory=set)
    _changed: set[str] = msgspec.field(default_factory=set)
    _sent: set[str] = msgspec.field(default_factory=set)
    _beside: dict[str, list[Finding]] = msgspec.field(default_factory=dict)
    _stored: set[str] = msgspec.field(default_factory=set)
    _shown: dict[str, bool] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.version, self.generation = self.cut.version, self.cut.generation
        self.conversation = Conversation(first_order=self.cut.place, tracked=self.cut.tracked)

    @property
    def turns(self) -> int:
        """How many turns the session has."""
        return self.cut.place + len(self.conversation.turns)

    # --- taking records in -----------------------------------------------------------------------

    def take(self, recorded: Step, before: Before) -> None:
        """Take the next record in. `before`: names that turns before the cut said → their places."""
        event, conversation = recorded.event, self.conversation
        said = names_of(event, conversation)
        if self.cut.place:
            self._refuse(event, said, before)
        generation, turns, tracked = self.generation, self.turns, conversation.tracked
        conversation.evolve(event, recorded.version)
        self.reading.heed(event, recorded.version)
        self.version = recorded.version
        if conversation.tracked and not tracked and self.cut.place:
            raise Touched(EVERYTHING)  # rows say `untracked` until the first delivery
        if self.turns > turns:
            said = self._began(turns, generation, said, before)
        self._link(said)
        if recorded.generation:
            if recorded.generation < generation:
                self._late.add(recorded.version)
            self.generation = max(generation, recorded.generation)
        delivery = getattr(event, "delivery", None)
        if delivery is not None:
            self._told[recorded.version] = recorded
            self._sent.add(delivery)
            if event.conflicts_with is not None and delivery in conversation.deliveries:
                self._changed.add(
                    conversation.deliveries[delivery].turn
                )  # its history, not its rows

    def _began(self, turns: int, generation: int, said: Said, before: Before) -> Said:
        """Note that a turn began; it may be called otherwise than the event said (`t1+`)."""
        self._clean.append(turns)
        self._generations.append(generation)
        name = "n" + next(reversed(self.conversation.turns))
        if name in said.shared:
            return said
        taken = before.find(name) if self.cut.place and name not in self.names else None
        if taken is not None and taken < self.cut.place:
            raise Touched(taken)  # it has to be called otherwise: the name is another turn's
        return said._replace(shared=(*said.shared, name))

    def skip(self, version: int) -> None:
        """Go on without a record that was set aside."""
        self.version = version

    def _refuse(self, event: Event, said: Said, before: Before) -> None:
        """Raise Touched if the event speaks of what lies before the cut."""
        if isinstance(event, ContentErased) and event.target.get("session"):
            raise Touched(EVERYTHING)
        names = self.names
        places = [
            before[name]
            for name in (*said.shared, *said.sought)
            if name not in names and name in before
        ]
        if places:
            whole = isinstance(event, ContentErased | TranscriptRewound)
            raise Touched(EVERYTHING if whole else min(places))

    def _link(self, said: Said) -> None:
        """Remember the names; no fold may begin between where one was first said and here."""
        shared, sought, given = said
        names = self.names
        first = here = self.cut.place + len(self.conversation.turns) - 1
        for name in shared:
            known = names.get(name)
            if known is None:
                names[name] = self.fresh[name] = here
            elif known < first:
                first = known
        for name in sought:
            first = min(first, names.get(name, here))
        for name in given:
            names[name] = self.fresh[name] = here
        while self._clean and self._clean[-1] > first:
            self._soiled.add(self._clean.pop())

    # --- what came of it -------------------------------------------------------------------------

    def resume(self) -> None:
        """Take all that is known up to here as stored, by whomever."""
        self._stored.update(self.conversation.turns)
        self.settle([])
        self._shown = {name: name not in self._out for name in self.conversation.turns}

    def settle(self, turns: Iterable[Turn]) -> None:
        """Take these turns, which are all that changed, as stored."""
        for turn in turns:
            name = turn.view.facts.name
            self._shown[name] = turn.shown
            if turn.findings or turn.deliveries:
                self._stored.add(name)
        self.conversation.take_changed()
        self._changed.clear()
        self._sent.clear()
        self.fresh.clear()
        self._soiled.clear()
        self._out = self.conversation.taken_out()
        self._beside = self._found_beside()

    def check(self) -> None:
        """Hold what changed since it was settled against the promise.

        Raise DeliveredNotProjected.
        """
        changed = self._note_changes()
        # The check knows by itself which turns were spoken in: the fold may have missed one.
        changed = changed | {
            self.reading.sent[id].own for id in self._sent if id in self.reading.sent
        }
        if not changed:
            return
        known = self.conversation.turns
        views = [self.conversation.view_of(name) for name in changed if name in known]
        full = [row for view in views for row in view.rows]
        check_reading(self.session, self.reading, full, full=True, turns=changed)
        if self._out or self.reading.undone or self.reading.summaries:
            seen = [row for view in views if view.facts.name not in self._out for row in view.rows]
            check_reading(self.session, self.reading, seen, turns=changed)

    def _note_changes(self) -> set[str]:
        conversation = self.conversation
        self._changed |= conversation.take_changed()
        if conversation.hidden or conversation.compactions:
            out = conversation.taken_out()
            self._changed |= out ^ self._out
            self._out = out
        return self._changed

    def changed(self) -> Iterator[Turn]:
        """Return the turns that are to be stored anew, in order."""
        conversation, beside = self.conversation, self._found_beside()
        names = list(conversation.turns)
        changed = self._note_changes() | {names[place - self.cut.place] for place in self._soiled}
        changed |= {
            name
            for name in beside.keys() | self._beside.keys()
            if beside.get(name) != self._beside.get(name)
        }
        clean, last = set(self._clean), self.last_counted
        for name in sorted(changed, key=lambda name: conversation.turns[name].order):
            view = conversation.view_of(name)
            place = view.facts.order
            found = findings_of_turn(self.session, view, later=place < last)
            yield Turn(
                view=view,
                place=place,
                first_version=view.facts.begun,
                generation=self._generations[place - self.cut.place],
                clean=place in clean,
                shown=name not in self._out,
                findings=found + beside.get(name, []),
                deliveries=[
                    history_of(delivery, conversation, self._told, self._late)
                    for delivery in view.facts.deliveries.values()
                ],
                stored=name in self._stored,
            )

    def newly_shown(self, turns: Iterable[Turn]) -> tuple[int, int]:
        """Return how many more turns are shown with these, and the sum of their places."""
        count = places = 0
        for turn in turns:
            step = int(turn.shown) - int(self._shown.get(turn.view.facts.name, False))
            count, places = count + step, places + step * turn.place
        return count, places

    def _found_beside(self) -> dict[str, list[Finding]]:
        """Return orphans and contradictions by turn; those of none stand with the last before them."""
        turns = self.conversation.turns
        beside: dict[str, list[Finding]] = {}
        for finding in session_findings(self.session, self.conversation):
            turn = finding.turn
            if turn not in turns:
                begun = [n for n in turns if turns[n].begun <= finding.versions[0]]
                turn = begun[-1] if begun else next(iter(turns), "")
            beside.setdefault(turn, []).append(finding)
        beside.pop("", None)
        return beside

    @property
    def last_counted(self) -> int:
        """The place of the last turn that counts; -1 if there is none in the tail."""
        turns = self.conversation.turns.values()
        return next((facts.order for facts in reversed(turns) if facts.counts), -1)

    @property
    def next_cut(self) -> int:
        """The place of the latest turn at which a fold may begin: one that nothing reaches behind,
        and not after the last one that counts, whose rows change when the next begins.
        """
        last = self.last_counted
        return next((place for place in reversed(self._clean) if place <= last), self.cut.place)

    @property
    def compaction(self) -> Compaction | None:
        """The newest compaction of the tail that holds; raise Touched if one was undone.

        Which summary stands then, and for which turns, is told by the whole session alone.
        """
        if self.cut.place and any(c.void for c in self.conversation.compactions):
            raise Touched(EVERYTHING)
        return self.conversation.compaction()
