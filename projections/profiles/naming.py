"""Ids and tool names in the form that a provider asks for."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable
from dataclasses import dataclass

_ALPHANUMERIC = string.digits + string.ascii_letters


@dataclass(frozen=True)
class Form:
    """The form of a provider's ids or names: which pass as they are, and how others are made.

    `allowed`: what passes, matched as a whole. `prefix`: put before what is derived. `length`: of
    the derived part, in characters from 0-9 A-Z a-z.
    """

    allowed: re.Pattern[str]
    prefix: str
    length: int

    def passes(self, text: str) -> bool:
        """Say whether the text is of this form."""
        return self.allowed.fullmatch(text) is not None

    def derived(self, seed: str) -> str:
        """Derive a text of this form from any seed; equal seeds give equal texts."""
        number = int.from_bytes(hashlib.sha256(seed.encode("utf-8", "replace")).digest())
        characters = []
        for _ in range(self.length):
            number, digit = divmod(number, len(_ALPHANUMERIC))
            characters.append(_ALPHANUMERIC[digit])
        return self.prefix + "".join(characters)


class Allotment:
    """Gives each original its own text of a form; no two get the same in one request.

    An original that has the form keeps its text, and no derived text takes it away, wherever in the
    request that original stands.
    """

    def __init__(self, form: Form, originals: Iterable[str]) -> None:
        self._form = form
        self._kept = frozenset(filter(form.passes, originals))
        self._free = set(self._kept)
        self._made: set[str] = set()

    def keeps(self, original: str) -> bool:
        """Take the original as it is, if it passes and is free; say whether it was."""
        if original in self._free:
            self._free.remove(original)
            return True
        return False

    def make(self, *, seed: str, readable: str = "") -> str:
        """Take `readable` if it passes and is free, else a hash of the seed."""
        text, attempt = readable, 0
        while not self._form.passes(text) or text in self._kept or text in self._made:
            text = self._form.derived(f"{seed}\x00{attempt}")
            attempt += 1
        self._made.add(text)
        return text


class CallIds:
    """The ids of a request's calls: each call has its own, also where turns use the same id."""

    def __init__(self, form: Form, originals: Iterable[str]) -> None:
        self._allotment = Allotment(form, originals)
        self._uses: dict[tuple[str, str], int] = {}

    def take(self, turn: str, call: str) -> str:
        """Return the id for the next call of this id in this turn."""
        use = self._uses.get((turn, call), 0)
        self._uses[turn, call] = use + 1
        if self._allotment.keeps(call):
            return call
        return self._allotment.make(seed=f"{len(turn)}:{turn}:{call}\x00{use}")


class ToolNames:
    """The tool names of a request: one for one, with the original still readable."""

    def __init__(self, form: Form, originals: Iterable[str]) -> None:
        self._allotment = Allotment(form, originals)
        self._given: dict[str, str] = {}

    def take(self, name: str) -> str:
        """Return the name to use for this tool throughout the request."""
        if name not in self._given:
            readable = re.sub("[^a-zA-Z0-9_-]", "_", name)
            kept = self._allotment.keeps(name)
            self._given[name] = name if kept else self._allotment.make(seed=name, readable=readable)
        return self._given[name]


TOOL_NAME = Form(re.compile(r"[a-zA-Z0-9_-]{1,64}"), "tool_", 24)
