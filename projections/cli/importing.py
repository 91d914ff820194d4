"""Reading files into the log."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from onrecord.projections.cli.command import Json, app, fail, one_of, open_log, print_json
from onrecord.projections.pages.terminal import counted, plain, progress
from onrecord.transcript.importers.source import FORMATS
from onrecord.transcript.log import TranscriptLog

KINDS = "|".join((*FORMATS, "jsonl"))


class Done(msgspec.Struct):
    """What became of one file."""

    file: str
    format: str
    added: int
    known: int
    messages: int | None = None
    sessions: list[str] = []
    faults: dict[str, int] = {}


Work = Callable[[TranscriptLog], Done]


@app.command("import", epilog="Example: onrecord import ~/.hermes/state.db")
def import_(
    files: Annotated[
        list[str],
        typer.Argument(metavar="PATH…", help="Files or folders; - is JSON lines on stdin."),
    ],
    kind: Annotated[
        str | None,
        typer.Option("--format", metavar=KINDS, help="What they are; found by looking else."),
    ] = None,
    json: Json = False,
) -> None:
    """Read what a bot or agent left behind into the log.

    Its database, its session files, or JSON lines of `onrecord export`. They are only read.
    What was imported before adds nothing, so a file that has grown can be imported again.
    """
    if kind is not None:
        one_of("--format", kind, KINDS)
    with contextlib.ExitStack() as stack:
        # All of them first: what is wrong in one makes no log and imports no half of the files.
        works = [_work(name, kind, stack) for name in files]
        log = stack.enter_context(open_log(create=True))
        done = [work(log) for work in works]
    if json:
        print_json({"files": done})
    else:
        for one in done:
            _tell(one)


def _work(name: str, kind: str | None, stack: contextlib.ExitStack) -> Work:
    """Return what imports a file into a log."""
    from onrecord.transcript.importers.running import check_source, importer_of

    path = Path(name)
    if name == "-" or kind == "jsonl":
        return _json_lines(name, stack)
    _check_kind_of_file(name)
    try:
        importer = importer_of(path, kind)
        if importer is None and _is_json_lines(path):
            return _json_lines(name, stack)
        if importer is None:
            fail(f"{name} {_unknown(path)}")
        if path.is_dir() and not importer.looks_right(path, b""):
            fail(f"{name} holds nothing of {importer.FORMAT}; name another folder, or a file of it")
        check_source(importer, path)
    except OSError as error:
        fail(f"can't read {name}: {error.strerror}; name a file or folder, or - for stdin")

    def work(log: TranscriptLog) -> Done:
        from onrecord.transcript.importers.running import import_source

        with progress("messages") as told:
            done = import_source(log, importer, path, told)
        return Done(
            name, done.format, done.added, done.known, done.messages, done.sessions, done.faults
        )

    return work


def _check_kind_of_file(name: str) -> None:
    """Leave with one line if a name is no file's and no folder's: a pipe can't be looked at first."""
    path = Path(name)
    if not name:
        fail("a file's name is empty; name a file or folder, or - for stdin")
    if path.exists() and not (path.is_file() or path.is_dir()):
        fail(f"{name} is neither a file nor a folder; --format jsonl reads JSON lines from a pipe")


def _json_lines(name: str, stack: contextlib.ExitStack) -> Work:
    """Check a file of JSON lines; return what imports it."""
    from onrecord.transcript.interchange import checked_lines

    write = stack.enter_context(checked_lines(stack.enter_context(_lines(name)), name))

    def work(log: TranscriptLog) -> Done:
        done = write(log)
        return Done(name, "jsonl", done.added, done.known, sessions=list(done.sessions))

    return work


@contextlib.contextmanager
def _lines(name: str) -> Iterator[Any]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 (closed below; only opening may fail here)
    except OSError as error:
        fail(f"can't read {name}: {error.strerror}; name a file of JSON lines, or - for stdin")
    with file:
        yield file


def _is_json_lines(path: Path) -> bool:
    """Tell whether the file is of events, as `onrecord export` writes them, or begins broken."""
    from onrecord.transcript.importers.reading import first_object
    from onrecord.transcript.importers.source import HEAD

    if path.is_dir():
        return False
    with path.open("rb") as file:
        head = file.read(HEAD)
    first = first_object(head)
    begun = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "session" in first if first is not None else begun[:1] in (b"", b"{")


def _unknown(path: Path) -> str:
    """Say what a file of no known format is, and what to do."""
    from onrecord.transcript.storage.files import is_a_log

    if path.is_file() and is_a_log(path):
        return "is a log already; read it with --db, or import what `onrecord export` writes of it"
    known = KINDS.replace("|", ", ")
    return f"is nothing that `onrecord import` knows ({known}); --format says which of them it is"


def _tell(done: Done) -> None:
    home = str(Path.home())
    name = "~" + done.file.removeprefix(home) if done.file.startswith(home + "/") else done.file
    name = "standard input" if name == "-" else name
    what = "" if done.format == "jsonl" else f" ({done.format})"
    read = ""
    if done.messages is not None:
        read = f"{counted(done.messages, 'message')} of {counted(len(done.sessions), 'session')}; "
    added = counted(done.added, "event")
    print(plain(f"{name}{what}: {read}{added} added, {done.known:,} known already"))
    if done.faults:
        told = ", ".join(f"{number} {code}" for code, number in sorted(done.faults.items()))
        print(plain(f"  found in it: {told}; `onrecord audit` tells which"))
