"""What a person sees of rows, deliveries and findings on a terminal, and their JSON shapes.

Message text is never trusted: control characters are shown, not obeyed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from onrecord.projections.deliveries import DeliveryHistory
from onrecord.projections.findings import Finding
from onrecord.projections.rows import Row
from onrecord.projections.transcript import Transcript

if TYPE_CHECKING:
    from onrecord.projections.stored.check import Fault
    from onrecord.transcript.log import SessionHead
    from onrecord.transcript.verify import Verification

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
ROW_FIELDS = ("role", "text", "origin", "delivery", "tool_calls", "tool_call", "turn", "versions")
_TAIL = "A cut tail, or a chain that was computed anew, shows only against a head kept elsewhere."


def plain(text: str) -> str:
    """Make text safe for a terminal: no control or direction character acts."""
    return "".join(
        char if char in "\n\t" or (char.isprintable() or char == " ") else _escaped(char)
        for char in text.replace("\r\n", "\n")
    )


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else "\ufffd"


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
    return f"{number} {noun}{'' if number == 1 else 's'}"


def console() -> Console:
    """Return the terminal: colour only where there is one, 80 columns in a pipe."""
    given = os.environ.get("COLUMNS", "")
    wide = None if sys.stdout.isatty() else (given.isdecimal() and int(given)) or 80
    return Console(width=wide, highlight=False, markup=False, emoji=False)


@contextlib.contextmanager
def progress(noun: str) -> Iterator[Callable[[int, int], None]]:
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


def row(row: Row) -> dict[str, Any]:
    """Return a row's JSON shape; absent fields are left out."""
    fields = msgspec.to_builtins(row)
    kept = {name: fields[name] for name in ROW_FIELDS if name in fields}
    if row.tool_calls:
        kept["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in row.tool_calls
        ]
    return {"role": row.role, "text": row.text, **kept}


def head(head: SessionHead) -> dict[str, Any]:
    """Return a session's JSON shape."""
    return {
        "session": head.name,
        "version": head.version,
        "started_at": head.started_at,
        "updated_at": head.updated_at,
        "chain": head.chain.hex(),
    }


def verification(result: Verification) -> dict[str, Any]:
    """Return the JSON shape of a verification."""
    faults = [
        {
            "session": fault.session,
            "version": fault.version,
            "position": fault.position,
            "kind": fault.kind,
            "detail": fault.detail,
        }
        for fault in result.faults
    ]
    heads = [f"{name}:{version}:{chain.hex()}" for name, (version, chain) in result.heads.items()]
    return {
        "records": result.records,
        "sessions": result.sessions,
        "faults": faults,
        "heads": heads,
    }


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _mark(word: str) -> Text:
    return Text(word.replace("_", " "), style=COLOURS.get(word, ""))


def show_rows(transcript: Transcript) -> None:
    """Print a transcript, a row a block."""
    page = console()
    page.print(Text(f"{plain(transcript.session)}, version {transcript.version}", style="bold"))
    if not transcript.rows:
        page.print("no rows: nothing was said that a model would see")
        return
    table = _table("role", "seen", "text")
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for shown in transcript.rows:
        calls = "".join(f"\n→ {c.name}({c.arguments}) [{c.id}]" for c in shown.tool_calls)
        answers = f"[{shown.tool_call}] " if shown.tool_call else ""
        body = plain((answers + shown.text + calls).strip("\n"))
        seen = shown.delivery or ("" if shown.origin != "synthetic" else "synthetic")
        style = "dim" if shown.origin == "synthetic" else ""
        table.add_row(_mark(shown.role), _mark(seen), Text(body, style=style))
    page.print(table)


def show_deliveries(told: Sequence[DeliveryHistory]) -> None:
    """Print a delivery history, a delivery a row."""
    if not told:
        console().print("nothing was sent in this session")
        return
    table = _table("delivery", "what", "status", "text and what is known")
    for one in told:
        facts = [plain(attempt) for attempt in _attempts(one)] or ["(nothing attempted)"]
        if one.target:
            facts.append(f"to {plain(one.target.platform)} {plain(one.target.chat)}")
        if one.platform_messages:
            facts.append("platform ids " + plain(", ".join(one.platform_messages)))
        for failure in one.failures:
            kind = "refused" if failure.definite else "unclear"
            facts.append(f"{kind} from {failure.offset}: {plain(failure.reason)}")
        body = Text("\n".join(facts))
        table.add_row(Text(plain(one.delivery)), one.kind, _mark(one.status), body)
    console().print(table)


def _attempts(one: DeliveryHistory) -> Iterator[str]:
    """Tell the attempts, each with what the platform took of it where it isn't all."""
    for attempt in one.attempts:
        number = f"{attempt.attempt}: " if len(one.attempts) > 1 else ""
        size = len(attempt.text)
        known = "" if attempt.taken >= size else f"  [{attempt.taken} of {size} taken]"
        yield f"{number}{attempt.text}{known}{'  [replaced]' if attempt.replaced else ''}"


def show_findings(found: Sequence[Finding], sessions: int) -> None:
    """Print findings, session by session, and how many sessions were read."""
    page = console()
    read = counted(sessions, "session")
    if not found:
        page.print(f"nothing found in {read}")
        return
    for session in dict.fromkeys(one.session for one in found):
        page.print(Text(plain(session), style="bold"))
        table = _table("  turn", "finding", "events", "what it means")
        table.show_header = False
        table.columns[1].no_wrap = True
        for one in found:
            if one.session == session:
                numbers = [str(version) for version in one.versions]
                shown = ", ".join(numbers[:3]) + (f" … {numbers[-1]}" if numbers[3:] else "")
                code = Text(one.code, style="yellow")
                table.add_row(Text("  " + plain(one.turn)), code, shown, Text(plain(one.detail)))
        page.print(table)
    page.print(f"{counted(len(found), 'finding')} in {read}")


def show_faults(faults: Sequence[Fault], sessions: int, behind: int) -> None:
    """Print what is stored and doesn't follow from the log, and how to mend it.

    `behind`: how many of the sessions have records that aren't projected.
    """
    page = console()
    if behind:
        there = f"{sessions - behind} of {counted(sessions, 'session')}"
        page.print(f"{there} stored up to the newest record; `onrecord project` adds the rest")
    if not faults:
        page.print("all that is stored follows from the log")
        return
    table = _table("session", "turn", "what is wrong")
    for one in faults:
        table.add_row(Text(plain(one.session)), Text(plain(one.turn)), Text(plain(one.detail)))
    page.print(table)
    page.print(f"{counted(len(faults), 'fault')}; `onrecord rebuild` projects the log anew")


def show_sessions(heads: Sequence[SessionHead]) -> None:
    """Print the sessions, one a row."""
    if not heads:
        console().print("no sessions yet")
        return
    table = _table("session", "events", "started (UTC)", "updated (UTC)")
    for column in table.columns[1:]:
        column.no_wrap = True  # a name is as long as a UUID often, and has to stay whole
    for one in heads:
        started, updated = (f"{t:%Y-%m-%d %H:%M}" for t in (one.started_at, one.updated_at))
        table.add_row(Text(plain(one.name)), str(one.version), started, updated)
    console().print(table)


def show_verification(result: Verification, heads: Sequence[object]) -> None:
    """Print the outcome of a verification, and what it can't see."""
    page = console()
    first, records = result.first_fault, counted(result.records, "record")
    if first is not None:
        where = f"session {plain(first.session)!r}, version {first.version}"
        page.print(Text(f"first fault: {where}: {plain(first.detail)}", style="red"))
        page.print(f"{counted(len(result.faults), 'fault')} in {records}")
    else:
        page.print(
            Text(f"{records} in {counted(result.sessions, 'session')} verified", style="green")
        )
    if not heads:
        page.print(_TAIL, soft_wrap=True)
