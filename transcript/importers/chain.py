"""Rows that name the row before them: which of a file's rows its program shows.

Such a program shows what it reaches from its newest row, parent by parent. The file's order is what
happened; the pointers only tell where the program went back, and which rows it no longer reaches.

A step of the conversation is a user's message, or a response with the results of its calls: programs
store a step as several rows that point at one another in all sorts of ways, and reach all of them.
Rows that aren't messages belong to the step that they hang on. What is told of a row follows from the
rows before it alone, so a file that has grown is read as it was.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

START = -1
"""Stands for what is before the first step."""


@dataclass(slots=True)
class Left:
    """Steps that the program leaves behind, going on from one before them.

    `turn`: key of the first turn that is opened among them; `hidden`: how many stand before it, of a turn
    that the program goes on showing; `count`: how many there are; `place`: where the first one stands.
    """

    turn: str
    hidden: int
    count: int
    place: str

    def told(self, count: int) -> str:
        """Say that `count` of them are shown no more, though nobody went back."""
        file, _, line = self.place.rpartition(":")
        first = f"line {line}" if file else line
        steps = "1 step" if count == 1 else f"{count} steps"
        return f"the program goes on from before {first} and doesn't show {steps} from there on"


@dataclass(slots=True)
class Chain:
    """The steps of one session. Keeps ids and numbers, and no text."""

    _step_of: dict[str, int] = field(default_factory=dict[str, int])
    _parent: array[int] = field(default_factory=lambda: array("q"))
    _depth: array[int] = field(default_factory=lambda: array("q"))
    _turns: dict[int, str] = field(default_factory=dict[int, str])
    _places: list[str] = field(default_factory=list[str])
    _shown: list[int] = field(default_factory=list[int])

    def knows(self, id: str) -> bool:
        """Tell whether there is a row of this id."""
        return id in self._step_of

    @property
    def tip(self) -> int:
        """Return the newest step that is shown."""
        return self._shown[-1] if self._shown else START

    def step(self, id: str | None) -> int | None:
        """Return the step of a row, START for none, None for a row that isn't there."""
        return START if not id else self._step_of.get(id)

    def hang(self, id: str, step: int | None) -> None:
        """Put a row to a step that is there; without one to the newest."""
        if id:
            self._step_of[id] = self.tip if step is None else step

    def add(self, id: str, parent: int | None, place: str, turn: str = "") -> Left | None:
        """Begin a step after `parent`; `turn`: the key of the turn that it opens.

        Return what the program leaves behind by it. A parent that isn't there is the newest step.
        """
        parent = self.tip if parent is None else parent
        left = self.go_to(parent)
        number = len(self._parent)
        self._parent.append(parent)
        self._depth.append(len(self._shown))
        self._places.append(place)
        self._shown.append(number)
        if turn:
            self._turns[number] = turn
        self.hang(id, number)
        return left

    def go_to(self, step: int) -> Left | None:
        """Make a step the newest one that is shown; return what is left behind."""
        if step == self.tip:
            return None
        path: list[int] = []
        while step != START and not self._is_shown(step):
            path.append(step)
            step = self._parent[step]
        at = 0 if step == START else self._depth[step] + 1
        left = self._shown[at:]
        del self._shown[at:]
        for number in reversed(path):
            self._depth[number] = len(self._shown)
            self._shown.append(number)
        return self._left(left)

    def turn_before(self, ids: list[str]) -> str | None:
        """Return the turn before the first one whose message is among these rows.

        None if none of them opens a turn that is shown; empty if it is the first of all.
        """
        known = (self._step_of.get(id, START) for id in ids)
        kept = [self._depth[step] for step in known if step in self._turns and self._is_shown(step)]
        return self._turn_up_to(min(kept)) if kept else None

    def turn_before_from(self, id: str) -> str | None:
        """Return the turn before the first one that is opened at a row or after it; see turn_before."""
        step = self._step_of.get(id, START)
        if step == START or not self._is_shown(step):
            return None
        opening = (s for s in self._shown[self._depth[step] :] if s in self._turns)
        first = next(opening, None)
        return None if first is None else self._turn_up_to(self._depth[first])

    def _turn_up_to(self, depth: int) -> str:
        """Return the last turn that is opened before a depth."""
        found = (self._turns[s] for s in reversed(self._shown[:depth]) if s in self._turns)
        return next(found, "")

    def _is_shown(self, step: int) -> bool:
        depth = self._depth[step]
        return depth < len(self._shown) and self._shown[depth] == step

    def _left(self, left: list[int]) -> Left | None:
        if not left:
            return None
        turn_at = next((n for n, step in enumerate(left) if step in self._turns), len(left))
        turn = self._turns[left[turn_at]] if turn_at < len(left) else ""
        return Left(turn, turn_at, len(left), self._places[left[0]])
