"""What a search finds: a row of a session, and the words in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache

import msgspec

from onrecord.projections.rows import Row
from onrecord.projections.search.query import fold

BEFORE, WIDTH = 40, 200
"""Characters of a snippet before the first word that was found, and all of it."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """`at`: when the row's first event was recorded; `in_view`: the model is shown the row."""

    session: str
    row: Row
    at: datetime
    in_view: bool


class Snippet(msgspec.Struct, frozen=True):
    """A part of a text, on one line; `marks`: where in it the words stand, start and end."""

    text: str
    marks: list[tuple[int, int]]


def said(row: Row) -> str:
    """Return all that a row says: its text, and what its tools were called with."""
    calls = (f"{call.name}({call.arguments})" for call in row.tool_calls)
    return "\n".join(part for part in (row.text, *calls) if part)


def snippet(text: str, words: Sequence[str]) -> Snippet:
    """Return the part of a text where the words (folded) begin."""
    text = unicodedata.normalize("NFC", text)
    folded = fold(text)
    spans = _spans(folded, words)
    start = max(0, (spans[0][0] if spans else 0) - BEFORE)
    inner = [(a, b) for a, b in spans if b <= start + WIDTH]
    ends = sorted({start, start + WIDTH, *(end for span in inner for end in span)})
    places = dict(zip(ends, _places(text, ends), strict=True))
    first, last = places[start], places[start + WIDTH]
    head, tail = "…" if first else "", "…" if last < len(text) else ""
    shift = len(head) - first
    return Snippet(
        head + re.sub(r"\s", " ", text[first:last]) + tail,
        [(places[a] + shift, places[b] + shift) for a, b in inner],
    )


def _spans(folded: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return where words stand in a text, from left to right and apart from one another."""
    longest_first = sorted(words, key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest_first))
    return [match.span() for match in re.finditer(pattern, folded)] if pattern else []


def _places(text: str, ends: Sequence[int]) -> Iterator[int]:
    """Yield where in a text its folded form has reached each of some lengths, which ascend."""
    if text.isascii():
        yield from (min(end, len(text)) for end in ends)
        return
    at = reached = 0
    for end in ends:
        while reached < end and at < len(text):
            reached += _folded_length(text[at])
            at += 1
        yield at


@lru_cache(maxsize=4096)
def _folded_length(char: str) -> int:
    return len(fold(char))
