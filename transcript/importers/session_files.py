"""Files of a session each, a JSON object a line: what the formats of such files have in common."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import codes
from onrecord.transcript.importers.reading import Tell, objects

Record: TypeAlias = tuple[str, str, dict[str, Any]]
"""Key (unique in its file, the same when the file has grown), place, and the object."""

STILL = 600
"""Seconds without a change after which nothing is added any more to what a file ends with."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Faults:
    """Faults that are found before it is known in which session."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str, str]] = []

    def tell(self, code: str, place: str, detail: str) -> None:
        """Keep a fault."""
        self._found.append((code, place, detail))

    def hand_to(self, tell: Tell) -> None:
        """Tell the faults that were kept."""
        for fault in self._found:
            tell(*fault)


def records(path: Path, tell: Tell, name: str = "") -> Iterator[Record]:
    """Iterate over a file's objects. The second and third on a line get a key and a place of their own."""
    line, count = 0, 0
    for number, place, found in objects(path, tell, name=name):
        count = count + 1 if number == line else 1
        line = number
        if count == 1:
            yield str(number), place, found
        else:
            yield f"{number}.{count}", f"{place}.{count}", found


def files_in(folder: Path, pattern: str) -> Iterator[Path]:
    """Iterate over the files of a folder and those below it; a pipe or broken link so named is none."""
    return filter(Path.is_file, folder.rglob(pattern))


def is_still(path: Path) -> bool:
    """Tell whether a file was left alone for so long that its last turn can't go on."""
    return time.time() - path.stat().st_mtime > STILL


def is_past(at: int | None) -> bool:
    """Tell whether what was said at a time (µs since 1970) can't go on; of no time, it can't."""
    return at is None or time.time() - at / 1_000_000 > STILL


def microseconds(given: object) -> int | None:
    """Return a time in µs since 1970: from RFC 3339, or from ms since 1970. None for one that is neither."""
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            moment = datetime.fromtimestamp(given / 1000, UTC)
        elif isinstance(given, str):
            moment = datetime.fromisoformat(given)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    passed = moment - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def words(content: object) -> str:
    """Return the text of a content: a text, or parts of which some are text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part if isinstance(part, str) else text_of(part) for part in content]
    return "\n\n".join(text for text in texts if text)


def text_of(part: object) -> str:
    """Return the text of one part, none for a part that is something else."""
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def others(content: object) -> list[Any]:
    """Return the parts of a content that are no text, without their bytes."""
    if not isinstance(content, list):
        return []
    return [_described(part) for part in content if isinstance(part, dict) and not text_of(part)]


def _described(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part with its short fields: an image's bytes are no words."""
    short = {k: v for k, v in part.items() if isinstance(v, str | int | bool) and len(str(v)) < 500}
    source = part.get("source")
    if isinstance(source, dict) and isinstance(source.get("media_type"), str):
        short["media_type"] = source["media_type"]
    return short


# --- Zstandard ------------------------------------------------------------------------------------


def unpack(data: bytes, size: int, path: Path) -> bytes:
    """Return what Zstandard packed, `size` bytes at most; raise ValueError for anything else.

    Raise ImportRefused without the package.
    """
    unpacked: bytes = require_zstandard(path).unpack(data, size)
    return unpacked


@contextlib.contextmanager
def unpacked(path: Path, tell: Tell) -> Iterator[Path]:
    """Give the file that `path` packs, as a private copy. Raise ImportRefused without the package."""
    zstd = require_zstandard(path)
    with tempfile.TemporaryDirectory(prefix="onrecord-") as folder:
        plain = Path(folder, path.name)
        if wrong := zstd.unpack_file(path, plain):
            tell(codes.UNREADABLE, path.name, f"it can be unpacked up to a point only: {wrong}")
        yield plain


def require_zstandard(path: Path) -> Any:
    """Return the module that unpacks. Raise ImportRefused, which says how to install what it needs."""
    try:
        from onrecord.transcript.importers import zstd
    except ModuleNotFoundError as error:
        raise ImportRefused(
            f"{path} is packed with Zstandard; to read it: pip install 'onrecord[zstandard]'",
            file=str(path), line=0, expected="the package zstandard",
        ) from error  # fmt: skip
    return zstd
