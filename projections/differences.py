"""What differs between two lists of rows, or of a provider's messages, like a text diff of them."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from onrecord.projections.rows import Row
from onrecord.transcript.codec import canonical

WORDS_COMPARED = 600
"""Words and marks in which two texts may differ and still be compared word by word."""

Kind: TypeAlias = Literal["same", "added", "changed", "removed"]
Word: TypeAlias = tuple[Literal["=", "-", "+"], str]


class Message(msgspec.Struct, frozen=True):
    """One message of a provider's request. `role`: whose it is, or the field that it stands in."""

    role: str
    text: str
    sent: Any


class Difference(msgspec.Struct, frozen=True):
    """One row or message at two points. `before` or `after` is None where it wasn't there."""

    kind: Kind
    before: Row | Message | None
    after: Row | Message | None


def compare_rows(before: Sequence[Row], after: Sequence[Row]) -> Iterator[Difference]:
    """Yield rows in the order of `after`, those that are gone where they stood.

    A row is the same one by its id; of which events it is made says nothing of what it says. One
    that only stands elsewhere now has changed.
    """
    start, end = _alike(before, after)
    yield from (Difference("same", row, row) for row in before[:start])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    were, are = {row.id: row for row in old}, {row.id for row in new}
    for tag, i, i2, j, j2 in _blocks([row.id for row in old], [row.id for row in new]):
        if tag == "equal":
            for was, now in zip(old[i:i2], new[j:j2], strict=True):
                yield Difference("same" if _says_the_same(was, now) else "changed", was, now)
            continue
        yield from (Difference("removed", row, None) for row in old[i:i2] if row.id not in are)
        for row in new[j:j2]:
            known = were.get(row.id)
            yield Difference("added" if known is None else "changed", known, row)
    yield from (Difference("same", row, row) for row in after[len(after) - end :])


def _says_the_same(was: Row, now: Row) -> bool:
    return was == now or replace(was, versions=()) == replace(now, versions=())


def messages_of(request: Mapping[str, Any]) -> list[Message]:
    """Return the messages of a provider's request in order, the system text as one of them."""
    return [
        _message(field, one)
        for field, value in request.items()
        for one in (value if isinstance(value, list) else [value])
    ]


def compare_messages(before: Sequence[Message], after: Sequence[Message]) -> Iterator[Difference]:
    """Yield messages like compare_rows. What stands for another of its role has changed."""
    start, end = _alike(before, after)
    yield from (Difference("same", one, one) for one in before[:start])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    for tag, i, i2, j, j2 in _blocks([_key(one) for one in old], [_key(one) for one in new]):
        if tag == "equal":
            yield from (Difference("same", one, one) for one in new[j:j2])
        else:
            yield from _replaced(old[i:i2], new[j:j2])
    yield from (Difference("same", one, one) for one in after[len(after) - end :])


def words_between(before: str, after: str) -> list[Word]:
    """Return two texts as one, in pieces: kept (=), gone (-) and new (+)."""
    old: list[str] = _TOKENS.findall(before)
    new: list[str] = _TOKENS.findall(after)
    start, end = _alike(old, new)
    middle, other = old[start : len(old) - end], new[start : len(new) - end]
    found: list[Word] = [("=", "".join(old[:start]))]
    if len(middle) + len(other) > WORDS_COMPARED:
        found.extend((("-", "".join(middle)), ("+", "".join(other))))
    else:
        found.extend(_changed_words(middle, other))
    found.append(("=", "".join(old[len(old) - end :])))
    return [word for word in found if word[1]]


def _changed_words(old: Sequence[str], new: Sequence[str]) -> list[Word]:
    """Return what two lists of words differ in; blank space between changes is part of them."""
    found: list[Word] = []
    gone = come = ""
    for tag, i, i2, j, j2 in _blocks(old, new):
        kept = "".join(old[i:i2])
        if tag == "equal" and kept.strip():
            found.extend((("-", gone), ("+", come), ("=", kept)))
            gone = come = ""
        else:
            gone += kept
            come += "".join(new[j:j2])
    found.extend((("-", gone), ("+", come)))
    return found


_TEXT_ALONE = {"role", "type", "content", "parts", "text"}
"""Keys of a message that is a text and nothing else."""
_TOKENS = re.compile(r"\s+|\w+|[^\w\s]")
_Block: TypeAlias = tuple[str, int, int, int, int]


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterable[_Block]:
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _alike(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int]:
    """Return how many items at the beginning and at the end are equal."""
    most = min(len(old), len(new))
    start = next((n for n in range(most) if old[n] != new[n]), most)
    most -= start
    end = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    return start, end


def _replaced(old: Sequence[Message], new: Sequence[Message]) -> Iterator[Difference]:
    """Pair the messages of a role in their order; the rest is gone or new."""
    waiting: dict[str, deque[Message]] = defaultdict(deque)
    for one in old:
        waiting[one.role].append(one)
    paired: dict[int, Message] = {}
    for place, one in enumerate(new):
        if waiting[one.role]:
            paired[place] = waiting[one.role].popleft()
    for left in old:
        if any(left is one for one in waiting[left.role]):
            yield Difference("removed", left, None)
    for place, one in enumerate(new):
        known = paired.get(place)
        yield Difference("added" if known is None else "changed", known, one)


def _message(field: str, sent: Any) -> Message:
    if not isinstance(sent, Mapping):
        return Message(field, sent if isinstance(sent, str) else canonical(sent), sent)
    role = str(sent.get("role") or sent.get("type") or field)
    text = _text_alone(sent)
    return Message(role, canonical(sent) if text is None else text, sent)


def _text_alone(sent: Mapping[str, Any]) -> str | None:
    """Return the text of a message or block that is a text and nothing else."""
    inner = next((sent[name] for name in ("content", "parts", "text") if name in sent), None)
    if isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], Mapping):
        inner = _text_alone(inner[0])
    return inner if isinstance(inner, str) and sent.keys() <= _TEXT_ALONE else None


def _key(one: Message) -> str:
    return canonical(one.sent)
