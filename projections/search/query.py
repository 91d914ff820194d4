"""What is searched for: words and phrases, and texts as they are compared.

A row is found if it contains each of the words, wherever in it and as part of a longer word, too.
Neither case nor accents matter, nor which of Unicode's ways a character is written.
"""

from __future__ import annotations

import re
import unicodedata

import msgspec

from onrecord.transcript.mending import storable

_QUOTED = re.compile(r'"([^"]*)"|([^\s"]+)')
_MARKS = re.compile("[\u0300-\u036f]")
_BLANKS = re.compile(r"[\s\x00]")
_ASCII_BLANKS = dict.fromkeys((*range(9, 14), *range(28, 32), 0), " ")


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """`words`: folded; all of them must be there. `since`: µs since 1970 UTC. `limit`: rows."""

    words: tuple[str, ...]
    session: str | None = None
    role: str | None = None
    since: int | None = None
    limit: int = 20


def words_of(said: list[str]) -> tuple[str, ...]:
    """Return the words and phrases that a person gave, folded, each once.

    What is in quotes is one phrase, and so is what the shell was given in quotes. Nothing in it has
    another meaning: no operators, no wildcards.
    """
    found: list[str] = []
    for argument in said:
        if '"' in argument:
            found += [phrase or word for phrase, word in _QUOTED.findall(argument)]
        else:
            found.append(argument)
    folded = (fold(storable(word)).strip() for word in found)
    return tuple(dict.fromkeys(word for word in folded if word))


def fold(text: str) -> str:
    """Return a text as it is compared: no case, no accents, one kind of blank space."""
    if text.isascii():
        return text.translate(_ASCII_BLANKS).lower()
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return _BLANKS.sub(" ", unicodedata.normalize("NFC", bare))
