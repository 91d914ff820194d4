"""What ledger and log say of a session, by the rows that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from onrecord.transcript.events import Target
from onrecord.transcript.importers.rows import Outcome, SourceRows


class Saying(Protocol):
    """Something that was told of a session and can be said as events."""

    def tell(self, rows: SourceRows) -> None:
        """Say it now."""
        ...


@dataclass(slots=True)
class Delivery:
    """A text that went out, or should have. `message`: id of the row whose text it is.

    `key`: what the place is known by when it is read again.
    """

    name: str
    text: str
    at: int | None
    place: str
    outcome: Outcome
    message: int | None = None
    target: Target | None = None
    reason: str = ""
    key: str = ""

    def tell(self, rows: SourceRows) -> None:
        """Say it in the turn that is open, or was last."""
        rows.delivered(
            self.name, self.text, self.at, self.place, target=self.target, outcome=self.outcome,
            message=None if self.message is None else str(self.message), reason=self.reason,
            key=self.key,
        )  # fmt: skip


@dataclass(slots=True)
class Fault:
    """Something that is missing. `key`: what the place is known by when it is read again."""

    code: str
    place: str
    detail: str
    key: str = ""

    def tell(self, rows: SourceRows) -> None:
        """Say it of the turn that is open, or was last."""
        rows.fault(self.code, self.place, self.detail, key=self.key)


@dataclass(slots=True)
class LostMessage:
    """A message of the user that came in and has no row; `after`: what became of its answer."""

    name: str
    text: str
    at: int
    fault: Fault
    sender: str = ""
    after: list[Fault] = field(default_factory=list)

    def tell(self, rows: SourceRows) -> None:
        """Say it as a turn of its own, which the transcript's own rows know nothing of."""
        rows.close(self.at)
        rows.user(self.name, self.text, self.at, self.fault.place, sender=self.sender or None)
        for fault in (self.fault, *self.after):
            fault.tell(rows)
        rows.close(self.at)


@dataclass(slots=True)
class Told:
    """What is said after a row, before one of the user, at the end of the turn of one, at the end."""

    after: dict[int, list[Saying]] = field(default_factory=dict)
    before: dict[int, list[Saying]] = field(default_factory=dict)
    at_end: dict[int, list[Saying]] = field(default_factory=dict)
    lost_at_end: list[Saying] = field(default_factory=list)

    def of_originals(self, copies: Mapping[int, int]) -> None:
        """Say of rows that are copies what they are copies of."""
        for at in (self.after, self.before, self.at_end):
            for row in [row for row in at if row in copies]:
                for saying in at.pop(row):
                    if isinstance(saying, Delivery) and saying.message is not None:
                        saying.message = copies.get(saying.message, saying.message)
                    at.setdefault(copies[row], []).append(saying)

    def put(self, row: int | None, asked: int | None, saying: Saying) -> None:
        """Say something after a row, else at the end of the turn of the user's row, else at the end."""
        if row is not None:
            self.after.setdefault(row, []).append(saying)
        elif asked is not None:
            self.at_end.setdefault(asked, []).append(saying)
        else:
            self.lost_at_end.append(saying)


NOTHING = Told()
