"""The facts of one finding: its records and rows, what the user saw, what the model gets next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from onrecord.projections.conversation import Conversation
from onrecord.projections.findings import Finding
from onrecord.projections.lines import Line
from onrecord.projections.outgoing import Outgoing
from onrecord.projections.rows import Row
from onrecord.projections.telling import quote, sentence, time_of
from onrecord.projections.turn_rows import TurnView
from onrecord.transcript.events import DeliveryConfirmed, Event, StreamChunkDelivered
from onrecord.transcript.recorded import Recorded

ROWS_TOLD = 3
"""Rows or lines that a sentence names."""

E = TypeVar("E", bound=Event)


class Case(msgspec.Struct, frozen=True):
    """A finding with what it is about. `records`: those of its turn and its own, by version."""

    finding: Finding
    conversation: Conversation
    records: Mapping[int, Recorded]

    @property
    def view(self) -> TurnView | None:
        """The turn with its rows, None where the finding is of no turn."""
        turn = self.finding.turn
        return self.conversation.view_of(turn) if turn in self.conversation.turns else None

    @property
    def lines(self) -> list[Line]:
        """The assistant's lines that the finding is about; all of the turn where it is about none."""
        lines = [] if self.view is None else self.view.lines
        versions = set(self.finding.versions)
        return [line for line in lines if line.versions & versions] or lines

    @property
    def line(self) -> Line:
        """The assistant's line that the finding is about; an empty one where there is none."""
        return next(iter(self.lines), Line(0, ""))

    @property
    def deliveries(self) -> list[Outgoing]:
        """The answers that were sent of it."""
        return [sent for sent in self.line.deliveries if sent.takes and sent.kind != "notice"]

    def own(self, kind: type[E]) -> list[tuple[int, E]]:
        """Return the finding's events of a type, each with its version."""
        found = ((v, self.records[v].event) for v in self.finding.versions if v in self.records)
        return [(version, event) for version, event in found if isinstance(event, kind)]

    def at(self, version: int) -> str:
        """Return when a record of the case was made, the time of day in UTC."""
        record = self.records.get(version)
        at = None if record is None else time_of(record)
        return f"version {version}" if at is None else f"{at:%H:%M:%S}"

    def place(self, version: int) -> str:
        """Return where a record stood in its source, in brackets, empty where it has none."""
        record = self.records.get(version)
        source = "" if record is None else record.event.imported_from
        return f" ({source})" if source else ""

    def platform_ids(self) -> str:
        """Return by which ids the platform knows what was sent, empty where there are none."""
        ids: dict[str, None] = {}
        for sent in self.deliveries:
            for version in sent.versions:
                event = self.records[version].event if version in self.records else None
                if isinstance(event, DeliveryConfirmed):
                    ids.update(dict.fromkeys(event.platform_messages))
                elif isinstance(event, StreamChunkDelivered) and event.platform_message:
                    ids[event.platform_message] = None
        return ", ".join(ids)

    def heard(self) -> int:
        """Return the version of the last event of the turn, outcomes of its deliveries too."""
        if self.view is None:
            return 0
        facts = self.view.facts
        return max(facts.last, *(v for sent in facts.deliveries.values() for v in sent.versions), 0)

    def ended(self) -> str:
        """Say how the turn ended."""
        final = None if self.view is None else self.view.facts.final
        if final is None:
            return "the turn was never finalised"
        return f"the turn ended {final[1].outcome} at {self.at(final[0])}"

    def saw(self) -> str:
        """Say what the user saw of it."""
        if self.view is None:
            return "This says nothing of what the user saw."
        if not self.view.place.tracked and not any(line.deliveries for line in self.lines):
            return "The session holds no delivery, so it isn't known what the user saw."
        told = [_seen(line) for line in self.lines if line.text.strip() or line.shown.strip()]
        lost = self._lost()
        if not told and lost:
            return "Perhaps what is lost: nothing else of this turn is on record as sent."
        if not told:
            return "No answer: nothing of this turn is on record as sent."
        also = ["Perhaps also what is lost of this turn."] if lost else []
        return " ".join([*_some(told, "lines"), *also])

    def _lost(self) -> bool:
        """Tell whether an import knows of words of this turn that nobody can read any more."""
        return any(
            fault.code == "content-unrecoverable"
            and self.conversation.turn_of_event(fault) == self.finding.turn
            for _, fault in self.conversation.source_faults
        )

    def next(self) -> str:
        """Say what of it the model gets with its next request."""
        if self.view is None:
            return "It makes no row: the model gets the session as `onrecord show` gives it."
        if self.finding.turn in self.conversation.taken_out():
            return "Nothing of this turn: compaction or rewind took it out of the model's view."
        versions = set(self.finding.versions)
        rows = [row for row in self.view.rows if versions.intersection(row.versions)]
        if not any(row.role == "assistant" for row in rows):
            said = [row for row in self.view.rows if row.role == "assistant"]
            rows = said[-1:] or rows or self.view.rows[-1:]
        calls = {call.id for row in rows for call in row.tool_calls}
        rows += [r for r in self.view.rows if r.origin == "synthetic" and r.tool_call in calls]
        if not rows:
            return "No row: nothing of it was said that a model would see."
        told = " ".join(_some([_given(row) for row in rows], "rows"))
        if any(row.delivery in ("undelivered", "partial", "in_doubt") for row in rows):
            told += " A request says so only if it is rendered with `annotate`."
        return told


def _seen(line: Line) -> str:
    """Say what the user saw of a line."""
    shown = line.shown.strip()
    if not shown:
        return sentence(f"Nothing of {quote(line.text)}")
    if line.status == "in_doubt":
        taken = max((take.taken for take in line.takes), default=0)
        sure = f"the platform took {taken} of {len(line.shown)} characters for certain"
        return f"Perhaps {quote(shown)}: {sure if taken else 'nothing is known to have arrived'}."
    if line.status == "partial":
        whole = f" of {len(line.core)}" if len(line.core) > len(shown) else ""
        return sentence(f"A beginning, {len(shown)}{whole} characters: {quote(shown)}")
    return sentence(quote(shown))


def _given(row: Row) -> str:
    """Say how the model is given a row."""
    if row.origin == "synthetic":
        return f"The {row.role} row {quote(row.text)}, which nobody said: the rules put it there."
    calls = ", ".join(f"{call.name} [{call.id}]" for call in row.tool_calls)
    what = quote(row.text) if row.text.strip() else f"that calls {calls}"
    seen = {
        "undelivered": ", as if it had been said, though the user never got it",
        "partial": ", which is what the user got",
        "in_doubt": ", as said, though that is in doubt",
        "delivered": ", as the user read it",
    }.get(row.delivery, "")
    return sentence(f"The {row.role} row {what}{seen}")


def _some(told: Sequence[str], what: str) -> Iterable[str]:
    more = len(told) - ROWS_TOLD
    return [*told[:ROWS_TOLD], *([f"And {more} more {what}."] if more > 0 else [])]
