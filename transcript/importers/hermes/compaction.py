"""What a compaction leaves in a session: archived rows, a summary, and copies of rows that stay.

Hermes 0.19.0 compacts in place (hermes_state.py: archive_and_compact): it flips all rows to `active=0,
compacted=1` and inserts, in one transaction and so with ids in a row, copies of the first messages, the
summary, and copies of the last ones. A copy is the message that it is a copy of, not another one. Older
versions, and 0.19.0 where it is set so, end the session (`end_reason = 'compression'`) and begin a child
with the same rows; before that they may store all rows of the session once more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from onrecord.transcript.importers import foreign
from onrecord.transcript.importers.hermes.cells import content_of
from onrecord.transcript.importers.hermes.prompts import kind_of
from onrecord.transcript.importers.hermes.tables import Tables

HEAD = 64
"""Copies of first messages that are looked for before a summary."""
TAIL = 900
"""Copies of last messages that are looked for after one."""

AT_ONCE = 0.001
"""Seconds within which one transaction's rows are stamped, where they bring no time of their own."""

# agent/context_compressor.py: SUMMARY_PREFIX and those of older versions, all of which begin and end so
_PREFIX = "[CONTEXT COMPACTION — REFERENCE ONLY]"
_PREFIX_END = "avoid repeating it:"
_LEGACY_PREFIX = "[CONTEXT SUMMARY]:"
_END = "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
_PRIOR = "[PRIOR CONTEXT — for reference only; not a new message]"
_MERGED = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
_STARTS = (_PREFIX, _LEGACY_PREFIX, _PRIOR)
_PREFIX_LIMIT = 4_000


class Compacted(NamedTuple):
    """The compactions of a session.

    `copies`: row → the row that it is a copy of, in this session or the one before; `kept`: row of a
    summary → the first message that stays whole beside it, None where none does; `again`: rows from
    which on the session's rows are stored a second time → the first of them.
    """

    copies: dict[int, int]
    kept: dict[int, int | None]
    again: dict[int, int]


NONE = Compacted({}, {}, {})


def summary_of(text: str) -> str:
    """Return the summary that a row's text holds, without what Hermes wraps it in; empty if none."""
    if not text.startswith(_STARTS):
        return ""
    if text.startswith(_PRIOR):
        text = text.partition(_MERGED)[2].lstrip()
        if not text.startswith(_STARTS):
            return ""
    text = text.replace(_END, "").removeprefix(_LEGACY_PREFIX)
    before, found, after = text.partition(_PREFIX_END)
    return (after if found and len(before) < _PREFIX_LIMIT else text).strip()


def compactions(tables: Tables, session: str, parent: str | None, ids: Sequence[int]) -> Compacted:
    """Return what compactions left in a session; `ids` are those of all its messages."""
    try:
        summaries = tables.summaries(session, _STARTS)
        found = _Batches(tables, ids).read(summaries) if summaries else NONE
        if tables.was_compacted_away(session):
            found = _stored_again(found, tables.stored_again(session, session), ids)
        if parent is not None and tables.was_compacted_away(parent):
            found = found._replace(copies=tables.stored_again(session, parent) | found.copies)
        return found
    except foreign.Error:
        return NONE  # the rows that can't be read are told where they stand


def _stored_again(found: Compacted, copies: dict[int, int], ids: Sequence[int]) -> Compacted:
    before, again = False, {}
    for id in ids:
        if id in copies and id not in found.copies and not before:
            again[id] = copies[id]
        before = id in copies
    return Compacted(copies | found.copies, found.kept, again)


class _Seen(NamedTuple):
    """A row that the model was shown. `at`: its time, as it is stored."""

    id: int
    at: Any
    says: tuple[str, ...]

    def copies(self, other: _Seen, inserted: Any) -> bool:
        """Tell whether the row says the same: it has the same time, or that at which it was inserted."""
        if self.says != other.says:
            return False
        if self.at == other.at:
            return True
        times = isinstance(self.at, float) and isinstance(inserted, float)
        return times and abs(self.at - inserted) < AT_ONCE


class _Batches:
    """Goes through the batches of rows that compactions inserted, in their order."""

    def __init__(self, tables: Tables, ids: Sequence[int]) -> None:
        self._tables = tables
        self._ids = ids
        self._copies: dict[int, int] = {}

    def read(self, summaries: Iterable[int]) -> Compacted:
        kept: dict[int, int | None] = {}
        for summary in summaries:
            at = bisect_left(self._ids, summary)
            head = self._head(at)
            before = self._view(self._ids[max(0, at - head - TAIL) : at - head], archived=True)
            kept[summary] = self._tail(at, before)
        return Compacted(self._copies, kept, {})

    def _head(self, at: int) -> int:
        """Note the copies before a summary; return how many there are."""
        count = 0
        while count < min(HEAD, at) and self._ids[at - count - 1] == self._ids[at] - count - 1:
            count += 1
        near = self._view(self._ids[at - count : at])
        inserted = self._time(at)
        first = self._view(self._ids[: min(HEAD * 2, at - 1)], archived=True)
        for length in range(min(len(near), len(first) // 2), 0, -1):
            copies, originals = near[-length:], first[:length]
            if all(map(_Seen.copies, copies, originals, [inserted] * length)):
                self._note(copies, originals)
                return self._ids[at] - copies[0].id
        return 0

    def _tail(self, at: int, before: list[_Seen]) -> int | None:
        """Note the copies after a summary; return the first message that stays."""
        count = 1
        while (
            count < TAIL
            and at + count < len(self._ids)
            and self._ids[at + count] == self._ids[at] + count
        ):
            count += 1
        after = self._view(self._ids[at : at + count], summary=self._ids[at])
        inserted = self._time(at)
        starts = [n for n, row in enumerate(before) if after and after[0].copies(row, inserted)]
        best: list[tuple[_Seen, _Seen]] = []
        for start in starts:
            pairs = _pairs(after, before[start:], inserted)
            if len(pairs) >= len(best):  # of equally long ones the last
                best = pairs
        self._note(*zip(*best, strict=True)) if best else None
        return self._origin(best[0][1].id) if best else None

    def _time(self, at: int) -> Any:
        return next((row.at for row in self._view(self._ids[at : at + 1])), None)

    def _note(self, copies: Sequence[_Seen], originals: Sequence[_Seen]) -> None:
        for copy, original in zip(copies, originals, strict=True):
            self._copies[copy.id] = self._origin(original.id)

    def _origin(self, id: int) -> int:
        return self._copies.get(id, id)

    def _view(
        self, ids: Sequence[int], *, archived: bool = False, summary: int | None = None
    ) -> list[_Seen]:
        """Return what rows say; of a `summary`, what it was merged into, if that is anything."""
        rows = self._tables.view(ids, archived=archived) if ids else ()
        found = [_Seen(id, at, _says(*cells)) for id, *cells, at in rows]
        if summary is not None and found and found[0].id == summary and not found[0].says[1]:
            return found[1:]
        return found


def _pairs(after: list[_Seen], before: list[_Seen], inserted: Any) -> list[tuple[_Seen, _Seen]]:
    """Pair copies with what they are copies of, in order, until a row that is none comes."""
    pairs: list[tuple[_Seen, _Seen]] = []
    at = 0
    for row in after:
        left = range(at, len(before))
        found = next((n for n in left if row.copies(before[n], inserted)), None)
        if found is None and not kind_of(row.says[1]):
            break
        if found is not None:
            pairs.append((row, before[found]))
            at = found + 1
    return pairs


def _says(role: str, content: Any, calls: Any, call: Any) -> tuple[str, ...]:
    """Return what tells a message from others; results and pictures are shortened in copies."""
    if role == "tool":
        return role, str(call)
    text = content_of(content).text
    if text.startswith(_PRIOR):
        text = text.removeprefix(_PRIOR).partition(_MERGED)[0]
    elif text.startswith(_STARTS):
        text = ""
    return role, text.strip(), str(calls or "")
