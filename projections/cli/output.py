"""Where a command writes what programs read: the terminal, or a file that only its owner can read."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, TextIO

import typer

from onrecord.projections.cli.command import fail
from onrecord.projections.pages.tabular import Column, Row, write_csv
from onrecord.projections.pages.terminal import is_database, open_private

Out = Annotated[Path | None, typer.Option(help="Write here instead of the terminal.")]
FORMAT_HELP = "How it is written; in CSV a ' stands before what looks like a formula."
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Processes that share the work; one a core without.")
]


def check_output(form: str, out: Path | None) -> None:
    """Leave with one line where that can't be written there. Call it before a log is opened: closing
    any descriptor of its file would drop SQLite's locks.
    """
    if out is not None and form == "table":
        fail("--out takes no table; choose another --format")
    if out is not None and is_database(out):
        fail(f"{out} is a database and was left untouched; choose another place with --out")
    if form == "parquet":
        if out is None and sys.stdout.isatty():
            fail("Parquet isn't for a terminal; name a file with --out")
        if find_spec("pyarrow") is None:
            fail("--format parquet needs pyarrow; install it with: pip install 'onrecord[parquet]'")


@contextlib.contextmanager
def output(out: Path | None) -> Iterator[TextIO]:
    """Give what to write to; leave with one line if that fails."""
    if out is None:
        yield sys.stdout
        return
    try:
        with open_private(out) as file:
            yield file
    except OSError as error:
        fail(f"can't write {out}: {error.strerror}; choose another place with --out")


def write_rows(form: str, columns: Sequence[Column], rows: Iterable[Row], file: TextIO) -> None:
    """Write rows as CSV or Parquet."""
    if form == "parquet":
        from onrecord.projections.pages.parquet import write_parquet

        write_parquet(columns, rows, file)
    else:
        write_csv(columns, rows, file)
