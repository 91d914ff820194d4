"""What a person sees of differences between rows or messages, and their JSON shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from onrecord.projections.differences import Difference, Message, words_between
from onrecord.projections.pages.rows import body_of, row_shape, seen_of
from onrecord.projections.pages.terminal import console, counted, plain
from onrecord.projections.rows import Row

CONTEXT = 2
"""Unchanged rows that are shown on each side of a change."""
KEPT = 40
"""Characters of an unchanged passage that are shown on each side of a change in a text."""

SIGNS: Final[Mapping[str, str]] = {"same": " ", "added": "+", "changed": "~", "removed": "-"}
STYLES: Final[Mapping[str, str]] = {"+": "green", "-": "red", "~": "yellow", " ": "dim"}
LEAST = 20
"""Columns that a text gets at least."""
_ROLE = len("assistant")


def hanging(page: Console, lead: Text, body: Text, below: Text) -> Iterator[Text]:
    """Yield a text's lines beside what leads it; `below`: what stands before the later lines."""
    room = max(LEAST, page.width - lead.cell_len)
    if body.cell_len <= room and "\n" not in body.plain:
        yield Text.assemble(lead, body)
        return
    below.pad_right(lead.cell_len - below.cell_len)
    for number, line in enumerate(body.wrap(page, room) or [Text()]):
        line.rstrip()
        yield Text.assemble(below if number else lead, line)


def put(page: Console, lines: Iterable[Text]) -> None:
    """Print lines. In a pipe without the machinery that finds colours for a terminal: much faster."""
    if page.is_terminal:
        page.print(Text("\n").join(lines), soft_wrap=True)
    else:
        page.file.writelines(f"{line.plain}\n" for line in lines)


def difference_shape(one: Difference) -> dict[str, Any]:
    """Return the JSON shape of what changed in a row or message."""
    shape: dict[str, Any] = {"change": one.kind}
    for name, side in (("before", one.before), ("after", one.after)):
        if side is not None:
            shape[name] = _shape(side)
    if one.before is not None and one.after is not None and one.before.text != one.after.text:
        shape["words"] = words_between(one.before.text, one.after.text)
    return shape


def _shape(side: Row | Message) -> Any:
    return {"id": side.id, **row_shape(side)} if isinstance(side, Row) else side.sent


def show_differences(was: str, now: str, found: Sequence[Difference]) -> None:
    """Print a unified diff of rows or messages. `was`, `now`: what the two points are called."""
    page = console()
    page.print(Text(f"--- {plain(was)}", style="bold"))
    page.print(Text(f"+++ {plain(now)}", style="bold"))
    near = _near([one.kind != "same" for one in found])
    skipped = 0
    for one, shown in zip(found, near, strict=True):
        if not shown:
            skipped += 1
            continue
        _say_skipped(page, skipped)
        skipped = 0
        put(page, lines_of(page, one))
    _say_skipped(page, skipped)


def _near(changed: Sequence[bool]) -> list[bool]:
    near = [False] * len(changed)
    for place, is_changed in enumerate(changed):
        if is_changed:
            low, high = max(0, place - CONTEXT), min(len(changed), place + CONTEXT + 1)
            near[low:high] = [True] * (high - low)
    return near


def _say_skipped(page: Console, rows: int) -> None:
    if rows:
        page.print(Text(f"@@ {counted(rows, 'row')} alike @@", style="cyan"))


def lines_of(page: Console, one: Difference, indent: str = "", limit: int = 0) -> Iterator[Text]:
    """Yield the lines of one difference, each behind its sign.

    `limit`: characters after which a text is cut, 0 for none; an unchanged one always is.
    """
    sign = SIGNS[one.kind]
    side = one.after or one.before
    assert side is not None
    lead = Text(f"{indent}{sign} ", style=STYLES[sign])
    lead.append(f"{plain(side.role):<{_ROLE}} ")
    body = _body(page, one)
    if one.kind == "same" or limit:
        body = _cut(body, KEPT * 2 if one.kind == "same" else limit)
    if sign != "~":  # of what changed only the words are coloured
        body.stylize_before(STYLES[sign])
    yield from hanging(page, lead, body, Text(f"{indent}{sign} ", style=STYLES[sign]))


def _body(page: Console, one: Difference) -> Text:
    before, after = one.before, one.after
    if before is None or after is None or one.kind == "same":
        side = after or before
        assert side is not None
        seen = f"({_seen(side)}) " if _seen(side) else ""
        return Text.assemble((seen, "dim"), _words(side))
    body = Text()
    for name, was, now in _fields(before, after):
        body.append(f"({name}{was or 'nothing'} → {now or 'nothing'}) ", style="yellow")
    if (old := _words(before)) != (new := _words(after)):
        body.append_text(marked_words(old, new, marks=not _has_colour(page)))
    elif not body:
        body.append("(stands elsewhere now) ", style="yellow").append(new)
    else:
        body.append(new)
    return body


def _seen(side: Row | Message) -> str:
    return seen_of(side).replace("_", " ") if isinstance(side, Row) else ""


def _words(side: Row | Message) -> str:
    return body_of(side) if isinstance(side, Row) else plain(side.text)


def _fields(before: Row | Message, after: Row | Message) -> Iterator[tuple[str, str, str]]:
    """Yield what changed in a row beside its words: what it is called, before and after."""
    if not (isinstance(before, Row) and isinstance(after, Row)):
        return
    pairs = (
        ("", _seen(before), _seen(after)),
        ("made by: ", before.origin, after.origin),
        ("turn: ", plain(before.turn), plain(after.turn)),
        ("error: ", str(before.is_error).lower(), str(after.is_error).lower()),
    )
    yield from (pair for pair in pairs if pair[1] != pair[2])
    if before.produced != after.produced and after.produced != before.text:  # which is shown
        yield "produced: ", _brief(before.produced), _brief(after.produced)


def _brief(text: str | None) -> str:
    return plain(" ".join((text or "").split()))[:KEPT]


def _has_colour(page: Console) -> bool:
    return page.is_terminal and not page.no_color and page.color_system is not None


def marked_words(before: str, after: str, *, marks: bool) -> Text:
    """Return two texts as one: what is gone in [-…-] or red, what is new in {+…+} or green."""
    text = Text()
    pieces = words_between(before, after)
    for place, (kind, words) in enumerate(pieces):
        if kind == "=":
            text.append(_middle(words, first=place == 0, last=place == len(pieces) - 1))
        elif kind == "-":
            text.append(f"[-{words}-]" if marks else words, style="red strike")
        else:
            text.append(f"{{+{words}+}}" if marks else words, style="green underline")
    return text


def _middle(words: str, *, first: bool, last: bool) -> str:
    """Leave out of an unchanged passage what isn't near a change."""
    if first and last:
        return words
    head, tail = "" if first else words[:KEPT], "" if last else words[-KEPT:]
    return words if len(head) + len(tail) + 2 >= len(words) else f"{head}…{tail}"


def _cut(body: Text, limit: int) -> Text:
    flat = Text(" ").join(body.split("\n"))
    if len(flat) > limit:
        flat.truncate(limit, overflow="ellipsis")
    return flat
