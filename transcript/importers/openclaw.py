"""Sessions of OpenClaw (Clawdbot, Moltbot): its agents' databases, and the files of older versions.

An agent's `openclaw-agent.sqlite` holds a row an entry in `transcript_events`, JSON as text or packed
with Zstandard. Older versions wrote the same entries to a file a session, `sessions/ID.jsonl`: a header,
then entries that name the one before by `parentId`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onrecord.transcript.importers import foreign
from onrecord.transcript.importers.openclaw_entries import Conversation
from onrecord.transcript.importers.openclaw_tables import Agent, open_agent
from onrecord.transcript.importers.reading import first_object
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.session_files import files_in, records
from onrecord.transcript.importers.source import HEAD, Entry

FORMAT = "openclaw"
DATABASE = "openclaw-agent.sqlite"

_TABLES = (b"transcript_events", b"session_windows", b"session_nodes")


def looks_right(path: Path, head: bytes) -> bool:
    """Tell whether a file is an agent's database or a session's, or a folder has some."""
    if path.is_dir():
        return bool(_databases(path) or _files(path))
    if foreign.is_sqlite(head):
        return path.name == DATABASE or any(table in head for table in _TABLES)
    return _is_ours(head)


@contextmanager
def open_source(path: Path) -> Iterator[Sessions]:
    """Open a database, a session's file, or a folder with any of them.

    Raise ImportRefused if a database isn't an agent's, or holds packed rows that can't be unpacked.
    """
    with contextlib.ExitStack() as stack:
        if path.is_dir():
            databases, files = _databases(path), _files(path)
        else:
            with path.open("rb") as file:
                is_database = foreign.is_sqlite(file.read(HEAD))
            databases, files = ([path], []) if is_database else ([], [path])
        agents = [stack.enter_context(open_agent(each)) for each in databases]
        yield Sessions(agents, files)


class Sessions:
    """The sessions of some databases and files."""

    def __init__(self, agents: list[Agent], files: list[Path]) -> None:
        self._agents = agents
        self._files = files
        self.total: int | None = sum(agent.count() for agent in agents) if not files else None

    def sessions(self) -> Iterator[tuple[str, Iterator[Entry]]]:
        """Iterate over the sessions; a file of one that a database holds was taken over into it."""
        known: set[str] = set()
        for agent in self._agents:
            for name in agent.sessions():
                known.add(name)
                yield name, _of_table(agent, name)
        for path in self._files:
            name = _name(path)
            if name not in known:
                known.add(name)
                yield name, _of_file(path, name)


def _of_table(agent: Agent, name: str) -> Iterator[Entry]:
    """Iterate over the entries of a session in a database."""
    rows = SourceRows(FORMAT, name, check_keys=False)
    conversation = Conversation(rows, agent.window(name))
    for key, place, entry in agent.entries(name, rows.fault):
        conversation.read(key, place, entry)
        yield from rows.take()
    conversation.finish()
    yield from rows.take()


def _of_file(path: Path, name: str) -> Iterator[Entry]:
    """Iterate over the entries of a session's file."""
    rows = SourceRows(FORMAT, name, check_keys=False)
    conversation = Conversation(rows)
    for key, place, entry in records(path, rows.fault):
        conversation.read(key, place, entry)
        yield from rows.take()
    conversation.finish()
    yield from rows.take()


def _databases(folder: Path) -> list[Path]:
    return sorted(files_in(folder, DATABASE))


def _files(folder: Path) -> list[Path]:
    """Return a folder's sessions, those that were ended by a reset too, oldest first."""
    found = [path for path in files_in(folder, "*.jsonl*") if _is_session(path)]
    return sorted(found, key=lambda path: (str(_header(path).get("timestamp") or ""), path))


def _is_session(path: Path) -> bool:
    named = path.suffix == ".jsonl" or ".jsonl.reset." in path.name
    if not named:
        return False
    with path.open("rb") as file:
        return _is_ours(file.read(HEAD))


def _is_ours(head: bytes) -> bool:
    """Tell whether a file begins with a session's header, or with an entry where that is missing."""
    first = first_object(head) or {}
    if first.get("type") == "session":
        return isinstance(first.get("id"), str) and ("cwd" in first or "version" in first)
    message = first.get("message")
    return first.get("type") == "message" and isinstance(message, dict) and "parentId" in first


def _name(path: Path) -> str:
    return str(_header(path).get("id") or path.name.split(".jsonl")[0])


def _header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        first = first_object(file.read(HEAD)) or {}
    return first if first.get("type") == "session" else {}
