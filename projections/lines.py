"""The assistant's lines of one turn: which delivery is of which message, what was seen of it.

`Facts` is what the fold has gathered for a turn, `Place` is where the turn stands in its session.
A pure function of both. The numbers in brackets name the rules of the transcript.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from onrecord.projections.outgoing import Outgoing, Take
from onrecord.transcript.events import (
    AssistantMessageProduced,
    RecoveryApplied,
    ToolCall,
    ToolResultReceived,
    TurnFinalized,
)

Results = dict[str, tuple[int, ToolResultReceived]]


@dataclass(slots=True)
class Said:
    """A user's message: newest text, and the events it was made of."""

    message: str
    text: str
    versions: list[int]
    retracted: bool = False


@dataclass(slots=True)
class Facts:
    """What was recorded for a turn, in log order. Numbers are versions in the session."""

    name: str
    begun: int
    counts: bool = True
    users: dict[str, Said] = field(default_factory=dict)
    produced: dict[str, tuple[int, AssistantMessageProduced]] = field(default_factory=dict)
    deliveries: dict[str, Outgoing] = field(default_factory=dict)
    recovered: list[tuple[int, RecoveryApplied]] = field(default_factory=list)
    final: tuple[int, TurnFinalized] | None = None
    said_at: int = 0
    last: int = 0
    revision: int = 0

    @property
    def closed(self) -> bool:
        return self.final is not None or not self.counts

    @property
    def closed_at(self) -> int | None:
        """Return the version from which on it is closed, None while it is open."""
        return self.final[0] if self.final else None if self.counts else self.begun


@dataclass(frozen=True, slots=True)
class Place:
    """Where a turn stands: is it the last one, and does its session have deliveries?"""

    last: bool
    tracked: bool


@dataclass(slots=True)
class Line:
    """A row in the making. `also`: what else was seen of the row before it."""

    anchor: int
    origin: str
    text: str = ""
    message: str = ""
    calls: tuple[ToolCall, ...] = ()
    produced: AssistantMessageProduced | None = None
    deliveries: list[Outgoing] = field(default_factory=list)
    takes: list[Take] = field(default_factory=list)
    others: list[list[Take]] = field(default_factory=list)
    shown: str = ""
    status: str = ""
    whole: bool = False
    also: bool = False
    versions: set[int] = field(default_factory=set)
    results: Results = field(default_factory=dict)

    @property
    def produced_text(self) -> str:
        return self.produced.text if self.produced else ""


def same(a: str, b: str) -> bool:
    """Compare texts without the blank space around them."""
    return a.strip() == b.strip()


def begins(whole: str, start: str) -> bool:
    """Tell whether `whole` begins with `start`, without the blank space around them."""
    return whole.strip().startswith(start.strip())


def akin(a: str, b: str) -> bool:
    """Tell whether two texts begin with one another."""
    return begins(a, b) or begins(b, a)


def lines_of(facts: Facts, place: Place) -> list[Line]:
    """Return a turn's lines, in order."""
    lines = _assign(facts)
    for line in lines:
        _show(line, facts, place)
    lines = _spread(lines)
    _add_recovered(lines, facts)
    _add_final(lines, facts)
    for line in lines:
        line.status = _status(line, lines, facts, place)
    return lines


def _assign(facts: Facts) -> list[Line]:
    """Give each delivery its row [3, 4]."""
    lines: dict[str, Line] = {}
    for message, (version, event) in facts.produced.items():
        line = Line(version, "produced", message=message, calls=_calls(event), produced=event)
        line.versions.add(version)
        lines[f"m:{message}"] = line
    answers = [d for d in facts.deliveries.values() if d.kind != "notice" and d.takes]
    for delivery in answers:
        if delivery.message:
            line = lines.setdefault(
                f"m:{delivery.message}", Line(delivery.first, "", message=delivery.message)
            )
            _give(line, delivery)
    for delivery in answers:
        if not delivery.message:
            found = _matching(list(lines.values()), delivery)
            if found is None and any(t.visible.strip() for t in delivery.takes):
                found = lines.setdefault(f"d:{delivery.id}", Line(delivery.first, ""))
            if found is not None:
                _give(found, delivery)
    return [line for line in lines.values() if _makes_row(line)]


def _calls(event: AssistantMessageProduced) -> tuple[ToolCall, ...]:
    return tuple({call.id: call for call in reversed(event.tool_calls)}.values())[::-1]


def _give(line: Line, delivery: Outgoing) -> None:
    line.deliveries.append(delivery)
    line.anchor = min(line.anchor, delivery.first)
    line.versions.update(delivery.versions)


def _matching(lines: list[Line], delivery: Outgoing) -> Line | None:
    """Find the row of a delivery that names no message."""
    texts = [text for take in delivery.takes if (text := take.visible or take.text).strip()]
    fits = [
        line
        for line in lines
        if line.produced_text.strip() and any(akin(line.produced_text, text) for text in texts)
    ]
    if fits:
        return next((line for line in fits if not line.deliveries), fits[-1])
    return next(
        (
            line
            for line in lines
            if any(
                same(other.visible, text)
                for other_delivery in line.deliveries
                for other in other_delivery.takes
                for text in texts
            )
        ),
        None,
    )


def _makes_row(line: Line) -> bool:
    """A blank message without calls makes no row, unless something of it was seen [3]."""
    seen = any(take.visible.strip() for d in line.deliveries for take in d.takes)
    if not seen and not line.calls and not line.produced_text.strip():
        return False
    blank = line.produced is None or not (line.calls or line.produced_text.strip())
    line.origin = "delivered" if blank else "produced"
    return True


def _show(line: Line, facts: Facts, place: Place) -> None:
    """Choose the text: what the user saw wins [5]."""
    groups: list[list[Take]] = []
    for delivery in line.deliveries:
        for take in delivery.takes:
            if take.visible.strip():
                _join(groups, take)
    produced = line.produced_text
    main = next((g for g in groups if produced.strip() and akin(produced, _longest(g))), None)
    if main is None and groups:
        main = groups[0]
    line.others = [group for group in groups if group is not main]
    line.takes = main or []
    line.shown = line.text = _longest(line.takes)
    open_last = place.last and not facts.closed
    if not line.shown or (open_last and begins(produced, line.shown)):
        line.text = produced


def _join(groups: list[list[Take]], take: Take) -> None:
    for group in groups:
        if akin(_longest(group), take.visible):
            group.append(take)
            return
    groups.append([take])


def _longest(takes: list[Take]) -> str:
    """Return the longest visible text, the first of several."""
    return max((take.visible for take in takes), key=lambda text: len(text.strip()), default="")


def _spread(lines: list[Line]) -> list[Line]:
    """Put the lines in order, and after each what else was seen of it, as lines of their own."""
    out: list[Line] = []
    for line in sorted(lines, key=lambda line: line.anchor):
        out.append(line)
        for group in line.others:
            other = Line(min(t.first for t in group), "delivered", _longest(group), line.message)
            other.takes, other.shown, other.also = group, other.text, True
            other.deliveries = line.deliveries
            other.versions = {v for take in group for v in take.versions}
            line.versions -= other.versions
            out.append(other)
    return out


def _after_calls(lines: list[Line]) -> list[Line]:
    """Return the lines with text after the turn's last tool call."""
    last = max((i for i, line in enumerate(lines) if line.calls), default=-1)
    return [line for line in lines[last + 1 :] if line.text.strip()]


def _is_new(text: str, lines: list[Line]) -> bool:
    """Tell whether a recovered or final text says what no row says [6]."""
    if not text.strip():
        return False
    if any(
        same(text, known) for line in lines for known in (line.text, line.shown, line.produced_text)
    ):
        return False
    return not any(akin(line.text, text) for line in _after_calls(lines))


def _add_recovered(lines: list[Line], facts: Facts) -> None:
    for version, event in facts.recovered:
        if _is_new(event.text or "", lines):
            line = Line(version, "recovered", event.text or "", versions={version})
            later = (i for i, o in enumerate(lines) if o.anchor > version and not o.also)
            at = next(later, len(lines))
            lines.insert(at, line)


def _add_final(lines: list[Line], facts: Facts) -> None:
    if facts.final is None:
        return
    version, event = facts.final
    text = event.text or ""
    if _is_new(text, lines) and not any(line.shown for line in _after_calls(lines)):
        lines.append(Line(version, "final", text, versions={version}))


def _status(line: Line, lines: list[Line], facts: Facts, place: Place) -> str:
    """Say what the user has seen of a row [5]."""
    if not line.text.strip():
        return ""
    if not place.tracked:
        return "untracked"
    shown = line.shown
    if not shown.strip():
        return "undelivered"
    taken = any(take.taken_text.rstrip() and begins(take.taken_text, shown) for take in line.takes)
    line.whole = _proper(shown, line.produced_text)
    if line is [other for other in lines if other.text.strip()][-1] and facts.final:
        line.whole = line.whole or _proper(shown, facts.final[1].text or "")
    if not taken:
        return "in_doubt"
    completed = facts.final is not None and facts.final[1].outcome == "completed"
    stopped = not completed and facts.counts and (facts.closed or not place.last)
    unconfirmed = line.produced is None or line.origin == "delivered"
    if line.whole or (unconfirmed and stopped and not any(take.confirmed for take in line.takes)):
        return "partial"
    return "delivered"


def _proper(shown: str, whole: str) -> bool:
    """Tell whether `shown` is a beginning of `whole` and not all of it."""
    return bool(whole.strip()) and begins(whole, shown) and not same(whole, shown)
