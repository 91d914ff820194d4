"""What an importer is: a module for one format, which finds its files and reads them.

Such a module has

    FORMAT: str                                          its name, as `--format` takes it
    looks_right(path: Path, head: bytes) -> bool         is this one of its files or folders?
    open_source(path: Path) -> ContextManager[Source]    read-only; nothing of the source changes
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeAlias

from onrecord.transcript.events import Event

HEAD = 64 << 10
"""Bytes of a file that are looked at to tell its format."""

FORMATS = ("hermes", "openclaw", "openai-agents", "langgraph", "claude-code", "codex")
"""In the order in which a file is offered to them."""

Entry: TypeAlias = tuple[Event, int | None, int]
"""An event with its id, when it happened (µs since 1970, UTC), and how many messages it stands for."""


class Source(Protocol):
    """A foreign file, open for reading. `total`: messages in it, None where nobody counted them."""

    total: int | None

    def sessions(self) -> Iterator[tuple[str, Iterator[Entry]]]:
        """Iterate over the sessions; the entries of each are read before the next is asked for."""
        ...


class Importer(Protocol):
    """A module for one format."""

    FORMAT: str

    def looks_right(self, path: Path, head: bytes) -> bool:
        """Tell whether the file (its first HEAD bytes) or folder (no bytes) is of this format."""
        ...

    def open_source(self, path: Path) -> AbstractContextManager[Source]:
        """Open a file or folder for reading. Raise ImportRefused where it can't be read at all."""
        ...
