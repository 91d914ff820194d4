"""Files of JSON objects, a line each, as programs leave them: torn, joined, wrongly encoded.

Whatever can't be read is told as a fault with its line, and the rest is read.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias

from onrecord.transcript.importers import codes

LINE_LIMIT = 64 << 20
"""Bytes that a line may have; a longer one is skipped, with a fault."""

Tell: TypeAlias = Callable[[str, str, str], object]
"""Takes a fault: code, place, and one sentence."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_decoder = json.JSONDecoder()


def objects(path: Path, tell: Tell, *, name: str = "") -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Iterate over a file's objects: line number, place (`name:line`) and the object."""
    name = name or path.name
    with path.open("rb") as file:
        encoding = _encoding(file)
        if encoding != "utf-8":
            tell(codes.MALFORMED, f"{name}:1", f"the file is {encoding.upper()}, not UTF-8")
        for number, raw in _lines(file, encoding):
            place = f"{name}:{number}"
            if raw is None:
                tell(
                    codes.UNREADABLE, place, f"the line has over {LINE_LIMIT} bytes and was skipped"
                )
                continue
            for found in _parsed(raw, place, tell):
                yield number, place, found


def first_object(head: bytes) -> dict[str, Any] | None:
    """Return the first object of a file that begins so, None where its first line is none."""
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            head = head[len(bom) :].decode(encoding, "replace").encode()
    for line in head.splitlines():
        if line.strip():
            try:
                found, _ = _decoder.raw_decode(line.decode("utf-8", "replace").lstrip())
            except (ValueError, RecursionError):
                return None
            return found if isinstance(found, dict) else None
    return None


def _encoding(file: IO[bytes]) -> str:
    """Return the encoding that a file's mark says, and leave the file after the mark."""
    start = file.read(3)
    for bom, encoding in _BOMS:
        if start.startswith(bom):
            file.seek(len(bom))
            return encoding
    file.seek(0)
    return "utf-8"


def _lines(file: IO[bytes], encoding: str) -> Iterator[tuple[int, bytes | None]]:
    """Iterate over the lines, None for one that is too long."""
    if encoding != "utf-8":
        reader = codecs.getreader(encoding)(file, "replace")
        for number, text in enumerate(reader, 1):
            yield number, text.encode("utf-8", "surrogatepass")
        return
    number, skipping = 0, False
    while data := file.readline(LINE_LIMIT):
        if not skipping:
            number += 1
        whole = data.endswith(b"\n") or len(data) < LINE_LIMIT
        if not skipping:
            yield number, data if whole else None
        skipping = not whole


def _parsed(data: bytes, place: str, tell: Tell) -> Iterator[dict[str, Any]]:
    """Parse a line: one object, or several that were written without a line end between."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode("utf-8", "replace")
        tell(
            codes.MALFORMED,
            place,
            f"byte {error.start + 1} of the line isn't UTF-8; read with U+FFFD there",
        )
    at, count = 0, 0
    while (at := _next(text, at)) < len(text):
        try:
            found, at = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            _tell_broken(text, at, data, place, error, tell)
            return
        count += 1
        if not isinstance(found, dict):
            tell(codes.UNREADABLE, place, f"a {type(found).__name__} where an object belongs")
            continue
        if count == 2:
            tell(codes.MALFORMED, place, "two objects on one line; both were read")
        yield found


def _next(text: str, at: int) -> int:
    """Return where the next object of a line begins, or its end."""
    while at < len(text) and text[at] in " \t\r\n\0":
        at += 1
    return at


def _tell_broken(text: str, at: int, data: bytes, place: str, error: Exception, tell: Tell) -> None:
    if not data.endswith(b"\n"):
        tell(codes.TORN, place, f"the last line breaks off after {len(text) - at} characters")
    else:
        tell(codes.UNREADABLE, place, f"from character {at + 1} on the line is no JSON ({error})")
