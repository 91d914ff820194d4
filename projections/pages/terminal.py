"""What all pages share: a terminal, and text that is safe on it. Message text is never trusted."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

COLOURS = {
    "user": "cyan",
    "assistant": "green",
    "tool": "magenta",
    "summary": "yellow",
    "undelivered": "red",
    "in_doubt": "yellow",
    "partial": "yellow",
    "delivered": "green",
    "failed": "red",
    "not_sent": "red",
}


_HARMLESS = "\n\t\u3000\u200c\u200d"
"""Not printable as Python has it: line ends, the ideographic space, joiners of Persian and of emoji."""


def plain(text: str) -> str:
    """Make text safe for a terminal: no control or direction character acts."""
    return "".join(
        char if char.isprintable() or char in _HARMLESS else char.encode("unicode_escape").decode()
        for char in text.replace("\r\n", "\n")
    )


@contextlib.contextmanager
def open_private(path: Path) -> Iterator[TextIO]:
    """Open a file for writing that only its owner can read.

    What stood there goes when all is written, and not before; a device is written to as it is.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8") as device:
            yield device
        return
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise


def is_database(path: Path) -> bool:
    """Tell whether an SQLite file stands there, such as the log itself."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def console() -> Console:
    """Return the terminal: colour only where there is one, 80 columns in a pipe."""
    given = os.environ.get("COLUMNS", "")
    wide = None if sys.stdout.isatty() else (given.isdecimal() and int(given)) or 80
    return Console(width=wide, highlight=False, markup=False, emoji=False)


@contextlib.contextmanager
def progress(noun: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show how far long work is, on a terminal's stderr alone; give what is to be told of it."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    page = Console(stderr=True, highlight=False)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(noun), TimeRemainingColumn())
    with Progress(*columns, console=page, transient=True, disable=not page.is_terminal) as shown:
        task = shown.add_task(noun, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def table(*columns: str) -> Table:
    """Return an empty table without lines."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def mark(word: str) -> Text:
    """Return a word in the colour that it has everywhere."""
    return Text(word.replace("_", " "), style=COLOURS.get(word, ""))
