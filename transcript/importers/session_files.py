"""Files of a session each, a JSON object a line: what the formats of such files have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from onrecord.transcript.importers.reading import Tell, objects

Record: TypeAlias = tuple[str, str, dict[str, Any]]
"""Key (unique in its file, the same when the file has grown), place, and the object."""


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
