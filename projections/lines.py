"""The assistant's lines of one turn: which delivery is of which message, what was seen of it.

`Facts` is what the fold has gathered for a turn, `Place` is where the turn stands in its session.
A pure function of both. The numbers in brackets name the rules of the transcript.
"""

from __future__ import annotations

import msgspec

from onrecord.projections.calls import Results
from onrecord.projections.outgoing import Outgoing, Take
from onrecord.projections.wording import Wording
from onrecord.transcript.events import (
    AssistantMessageProduced,
    RecoveryApplied,
    ToolCall,
    TurnFinalized,
)


class Said(msgspec.Struct):
    """A user's message: newest text, the events it was made of, and who wrote it."""

    message: str
    text: str
    versions: list[int]
    sender: str = ""
    retracted: bool = False


class Facts(msgspec.Struct):
    """What was recorded for a turn, in log order. Numbers are versions in the session.

    `order`: how many turns began before it. `counts`: it isn't a delivery's own [1].
    """

    name: str
    begun: int
    order: int
    counts: bool = True
    users: dict[str, Said] = msgspec.field(default_factory=dict)
    produced: dict[str, tuple[int, AssistantMessageProduced]] = msgspec.field(default_factory=dict)
    deliveries: dict[str, Outgoing] = msgspec.field(default_factory=dict)
    recovered: list[tuple[int, RecoveryApplied]] = msgspec.field(default_factory=list)
    final: tuple[int, TurnFinalized] | None = None
    said_at: int = 0
    last: int = 0

    @property
    def closed(self) -> bool:
        return self.final is not None or not self.counts

    @property
    def closed_at(self) -> int | None:
        """Return the version from which on it is closed, None while it is open."""
        return self.begun if not self.counts else self.final[0] if self.final else None


class Place(msgspec.Struct):
    """Where a turn stands: is it the last one, and are the deliveries of its session all noted?"""

    last: bool
    tracked: bool


class Group(msgspec.Struct):
    """Takes whose texts begin with one another. `core`: the longest without blank space around."""

    takes: list[Take]
    longest: str
    core: str


class Line(msgspec.Struct):
    """A row in the making. `also`: what else was seen of the row before it.

    `core`: the produced text without blank space around it.
    """

    anchor: int
    origin: str
    text: str = ""
    message: str = ""
    calls: tuple[ToolCall, ...] = ()
    produced: AssistantMessageProduced | None = None
    core: str = ""
    deliveries: list[Outgoing] = msgspec.field(default_factory=list)
    takes: list[Take] = msgspec.field(default_factory=list)
    others: tuple[Group, ...] = ()
    shown: str = ""
    status: str = ""
    whole: bool = False
    also: bool = False
    versions: set[int] = msgspec.field(default_factory=set)
    results: Results = msgspec.field(default_factory=dict)

    @property
    def produced_text(self) -> str:
        return self.produced.text if self.produced else ""


def begins(whole: str, start: str) -> bool:
    """Tell whether `whole` begins with `start`, without the blank space around them."""
    return whole.strip().startswith(start.strip())


def akin(a: str, b: str) -> bool:
    """Tell whether two texts begin with one another."""
    return begins(a, b) or begins(b, a)


def says(line: Line, words: str) -> bool:
    """Tell whether a line says these words, as shown or as produced; no blank space around them."""
    return words == line.core or words in (line.text.strip(), line.shown.strip())


def lines_of(facts: Facts, place: Place) -> list[Line]:
    """Return a turn's lines, in order."""
    lines = _assign(facts)
    for line in lines:
        _show(line, facts, place)
    lines = _spread(lines)
    _add_recovered(lines, facts)
    _add_final(lines, facts)
    last = True
    for line in reversed(lines):
        line.status = _status(line, facts, place, last=last)
        last = last and not line.status
    return lines


def _assign(facts: Facts) -> list[Line]:
    """Give each delivery its row [3, 4]."""
    lines: dict[str, Line] = {}
    for message, (version, event) in facts.produced.items():
        lines[f"m:{message}"] = Line(
            version, "produced", message=message, calls=_calls(event), produced=event,
            core=event.text.strip(), versions={version},
        )  # fmt: skip
    answers = [d for d in facts.deliveries.values() if d.kind != "notice" and d.takes]
    for delivery in answers:
        if delivery.message:
            named = lines.get(f"m:{delivery.message}")
            if named is None:
                named = Line(delivery.first, "", message=delivery.message)
                lines[f"m:{delivery.message}"] = named
            _give(named, delivery)
    unnamed = [delivery for delivery in answers if not delivery.message]
    if unnamed:
        _match(lines, unnamed)
    return [line for line in lines.values() if _makes_row(line)]


def _match(lines: dict[str, Line], unnamed: list[Outgoing]) -> None:
    """Find the rows of the deliveries that name no message, by their text [4]."""
    wording = Wording(lines.values())
    seen: dict[str, Line] = {}
    for line in lines.values():
        for delivery in line.deliveries:
            _note(seen, line, delivery)
    for delivery in unnamed:
        texts = [t for take in delivery.takes if (t := (take.visible or take.text).strip())]
        found = wording.find(texts)
        if found is None:
            visible = [text for take in delivery.takes if (text := take.visible.strip())]
            known = (seen[text] for text in visible or texts if text in seen)
            earlier = [line for line in known if line.anchor < delivery.first]
            if earlier:
                found = min(earlier, key=lambda line: line.anchor)
            elif visible:
                found = lines[f"d:{delivery.id}"] = Line(delivery.first, "")
            else:
                continue
        _give(found, delivery)
        _note(seen, found, delivery)


def _note(seen: dict[str, Line], line: Line, delivery: Outgoing) -> None:
    """Remember for each text that was visible the earliest row that was delivered with it."""
    for take in delivery.takes:
        text = take.visible.strip()
        if text and (text not in seen or line.anchor < seen[text].anchor):
            seen[text] = line


def _calls(event: AssistantMessageProduced) -> tuple[ToolCall, ...]:
    if not event.tool_calls:
        return ()
    return tuple({call.id: call for call in reversed(event.tool_calls)}.values())[::-1]


def _give(line: Line, delivery: Outgoing) -> None:
    line.deliveries.append(delivery)
    line.anchor = min(line.anchor, delivery.first)
    line.versions.update(delivery.versions)


def _makes_row(line: Line) -> bool:
    """A blank message without calls makes no row, unless something of it was seen [3]."""
    if line.calls or line.core:
        line.origin = "produced"
        return True
    line.origin = "delivered"
    return any(take.visible.strip() for d in line.deliveries for take in d.takes)


def _show(line: Line, facts: Facts, place: Place) -> None:
    """Choose the text: what the user saw wins [5]."""
    groups: list[Group] = []
    takes = [take for delivery in line.deliveries for take in delivery.takes]
    if len(takes) > 1:
        takes.sort(key=lambda take: take.first)
    for take in takes:
        text = take.visible
        if core := text.strip():
            _join(groups, take, text, core)
    if groups:
        main = groups[0]
        if len(groups) > 1:
            fitting = (group for group in groups if line.core and _fits(line.core, group.core))
            main = next(fitting, main)
            line.others = tuple(group for group in groups if group is not main)
        line.takes, line.shown, line.text = main.takes, main.longest, main.longest
    open_last = place.last and not facts.closed
    if not line.shown or (open_last and begins(line.produced_text, line.shown)):
        line.text = line.produced_text


def _join(groups: list[Group], take: Take, text: str, core: str) -> None:
    for group in groups:
        if _fits(group.core, core):
            group.takes.append(take)
            if len(core) > len(group.core):
                group.longest, group.core = text, core
            return
    groups.append(Group([take], text, core))


def _fits(a: str, b: str) -> bool:
    return a.startswith(b) or b.startswith(a)


def _spread(lines: list[Line]) -> list[Line]:
    """Put the lines in order, and after each what else was seen of it, as lines of their own."""
    out: list[Line] = []
    for line in sorted(lines, key=lambda line: line.anchor):
        out.append(line)
        for group in line.others:
            takes = group.takes
            first = min(take.first for take in takes)
            other = Line(first, "delivered", group.longest, line.message)
            other.takes, other.shown, other.also = takes, other.text, True
            other.deliveries = line.deliveries
            other.versions = {v for take in takes for v in take.versions}
            line.versions -= other.versions
            out.append(other)
    return out


def _after_calls(lines: list[Line]) -> list[Line]:
    """Return the lines with text after the turn's last tool call."""
    last = max((i for i, line in enumerate(lines) if line.calls), default=-1)
    return [line for line in lines[last + 1 :] if line.text.strip()]


def _is_new(text: str, lines: list[Line]) -> bool:
    """Tell whether a recovered or final text says what no row says [6]."""
    words = text.strip()
    if not words or any(says(line, words) for line in lines):
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


def _status(line: Line, facts: Facts, place: Place, *, last: bool) -> str:
    """Say what the user has seen of a row [5]."""
    if not line.text.strip():
        return ""
    if not place.tracked and not line.deliveries:
        return "untracked"
    shown = line.shown.strip()
    if not shown:
        return "undelivered"
    line.whole = _is_part(shown, line.core)
    if last and facts.final:
        line.whole = line.whole or _is_part(shown, (facts.final[1].text or "").strip())
    if not any(take.taken_text.strip().startswith(shown) for take in line.takes):
        return "in_doubt"
    completed = facts.final is not None and facts.final[1].outcome == "completed"
    stopped = not completed and (facts.closed or not place.last)
    unconfirmed = line.produced is None or line.origin == "delivered"
    if line.whole or (unconfirmed and stopped and not any(take.confirmed for take in line.takes)):
        return "partial"
    return "delivered"


def _is_part(shown: str, whole: str) -> bool:
    """Tell whether `shown` is a beginning of `whole` and not all of it."""
    return len(shown) < len(whole) and whole.startswith(shown)
