"""Showing what was sent."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar, get_args

import typer

from onrecord.projections.cli.command import (
    Json,
    OneOrAll,
    app,
    fail,
    known,
    note,
    one_of,
    open_log,
)
from onrecord.projections.cli.output import (
    FORMAT_HELP,
    Jobs,
    Out,
    check_output,
    output,
    write_rows,
)
from onrecord.projections.cli.times import moment_of
from onrecord.projections.deliveries import Status
from onrecord.projections.pages.terminal import progress

if TYPE_CHECKING:
    from onrecord.projections.delivered import LeftOut, Sent, Tell
    from onrecord.projections.redaction import Redaction

T = TypeVar("T")

FORMATS = "table|json|csv|parquet"
STATUSES = "|".join(get_args(Status))
KINDS = "answer|notice"


@app.command(
    epilog="Example: onrecord deliveries --since 7d --status in_doubt --redact --format csv --out sent.csv"
)
def deliveries(
    session: OneOrAll = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME|AGO", help="First attempted then or later: 2026-11-30, 36h."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME|AGO", help="First attempted before then.")
    ] = None,
    platform: Annotated[str | None, typer.Option(help="To this platform.")] = None,
    chat: Annotated[str | None, typer.Option(help="To this chat.")] = None,
    status: Annotated[
        list[str] | None, typer.Option(metavar=STATUSES, help="With this outcome; may be repeated.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option(metavar=KINDS, help="Of this kind; may be repeated.")
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="A length and a keyed digest in the place of texts.")
    ] = False,
    redact_ids: Annotated[
        bool, typer.Option("--redact-ids", help="The same, and for names of people, chats and ids.")
    ] = False,
    redact_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The key of the digests; without, one that isn't kept."),
    ] = None,
    jobs: Jobs = None,
    shape: Annotated[
        str,
        typer.Option("--format", metavar=FORMATS, help=FORMAT_HELP),
    ] = "table",
    out: Out = None,
    json: Json = False,
) -> None:
    """Show who was sent what, when, with which outcome.

    Of each delivery the attempts, what the platform took, failures and doubt. In CSV a cell that
    begins with = + - or @ gets a ' before it; JSON and Parquet have texts as they are.
    """
    from onrecord.projections.delivered import Wanted, delivered
    from onrecord.projections.sweeping import processors

    form = "json" if json else one_of("--format", shape, FORMATS)
    wanted = Wanted(
        since=moment_of("--since", since), until=moment_of("--until", until),
        platform=platform, chat=chat,
        statuses=frozenset(one_of("--status", one, STATUSES) for one in status or ()),
        kinds=frozenset(one_of("--kind", one, KINDS) for one in kind or ()),
    )  # fmt: skip
    check_output(form, out)
    hide = _redaction(redact_key, names=redact_ids) if redact or redact_ids or redact_key else None
    tell = _teller(form)
    left_out: list[LeftOut] = []
    with output(out) as file, open_log() as log:
        known(log, session)
        shown = file is not sys.stdout or not (form == "table" or file.isatty())
        with progress("records") if shown else nullcontext() as told:
            sent = delivered(
                log, wanted, partial(_told, hide, tell), session=session,
                jobs=jobs or processors(), progress=told,
            )  # fmt: skip
            name = session and hide.name("session", session) if hide else session
            _write(form, name, _readable(sent, left_out), file)
    for one in left_out:
        _say_left_out(one)
    raise typer.Exit(2 if left_out else 0)


def _teller(form: str) -> Tell[Any]:
    """Return what makes of a delivery what a format takes."""
    from onrecord.projections.delivered import whole
    from onrecord.projections.pages.deliveries import delivery_json, delivery_row

    tellers: dict[str, Tell[Any]] = {"table": whole, "json": delivery_json}
    return tellers.get(form, delivery_row)


def _say_left_out(one: LeftOut) -> None:
    versions = ", ".join(map(str, one.versions[:3])) + (" …" if one.versions[3:] else "")
    told = f"session {one.session!r}: what stands at version {versions} can't be read"
    note(f"{told}; `onrecord verify` tells more")


def _write(form: str, session: str | None, told: Iterator[Any], file: TextIO) -> None:
    from onrecord.projections.pages import deliveries as pages

    if form == "json":
        pages.write_deliveries(told, session, file)
    elif form != "table":
        write_rows(form, pages.COLUMNS, told, file)
    elif session is not None:
        pages.show_deliveries(list(told))
    else:
        pages.show_all_deliveries(told)


def _told(hide: Redaction | None, tell: Tell[T], sent: Sent) -> T:
    return tell(sent if hide is None else hide(sent))


def _readable(told: Iterable[T | LeftOut], left_out: list[LeftOut]) -> Iterator[T]:
    """Give what was sent, and note which records can't be read."""
    from onrecord.projections.delivered import LeftOut

    for one in told:
        if isinstance(one, LeftOut):
            left_out.append(one)
        else:
            yield one


def _redaction(path: Path | None, *, names: bool) -> Redaction:
    from onrecord.projections.redaction import KEY_BYTES, LEAST_KEY_BYTES, Redaction

    if path is None:
        note(
            "the digests are under a random key that is kept nowhere, so they can be compared "
            "within this output alone; --redact-key FILE keeps them comparable"
        )
        return Redaction(os.urandom(KEY_BYTES), names)
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        fail(f"can't read {path}: {error.strerror}; name a file with the key for --redact-key")
    if len(key) < LEAST_KEY_BYTES:
        fail(
            f"the key in {path} has {len(key)} bytes and can be guessed; give {LEAST_KEY_BYTES} or "
            "more, such as those of `openssl rand -hex 32`"
        )
    return Redaction(key, names)
