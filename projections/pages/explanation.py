"""What a person sees of a turn that is explained, and its JSON shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from onrecord.projections.explaining import Evidence, Explanation, Moment, Paragraph
from onrecord.projections.pages.difference import SIGNS, STYLES, difference_shape, hanging, put
from onrecord.projections.pages.rows import body_of, seen_of
from onrecord.projections.pages.terminal import console, counted, plain, table
from onrecord.projections.rows import Row
from onrecord.projections.telling import quote

WIDE = 110
"""Columns from which on the three lanes stand side by side."""
EVENTS_TOLD = 6
"""Events that are listed as showing a finding."""

LANES: Final[Mapping[str, str]] = {
    "model": "model",
    "gateway": "gateway and platform",
    "transcript": "transcript",
}
_STYLES: Final[Mapping[str, str]] = {"model": "magenta", "gateway": "cyan", "transcript": ""}
_LABEL = len("the model gets")


def explanation_shape(one: Explanation) -> dict[str, Any]:
    """Return the JSON shape of a turn that is explained."""
    return {
        "turn": one.turn,
        "timeline": [_moment_shape(moment) for moment in one.moments],
        "findings": [_paragraph_shape(paragraph) for paragraph in one.paragraphs],
    }


def _moment_shape(moment: Moment) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "versions": sorted({moment.first, moment.last}),
        "at": moment.at,
        "lane": moment.lane,
        "said": moment.said,
    }
    if moment.source:
        shape["imported_from"] = moment.source
    closed = [{"change": "closed", "turn": t, "outcome": outcome} for t, outcome in moment.closed]
    shape["changes"] = [difference_shape(one) for one in moment.changes] + closed
    return shape


def _paragraph_shape(paragraph: Paragraph) -> dict[str, Any]:
    return {
        "code": paragraph.code,
        "meaning": paragraph.meaning,
        "happened": paragraph.happened,
        "events": [_evidence_shape(one) for one in paragraph.evidence],
        "user_saw": paragraph.saw,
        "model_gets": paragraph.next,
        "advice": paragraph.advice,
    }


def _evidence_shape(one: Evidence) -> dict[str, Any]:
    shape = {"version": one.version, "type": one.type, "at": one.at, "said": one.said}
    return shape | ({"imported_from": one.source} if one.source else {})


def show_explanations(
    session: str, explained: Sequence[Explanation], others: Sequence[str]
) -> None:
    """Print turns explained. `others`: turns that have findings too and aren't among them."""
    page = console()
    for number, one in enumerate(explained):
        if number:
            page.print()
        _show(page, session, one)
    if others:
        names = ", ".join(plain(name) for name in others[:EVENTS_TOLD])
        more = " …" if others[EVENTS_TOLD:] else ""
        page.print(f"\n{counted(len(others), 'more turn')} with findings: {names}{more}; name one")


def _show(page: Console, session: str, one: Explanation) -> None:
    name = f"turn {plain(one.turn)} of {plain(session)}" if one.turn else f"{plain(session)} itself"
    found = counted(len(one.paragraphs), "finding") if one.paragraphs else "nothing found"
    page.print(Text(f"{name}: {found}", style="bold"))
    if one.moments:
        first, last = one.moments[0].at, one.moments[-1].at
        until = f"{last:%H:%M:%S}" if last.date() == first.date() else f"{last:%Y-%m-%d %H:%M:%S}"
        page.print(Text(f"{first:%Y-%m-%d %H:%M:%S} to {until} UTC", style="dim"))
        page.print()
        if page.width >= WIDE:
            _side_by_side(page, one.moments)
        else:
            _stacked(page, one.moments)
    for paragraph in one.paragraphs:
        page.print()
        _tell(page, paragraph)


def _side_by_side(page: Console, moments: Sequence[Moment]) -> None:
    grid = table("time", "version", *LANES.values())
    grid.padding, grid.expand = (0, 2, 0, 0), True
    for column in grid.columns[:2]:
        column.no_wrap = True
    for column in grid.columns[2:]:
        column.ratio = 1
    for moment in moments:
        said, rows = _said(moment), Text("\n").join(_row_lines(moment))
        cells = {"model": Text(), "gateway": Text(), "transcript": rows}
        both = moment.lane == "transcript" and rows
        cells[moment.lane] = Text("\n").join([said, rows]) if both else said
        grid.add_row(_time(moment), _versions(moment), *cells.values())
    page.print(grid)


def _stacked(page: Console, moments: Sequence[Moment]) -> None:
    page.print(Text("M model   G gateway and platform   T transcript", style="dim"))
    room = max(len(_versions(moment)) for moment in moments)
    for moment in moments:
        letter = LANES[moment.lane][0].upper()
        lead = Text.assemble(
            (_time(moment), "bold"), f"  {_versions(moment):>{room}}  ", (letter, "bold"), " "
        )
        put(page, hanging(page, lead, _said(moment), Text()))
        below = " " * (len(lead) - 2)
        for line in _row_lines(moment):
            put(page, hanging(page, Text.assemble(below, ("T", "bold"), " "), line, Text()))


def _time(moment: Moment) -> str:
    return f"{moment.at:%H:%M:%S.%f}"[:-3]


def _versions(moment: Moment) -> str:
    return str(moment.first) if moment.first == moment.last else f"{moment.first}–{moment.last}"


def _said(moment: Moment) -> Text:
    said = Text(plain(moment.said).replace("\n", " "), style=_STYLES[moment.lane])
    if moment.source:
        said.append(f", from {plain(moment.source)}", style="dim")
    return said


def _row_lines(moment: Moment) -> Iterator[Text]:
    """Yield what happened to the rows, each on a line of its own."""
    for one in moment.changes:
        before, after = one.before, one.after
        side = after or before
        assert isinstance(side, Row)
        line = Text(f"{SIGNS[one.kind]} {plain(side.role)} ", style=STYLES[SIGNS[one.kind]])
        was = seen_of(before).replace("_", " ") if isinstance(before, Row) else ""
        now = seen_of(after).replace("_", " ") if isinstance(after, Row) else ""
        if one.kind == "changed" and was != now:
            line.append(f"({was or 'nothing'} → {now or 'nothing'}) ")
        elif was or now:
            line.append(f"({now or was}) ")
        line.append(quote(body_of(side)))
        yield line
    for turn, outcome in moment.closed:
        yield Text(f"= turn {plain(turn)} closed: {plain(outcome)}", style="cyan")


def _tell(page: Console, paragraph: Paragraph) -> None:
    """Print a finding's paragraph: its parts, each behind what it answers."""
    head = Text(f"{plain(paragraph.code)}  ", style="bold yellow")
    put(page, hanging(page, head, Text(paragraph.meaning, style="dim"), Text()))
    parts = {
        "what happened": paragraph.happened,
        "shown by": "\n".join(_shown_by(paragraph.evidence)),
        "the user saw": paragraph.saw,
        "the model gets": paragraph.next,
        "what to do": paragraph.advice,
    }
    for label, words in parts.items():
        if words:
            lead = Text(f"  {label:<{_LABEL}}  ", style="bold")
            put(page, hanging(page, lead, Text(plain(words)), Text()))


def _shown_by(evidence: Sequence[Evidence]) -> Iterator[str]:
    """Yield the events that show a finding; of many the first and the last."""
    first = evidence if len(evidence) <= EVENTS_TOLD else evidence[: EVENTS_TOLD - 2]
    yield from (_evidence_words(one) for one in first)
    if len(first) < len(evidence):
        yield f"… {counted(len(evidence) - len(first) - 1, 'event')} more"
        yield _evidence_words(evidence[-1])


def _evidence_words(one: Evidence) -> str:
    source = f", from {one.source}" if one.source else ""
    at = f", {one.at:%H:%M:%S}" if one.at else ""
    return f"version {one.version}{at}: {one.said}{source}"
