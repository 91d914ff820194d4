"""What all commands share: the application, where the log is, JSON, and one line for what is wrong."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated, Any, NoReturn

import msgspec
import typer

from onrecord import __version__
from onrecord.projections.pages.terminal import plain
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.storage.opening import is_in_memory

app = typer.Typer(
    name="onrecord",
    help="If it was delivered, it's on record: the log and the transcript of a chat agent.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Session = Annotated[str, typer.Argument(help="The session's name.")]
OneOrAll = Annotated[str | None, typer.Argument(help="One session; all without it.")]


class _Place:
    """Where the log is, as the command line says."""

    url = "sqlite:///onrecord.db"


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"onrecord {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    db: Annotated[
        str, typer.Option("--db", envvar="ONRECORD_DB", help="Where the log is, as a URL.")
    ] = _Place.url,
    _version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", is_eager=True, callback=_say_version),
    ] = False,
) -> None:
    _Place.url = db


@contextlib.contextmanager
def open_log(*, create: bool = False, migrate: bool = False) -> Iterator[TranscriptLog]:
    """Open the log that the command line names."""
    if is_in_memory(_Place.url):
        fail(f"--db {_Place.url!r} is a log in memory, gone with the command; use sqlite:///path")
    with TranscriptLog.open(_Place.url, create=create, migrate=migrate) as log:
        yield log


def note(message: str) -> None:
    """Say in one line what a person should know, beside what programs read."""
    print(f"onrecord: {plain(message)}", file=sys.stderr)


def fail(message: str) -> NoReturn:
    """Say in one line what is wrong and leave with 2."""
    note(message)
    sys.exit(2)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def one_of(option: str, given: str, words: str) -> str:
    """Return a word that is one of several (`a|b`); leave with one line if it is none."""
    if given not in words.split("|"):
        fail(f"{option} takes one of {words.replace('|', ', ')}, not {given!r}")
    return given


def known(log: TranscriptLog, session: str | None) -> None:
    """Leave with one line if the log has no such session; None stands for all of them."""
    if session is not None and log.version(session) == 0:
        fail(f"no session {session!r} in {log.database.where}; `onrecord sessions` lists them")


def chosen(log: TranscriptLog, session: str | None) -> list[str]:
    """Return the name of a session that is known, or of all of them."""
    known(log, session)
    return [head.name for head in log.sessions()] if session is None else [session]
