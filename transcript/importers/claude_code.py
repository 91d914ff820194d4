"""Sessions of Claude Code: the files of a project, JSON lines, `SESSION.jsonl`.

A line that is part of the conversation has `uuid` and `parentUuid`: `user`, `assistant`, `system`,
`attachment`; all others are the program's own. A response of the model stands as a line for each of its
blocks, with one `message.id`; a result is a line of type `user`.

Subagents are sessions of their own, `SESSION/AGENT`: files in `SESSION/subagents`, in older versions
`agent-ID.jsonl` beside the session's, before that lines between the others (`isSidechain`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onrecord.transcript.importers.claude_code_lines import Conversation
from onrecord.transcript.importers.claude_code_sidechains import Sidechains
from onrecord.transcript.importers.reading import first_object
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.session_files import files_in, records
from onrecord.transcript.importers.source import HEAD, Entry
from onrecord.transcript.importers.times import is_still

FORMAT = "claude-code"

LOOKED_AT = 100
"""Lines at the beginning of a file that are looked at to tell whose it is."""
_OWN = {"parentUuid", "isSidechain"}
_FIRST = {"summary", "file-history-snapshot", "queue-operation", "last-prompt", "mode"}


def looks_right(path: Path, head: bytes) -> bool:
    """Tell whether a file is a session's, or a folder a project's."""
    if path.is_dir():
        return next(_files(path), None) is not None
    return path.suffix == ".jsonl" and _is_ours(head)


@contextmanager
def open_source(path: Path) -> Iterator[Sessions]:
    """Open a session's file, with those of its subagents, or all files of a project's folder."""
    yield Sessions(list(_files(path)) if path.is_dir() else [path, *_agents_of(path)])


class Sessions:
    """The sessions of some files."""

    total: int | None = None

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths

    def sessions(self) -> Iterator[tuple[str, Iterator[Entry]]]:
        """Iterate over the sessions: each file, and the subagents that stand in it."""
        for path in self._paths:
            name, parent = _name(path)
            with Sidechains() as aside:
                yield name, _entries(path, name, parent, aside)
                for agent in aside.names():
                    yield f"{name}/{agent}", _aside(path, name, agent, aside)


def _entries(path: Path, name: str, parent: str, aside: Sidechains) -> Iterator[Entry]:
    """Iterate over the entries of one file; lines of subagents in it are put aside."""
    rows = SourceRows(FORMAT, name, check_keys=False)
    conversation = Conversation(rows, parent=parent)
    for key, place, line in records(path, rows.fault):
        if line.get("isSidechain") is True and not parent:
            aside.put(key, place, line)
        else:
            conversation.read(key, place, line)
        yield from rows.take()
    conversation.finish(still=is_still(path))
    yield from rows.take()


def _aside(path: Path, parent: str, agent: str, aside: Sidechains) -> Iterator[Entry]:
    """Iterate over the entries of a subagent whose lines stand between those of its session."""
    rows = SourceRows(FORMAT, f"{parent}/{agent}", check_keys=False)
    conversation = Conversation(rows, parent=parent)
    for key, place, line in aside.of(agent):
        conversation.read(key, place, line)
        yield from rows.take()
    conversation.finish(still=is_still(path))
    yield from rows.take()


def _files(folder: Path) -> Iterator[Path]:
    """Iterate over the files of a project, or of all; sessions before those of their subagents."""
    found = files_in(folder, "*.jsonl")
    for path in sorted(found, key=lambda path: (path.name.startswith("agent-"), path)):
        with path.open("rb") as file:
            if _is_ours(file.read(HEAD)):
                yield path


def _agents_of(path: Path) -> list[Path]:
    """Return the files of a session's subagents."""
    if path.name.startswith("agent-"):
        return []
    own = files_in(path.with_suffix("").joinpath("subagents"), "agent-*.jsonl")
    beside = (
        found
        for found in path.parent.glob("agent-*.jsonl")
        if found.is_file() and _name(found) == (f"{path.stem}/{_agent(found)}", path.stem)
    )
    return [*sorted(own), *sorted(beside)]


def _name(path: Path) -> tuple[str, str]:
    """Return the session of a file, and the session whose subagent it is; an empty name for none."""
    if not path.name.startswith("agent-"):
        return path.stem, ""
    if "subagents" in path.parts:
        at = len(path.parts) - 1 - path.parts[::-1].index("subagents")
        parent = path.parts[at - 1]
    else:
        found = (line.get("sessionId") for line in _first_lines(path))
        parent = str(next(filter(None, found), ""))
    return (f"{parent}/{_agent(path)}", parent) if parent else (path.stem, "")


def _agent(path: Path) -> str:
    return path.stem.removeprefix("agent-")


def _first_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        head = file.read(HEAD)
    return _objects(head)


def _objects(head: bytes) -> Iterator[dict[str, Any]]:
    for line in head.splitlines()[:LOOKED_AT]:
        if (found := first_object(line)) is not None:
            yield found


def _is_ours(head: bytes) -> bool:
    """Tell whether a file begins with such lines: the program's own can be many, and large."""
    own = 0
    for line in _objects(head):
        if line.keys() >= _OWN:
            return True
        own += str(line.get("type")) in _FIRST
    return own > 0
