"""Cut a text into messages that a platform takes.

The pieces joined are the text. A cut never falls inside a grapheme (a family emoji, a letter with its
accents), and blank space at a cut belongs to the piece before it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

_BREAKS = (
    re.compile(r"\n[^\S\n]*\n\s*"),
    re.compile(r"\n\s*"),
    re.compile(r"[.!?…。！？]['\")\]’”]*\s+|[。！？]"),
    re.compile(r"\s+"),
)
"""Where to cut by preference: between paragraphs, lines, sentences, words."""

FULL_ENOUGH = 0.5
"""A better kind of break is worth leaving up to this part of a message empty."""


def split(
    text: str, limit: int, count: Callable[[str], int] = len, *, at_least: int = 0
) -> list[str]:
    """Return `text` in pieces whose content, without the blank space around it, is within `limit`.

    Blank space at the very start belongs to the first piece: no piece is blank but for a blank text.
    `at_least`: code points at the start that are out already and stay in the first piece. A single
    grapheme over the limit is the one thing that is cut, by code points: it couldn't go out else.
    Raise ValueError for a limit below 1.
    """
    if limit < 1:
        raise ValueError(f"a message limit of {limit} takes no text: give 1 or more")
    pieces = []
    while text:
        lead = len(text) - len(text.lstrip())
        end = lead + _cut(text[lead:], limit, count, max(at_least - lead, 0))
        pieces.append(text[:end])
        text, at_least = text[end:], 0
    return pieces


def steady(text: str) -> int:
    """Return how much of a growing text can't change its meaning by what follows (code points).

    The last grapheme may still get an accent or a joiner.
    """
    last = 0
    for found in _grapheme().finditer(text[-_LOOK_BACK:]):
        last = found.start()
    return max(len(text) - _LOOK_BACK, 0) + last


_LOOK_BACK = 64
"""Code points in which the last grapheme is looked for; longer ones are adornment without end."""


@functools.cache
def _grapheme() -> Any:
    """Return the pattern of a grapheme, which only the package regex knows; loading it takes long."""
    import regex

    return regex.compile(r"\X")


def _cut(text: str, limit: int, count: Callable[[str], int], at_least: int) -> int:
    if count(text.rstrip()) <= limit:
        return len(text)
    room = _longest(text, limit, count)
    fit = _whole_graphemes(text, room)
    if fit == 0:
        fit = max(room, 1)
    fit = max(fit, at_least)
    window = _with_blank(text, fit)
    floor = max(at_least, int(fit * FULL_ENOUGH), 1)
    for kind in _BREAKS:
        best = max((m.end() for m in kind.finditer(text, 0, window)), default=0)
        if best >= floor:
            return _with_blank(text, best)
    words = max((m.end() for m in _BREAKS[-1].finditer(text, 0, window)), default=0)
    return words if words >= max(at_least, 1) else window


def _longest(text: str, limit: int, count: Callable[[str], int]) -> int:
    """Return the most code points from the start that count `limit` at most."""
    low, high = 0, min(len(text), limit if count is len else len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= limit else (low, middle - 1)
    return low


def _whole_graphemes(text: str, end: int) -> int:
    """Return the last grapheme boundary at or before `end`."""
    if end >= len(text):
        return len(text)
    start = max(0, end - _LOOK_BACK)
    boundary = 0
    for found in _grapheme().finditer(text, start, min(len(text), end + _LOOK_BACK)):
        if found.start() > end:
            break
        if start == 0 or found.start() > start:
            boundary = found.start()
    return boundary


def _with_blank(text: str, end: int) -> int:
    while end < len(text) and text[end].isspace():
        end += 1
    return end
