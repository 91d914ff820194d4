"""Tables for other programs, row by row, and as CSV.

A cell of CSV that begins like a formula gets a ' before it, since message text is anybody's and a
spreadsheet would run it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TextIO

from onrecord.projections.pages.terminal import plain

Kind = Literal["text", "number", "flag", "time", "texts", "numbers"]

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell may begin with that a spreadsheet takes for a formula, full-width forms among them."""


class Column(NamedTuple):
    """A column: its name, and what stands in it. A time is aware, and None where there is none."""

    name: str
    kind: Kind


Row = Sequence[Any]
"""A cell for each column, in order."""


def write_csv(columns: Sequence[Column], rows: Iterable[Row], out: TextIO) -> None:
    """Write rows as CSV with a heading; lists are joined by blanks, times are ISO 8601 in UTC.

    A terminal gets no character that acts.
    """
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in columns])
    safe = plain if out.isatty() else str
    for row in rows:
        writer.writerow([safe(_cell(value)) for value in row])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    text = value if isinstance(value, str) else " ".join(map(str, value))
    # A blank before it is skipped by some programs, and the formula runs all the same.
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text
