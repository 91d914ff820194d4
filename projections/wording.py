"""Rows by their words: which one a delivery is of that names no message [4].

Of two texts that begin with one another, the longer stands behind the shorter in their order, and so
does everything between them: what begins with a text follows it at once, and what it begins with is
met by going from each text to the longest other that it begins with. So a turn of many rows costs
what its texts are long, and not each row times each delivery.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Generic, Protocol, TypeVar

from onrecord.projections.outgoing import Outgoing


class Row(Protocol):
    """A row in the making: its words without blank space around them, and what was sent of it."""

    core: str
    deliveries: list[Outgoing]


R = TypeVar("R", bound=Row)


class Wording(Generic[R]):
    """The rows of a turn that have words, in order."""

    def __init__(self, rows: Iterable[R]) -> None:
        self._alike: dict[str, list[tuple[int, R]]] = {}
        for place, row in enumerate(rows):
            if row.core:
                self._alike.setdefault(row.core, []).append((place, row))
        self._unsent = {words: deque(alike) for words, alike in self._alike.items()}
        self._words = sorted(self._alike)
        self._start: dict[str, str | None] = {}
        before: str | None = None
        for words in self._words:
            self._start[words] = self._longest(before, words)
            before = words

    def find(self, texts: Iterable[str]) -> R | None:
        """Return the first row akin to one of the texts that nothing was sent of, else the last."""
        akin = [words for text in texts for words in self._akin(text)]
        if not akin:
            return None
        unsent = [first for words in akin if (first := self._first_unsent(words)) is not None]
        if unsent:
            return min(unsent, key=itemgetter(0))[1]
        return max((self._alike[words][-1] for words in akin), key=itemgetter(0))[1]

    def _akin(self, text: str) -> Iterator[str]:
        """Yield the words that begin with a text, and those that it begins with."""
        at = bisect_left(self._words, text)
        start = self._longest(self._words[at - 1] if at else None, text)
        while start is not None:
            yield start
            start = self._start[start]
        while at < len(self._words) and self._words[at].startswith(text):
            yield self._words[at]
            at += 1

    def _longest(self, before: str | None, text: str) -> str | None:
        """Return the longest words that a text begins with; `before`: those next before it."""
        while before is not None and not text.startswith(before):
            before = self._start[before]
        return before

    def _first_unsent(self, words: str) -> tuple[int, R] | None:
        unsent = self._unsent[words]
        while unsent and unsent[0][1].deliveries:
            unsent.popleft()
        return unsent[0] if unsent else None
