"""The command: `onrecord`. Thin: each command reads the log, builds, and prints.

Other folders add commands through the entry point group `onrecord.commands` (a callable each).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import typer

from onrecord import __version__
from onrecord.projections import pages
from onrecord.projections.deliveries import deliveries as histories
from onrecord.projections.findings import findings_of
from onrecord.projections.promise import check_reading, check_texts
from onrecord.projections.transcript import build_checked, folded
from onrecord.transcript.errors import OnRecordError
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

PROFILES = "neutral|openai|responses|anthropic|gemini|mistral|converse"
_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
_Session = Annotated[str, typer.Argument(help="The session's name.")]


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
def _log(*, create: bool = False, migrate: bool = False) -> Iterator[TranscriptLog]:
    if is_in_memory(_Place.url):
        _fail(f"--db {_Place.url!r} is a log in memory, gone with the command; use sqlite:///path")
    with TranscriptLog.open(_Place.url, create=create, migrate=migrate) as log:
        yield log


def _fail(message: str) -> NoReturn:
    """Say in one line what is wrong and leave with 2."""
    print(f"onrecord: {pages.plain(message)}", file=sys.stderr)
    sys.exit(2)


def _print_json(value: Any) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")


def _known(log: TranscriptLog, session: str) -> None:
    if log.version(session) == 0:
        _fail(f"no session {session!r} in {log.database.where}; `onrecord sessions` lists them")


@app.command("import", epilog="Example: onrecord import incident.jsonl")
def import_(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="JSON lines; - is stdin.")],
) -> None:
    """Read events from JSON lines into the log. A file that was read before adds nothing."""
    from onrecord.transcript.interchange import checked_lines

    with contextlib.ExitStack() as stack:
        # All of them first: what is wrong in one makes no log and imports no half of the files.
        opened = [(name, stack.enter_context(_lines(name))) for name in files]
        checked = [
            (name, stack.enter_context(checked_lines(lines, name))) for name, lines in opened
        ]
        log = stack.enter_context(_log(create=True))
        for name, write in checked:
            done = write(log)
            told = "standard input" if name == "-" else name
            added = pages.counted(done.added, "event")
            print(pages.plain(f"{told}: {added} added, {done.known} known already"))


@contextlib.contextmanager
def _lines(name: str) -> Iterator[Any]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 (closed below; only opening may fail here)
    except OSError as error:
        _fail(f"can't read {name}: {error.strerror}; name a file of JSON lines, or - for stdin")
    with file:
        yield file


@app.command(epilog="Example: onrecord export chat-1 --out chat-1.jsonl")
def export(
    session: _Session,
    out: Annotated[Path | None, typer.Option(help="Write here instead of the terminal.")] = None,
) -> None:
    """Write a session's events as JSON lines, for `onrecord import` or any other program."""
    from onrecord.transcript.interchange import export_lines

    # Before the log opens: closing any descriptor of its file would drop SQLite's locks.
    if out is not None and pages.is_database(out):
        _fail(f"{out} is a database and was left untouched; choose another place with --out")
    with _log() as log:
        _known(log, session)
        if out is None:
            for line in export_lines(log, session):
                sys.stdout.write(line + "\n")
            return
        try:
            with pages.open_private(out) as file:
                file.writelines(line + "\n" for line in export_lines(log, session))
        except OSError as error:
            _fail(f"can't write {out}: {error.strerror}; choose another place with --out")


@app.command(epilog="Example: onrecord --db sqlite:///bot.db migrate")
def migrate(json: _Json = False) -> None:
    """Bring a log of an older schema up to date. Stop its writers first; it only goes forward."""
    from onrecord.transcript.storage.schema import SCHEMA_VERSION

    with _log(migrate=True) as log:
        found, where = log.database.found_schema, log.database.where
    if json:
        _print_json({"log": where, "from": found, "to": SCHEMA_VERSION})
    elif found == SCHEMA_VERSION:
        print(pages.plain(f"{where} has schema {found}, the newest: nothing to do"))
    else:
        print(pages.plain(f"{where}: from schema {found} to {SCHEMA_VERSION}"))


@app.command(epilog="Example: onrecord rebuild --jobs 4")
def rebuild(
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 1,
    json: _Json = False,
) -> None:
    """Project the whole log anew into the stored transcripts, beside what is read meanwhile."""
    from onrecord.projections.stored import StoredProjections

    with _log() as log, pages.progress("records") as told:
        done = StoredProjections(log).rebuild(told, jobs)
        sessions = len(log.sessions())
    if json:
        _print_json({"records": done, "sessions": sessions})
    else:
        what = f"{pages.counted(done, 'record')} of {pages.counted(sessions, 'session')}"
        print(f"projected {what}")


@app.command(epilog="Example: onrecord check chat-1")
def check(
    session: Annotated[str | None, typer.Argument(help="One session; all without it.")] = None,
    json: _Json = False,
) -> None:
    """Hold the stored transcripts against the log (exit 0: they follow from it, 1: some don't)."""
    from onrecord.projections.stored import StoredProjections

    with _log() as log:
        if session is not None:
            _known(log, session)
        names = [head.name for head in log.sessions()] if session is None else [session]
        stored = StoredProjections(log)
        faults = list(stored.check(names))
        behind = sorted(set(stored.behind()).intersection(names))
    if json:
        _print_json({"faults": faults, "sessions": len(names), "behind": behind})
    else:
        pages.show_faults(faults, len(names), len(behind))
    raise typer.Exit(1 if faults else 0)


@app.command(epilog="Example: onrecord project")
def project() -> None:
    """Keep the stored transcripts up with the log until interrupted. Several may run at once."""
    import signal

    from onrecord.projections.stored import Runner

    with _log() as log:
        runner = Runner(log)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: runner.stop())
        runner.run()
    for name, why in runner.failed.items():
        print(pages.plain(f"session {name!r} isn't projected: {why}"), file=sys.stderr)
    raise typer.Exit(1 if runner.failed else 0)


@app.command(epilog="Example: onrecord sessions --json")
def sessions(json: _Json = False) -> None:
    """List the sessions, the newest last."""
    with _log() as log:
        heads = sorted(log.sessions(), key=lambda head: head.updated_at)
    if json:
        _print_json({"sessions": [pages.head(head) for head in heads]})
    else:
        pages.show_sessions(heads)


@app.command(epilog="Example: onrecord show chat-1 --as openai")
def show(
    session: _Session,
    at: Annotated[int | None, typer.Option(min=0, help="As it stood at this version.")] = None,
    profile: Annotated[
        str, typer.Option("--as", metavar=PROFILES, help="As a provider's request.")
    ] = "neutral",
    full: Annotated[
        bool, typer.Option("--full", help="With what was compacted or undone.")
    ] = False,
    json: _Json = False,
) -> None:
    """Show the transcript: the rows that the model is given, checked against what was delivered."""
    if profile not in PROFILES.split("|"):
        _fail(f"no profile {profile!r}; --as takes one of {PROFILES.replace('|', ', ')}")
    with _log() as log:
        _known(log, session)
        if at is not None and at > (newest := log.version(session)):
            _fail(f"--at {at}: session {session!r} has no such version; its newest is {newest}")
        transcript, reading = build_checked(session, log.read(session), at=at, full=full)
    if profile != "neutral":
        from onrecord.projections.profiles import render, texts_of

        request = render(transcript.rows, profile)
        if not full:
            check_texts(session, reading, texts_of(profile, request))
        _print_json({"session": session, "version": transcript.version, **request})
    elif json:
        rows = [pages.row(row) for row in transcript.rows]
        _print_json({"session": session, "version": transcript.version, "rows": rows})
    else:
        pages.show_rows(transcript)


@app.command(epilog="Example: onrecord deliveries chat-1")
def deliveries(session: _Session, json: _Json = False) -> None:
    """Show what was sent: attempts, what the platform took, failures and doubt."""
    with _log() as log:
        _known(log, session)
        told = histories(log.read(session))
    if json:
        _print_json({"session": session, "deliveries": told})
    else:
        pages.show_deliveries(told)


@app.command(epilog="Example: onrecord audit --json")
def audit(
    session: Annotated[str | None, typer.Argument(help="One session; all without it.")] = None,
    json: _Json = False,
) -> None:
    """Find lost, doubted, repeated and differing replies (exit 0: none, 1: some, 2: error)."""
    with _log() as log:
        if session is not None:
            _known(log, session)
        names = [head.name for head in log.sessions()] if session is None else [session]
        found = []
        for name in names:
            conversation, reading = folded(log.read(name))
            check_reading(name, reading, conversation.rows(full=True), full=True)
            found.extend(findings_of(name, conversation))
    if json:
        _print_json({"findings": found})
    else:
        pages.show_findings(found, len(names))
    raise typer.Exit(1 if found else 0)


@app.command(epilog="Example: onrecord verify --head chat-1:27:9f3c…")
def verify(
    head: Annotated[
        list[str] | None,
        typer.Option(help="SESSION:VERSION:CHAIN that was kept elsewhere; shows a cut tail."),
    ] = None,
    json: _Json = False,
) -> None:
    """Recompute all digests: names the first record that was edited, removed, inserted or moved."""
    from onrecord.transcript.verify import verify as verify_log

    heads = [_head(text) for text in head or []]
    with _log() as log:
        result = verify_log(log, heads=heads)
    if json:
        _print_json(pages.verification(result))
    else:
        pages.show_verification(result, heads)
    raise typer.Exit(1 if result.faults else 0)


def _head(text: str) -> tuple[str, int, bytes]:
    parts = text.rsplit(":", 2)
    try:
        return parts[0], int(parts[1]), bytes.fromhex(parts[2])
    except (IndexError, ValueError):
        _fail(f"--head takes SESSION:VERSION:CHAIN with the chain in hex, not {text!r}")


def _add_commands() -> None:
    """Add the commands of other folders, which nothing here may import."""
    for entry in entry_points(group="onrecord.commands"):
        app.command(entry.name)(entry.load())


_UsageError: type[Exception] = typer.BadParameter.__mro__[2]  # typer names its root nowhere else


def main() -> None:
    """Run the command: errors in one line on stderr, exit 2."""
    _add_commands()
    try:
        try:
            code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        finally:
            sys.stdout.flush()  # here, where a failure is still told in one line
    except OnRecordError as error:
        _fail(str(error))
    except _UsageError as error:
        told = getattr(error, "format_message", error.__str__)()
        _fail(f"{told.rstrip('.')}; `onrecord --help` says how".replace("\n", " "))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away: nothing is left to say, and to nobody
        sys.exit(2)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left is flushed at the exit
        _fail(f"can't write the output: {error.strerror}")
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
