"""What two databases say differently. Statements have `?` for parameters in both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of one database.

    `clock`: µs since 1970 by its own clock. `settled`: a condition on a record `r` that no record with
    a lower position can still be committed. `blank_chain`: 32 zero bytes. `snapshot`: begins a
    transaction whose reads all see the same. `in_turn`: a statement with a name as parameter, which gets
    past no other transaction that said it of that name, until its end; empty where there is one writer
    at a time.
    """

    name: str
    clock: str
    settled: str
    blank_chain: str
    snapshot: str
    in_turn: str = ""


SQLITE = Dialect(
    name="sqlite",
    # Milliseconds are what julianday() keeps.
    clock="CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000",
    settled="1",  # one writer at a time: positions are committed in order
    blank_chain="zeroblob(32)",
    snapshot="BEGIN",
)


class Connection(Protocol):
    """A driver's connection, as all statements of ours use it."""

    dialect: Dialect

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Any: ...
    def executemany(self, statement: str, parameters: Any, /) -> Any: ...
    def next_position(self) -> int | None:
        """Return the position that the next record gets, None if the database gives it itself."""
        ...


def per_dialect(make: Callable[[Dialect], str]) -> Callable[[Dialect], str]:
    """Return a function that makes a statement once for each dialect."""
    made: dict[str, str] = {}

    def statement(dialect: Dialect) -> str:
        found = made.get(dialect.name)
        if found is None:
            found = made[dialect.name] = make(dialect)
        return found

    return statement
