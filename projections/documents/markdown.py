"""A document in Markdown, as GitHub reads it. No text of a message becomes anything but text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from onrecord.projections.documents.document import (
    WHY_OUT,
    Document,
    Message,
    Turn,
    visible,
)

_MARKUP = re.compile(r"[\\`*_\[\]<>&|~$]")
_AT_THE_START = re.compile(r"^(\d{1,9})([.)])|^([#+=-])")
_ADDRESS = re.compile(r"\S*@\S*")
_LINK = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
_TICKS = re.compile("`+")
_INDENT = re.compile(r"^[ \t]+")
NO_BREAK = "\N{NO-BREAK SPACE}"
TAB = 4 * NO_BREAK


def markdown(document: Document) -> Iterator[str]:
    """Yield the document in pieces."""
    yield f"# {prose(document.session)}\n\nVersion {document.version}. All times are UTC.\n"
    if document.summary is not None:
        yield from _message(document.summary)
    for turn in document.turns:
        yield from _turn(turn)
    if not document.turns and document.summary is None:
        yield "\nNothing was said.\n"


def _turn(turn: Turn) -> Iterator[str]:
    out = f"\n\n*{prose(WHY_OUT[turn.out])}*" if turn.out else ""
    yield f"\n## {prose(turn.name)}{out}\n"
    for message in turn.messages:
        yield from _message(message)


def _message(message: Message) -> Iterator[str]:
    row = message.row
    seen = f" · {prose(message.seen)}" if message.seen else ""
    until = f", {message.until:%H:%M:%S}" if row.delivery and message.until != message.at else ""
    yield f"\n**{row.role.capitalize()}** · {message.at:%Y-%m-%d %H:%M:%S}{seen}{until}\n"
    if row.text.strip():
        yield f"\n{quote(row.text)}\n"
    if row.produced:
        yield f"\nThe model's own words:\n\n{quote(row.produced)}\n"
    for call in message.calls:
        yield f"\nCalls **{prose(call.call.name)}** ({prose(call.call.id)}):\n\n"
        yield fenced(call.call.arguments)
        if call.result is not None:
            failed = " with an error" if call.result.is_error else ""
            yield f"\nand is answered{failed}:\n\n{fenced(call.result.text)}"


def quote(text: str) -> str:
    """Return a text as a block quote: paragraphs and line ends as they are, and no markup."""
    lines = [prose(line) for line in visible(text).strip("\n").split("\n")]
    told: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        ends = "\\" if line and following else ""  # a line end that stays one
        told.append(f"> {line}{ends}" if line else ">")
    return "\n".join(told)


def prose(text: str) -> str:
    """Return a line as it is read, whatever is in it: no markup, no link and no address."""
    line = visible(text).replace("\n", " ").rstrip()
    indent = _INDENT.match(line)
    start = indent[0].replace("\t", TAB).replace(" ", NO_BREAK) if indent else ""
    line = line[len(indent[0]) :] if indent else line
    parts, at = [], 0
    for address in _ADDRESS.finditer(line):
        parts += [_escaped(line[at : address.start()], first=at == 0), _code(address[0])]
        at = address.end()
    return start + "".join(parts) + _escaped(line[at:], first=at == 0)


def _escaped(text: str, *, first: bool) -> str:
    told = _MARKUP.sub(r"\\\g<0>", text)
    told = _LINK.sub(r"\\\g<0>", told)
    return _AT_THE_START.sub(_started, told) if first else told


def _started(found: re.Match[str]) -> str:
    number, after, mark = found.groups()
    return f"{number}\\{after}" if number else f"\\{mark}"


def _code(text: str) -> str:
    """Return code: an address in it is no link and calls nobody."""
    ticks = "`" * (max((len(run) for run in _TICKS.findall(text)), default=0) + 1)
    space = " " if "`" in (text[0], text[-1]) else ""
    return f"{ticks}{space}{text}{space}{ticks}"


def fenced(text: str) -> str:
    """Return a text as a block of code, in a fence that is longer than any in it."""
    shown = visible(text).rstrip("\n")
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown}\n{fence}\n"
