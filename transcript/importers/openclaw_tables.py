"""The database of an OpenClaw agent: which sessions it holds, and the entries of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onrecord.transcript.errors import ImportRefused
from onrecord.transcript.importers import codes, foreign
from onrecord.transcript.importers.packed import require_zstandard, unpack
from onrecord.transcript.importers.reading import Tell
from onrecord.transcript.importers.session_files import Record

ENTRY_LIMIT = 64 << 20
"""Bytes that an entry may have."""

_EVENTS = {"session_id", "seq", "event_json"}
_WINDOW = (
    "session_key",
    "channel",
    "display_name",
    "spawned_by",
    "parent_session_key",
    "created_at",
)


@dataclass(frozen=True, slots=True)
class Window:
    """What the database says of a session. `parent`: the session whose agent started this one."""

    key: str = ""
    channel: str = ""
    title: str | None = None
    parent: str | None = None


@dataclass
class Agent:
    """An open database of an agent."""

    path: Path
    connection: Any
    tables: dict[str, set[str]]

    def count(self) -> int:
        """Return how many entries there are."""
        (count,) = self.connection.execute("SELECT count(*) FROM transcript_events").fetchone()
        return int(count)

    def sessions(self) -> Iterator[str]:
        """Iterate over the sessions, in the order in which they began."""
        rows = self.connection.execute(
            "SELECT session_id FROM transcript_events GROUP BY session_id"
            " ORDER BY min(created_at), session_id"
            if "created_at" in self.tables["transcript_events"]
            else "SELECT DISTINCT session_id FROM transcript_events ORDER BY session_id"
        ).fetchall()
        names = [str(name) for (name,) in rows]
        yield from names
        yield from (name for name in self._packed_away() if name not in names)

    def window(self, session: str) -> Window:
        """Return what is known of a session."""
        if not self.tables.get("session_windows", set()) >= {"session_id", *_WINDOW}:
            return Window()
        found = self.connection.execute(
            f"SELECT {', '.join(_WINDOW)} FROM session_windows WHERE session_id = ?", (session,)
        ).fetchone()
        if found is None:
            return Window()
        key, channel, title, spawned_by, parent_key, began = found
        parent = self._parent(spawned_by or parent_key, key, began)
        return Window(str(key or ""), str(channel or ""), title, parent)

    def entries(self, session: str, tell: Tell) -> Iterator[Record]:
        """Iterate over a session's entries: key, place and the entry."""
        packed = "event_zstd" in self.tables["transcript_events"]
        more = ", event_zstd, event_utf8_bytes" if packed else ", NULL, NULL"
        rows = self.connection.execute(
            f"SELECT seq, event_json{more} FROM transcript_events WHERE session_id = ? ORDER BY seq",
            (session,),
        )
        empty = True
        for seq, text, data, size in rows:
            empty = False
            place = f"transcript_events {seq}"
            try:
                given = text if data is None else unpack(data, _size(size), self.path)
                found = json.loads(given)
            except (TypeError, ValueError, RecursionError) as error:
                tell(codes.UNREADABLE, place, f"the entry can't be read ({error})")
                continue
            if isinstance(found, dict):
                yield str(seq), place, found
            else:
                tell(codes.UNREADABLE, place, f"a {type(found).__name__} where an object belongs")
        if empty:
            tell(
                codes.LOST, f"session_transcript_cold_archives {session}",
                "the session is packed away in an archive; OpenClaw takes it out when it is opened there",
            )  # fmt: skip

    def holds_packed(self) -> bool:
        """Tell whether there are entries that Zstandard packed."""
        if "event_zstd" not in self.tables["transcript_events"]:
            return False
        found = self.connection.execute(
            "SELECT 1 FROM transcript_events WHERE event_zstd IS NOT NULL LIMIT 1"
        ).fetchone()
        return found is not None

    def _packed_away(self) -> list[str]:
        if "session_id" not in self.tables.get("session_transcript_cold_archives", set()):
            return []
        rows = self.connection.execute(
            "SELECT session_id FROM session_transcript_cold_archives ORDER BY session_id"
        ).fetchall()
        return [str(name) for (name,) in rows]

    def _parent(self, parent_key: object, own_key: object, began: object) -> str | None:
        """Return the session that stood under a key when another began: later ones may stand there now."""
        if not parent_key or parent_key == own_key:
            return None
        found = self.connection.execute(
            "SELECT session_id FROM session_windows WHERE session_key = ? AND created_at <= ?"
            " ORDER BY created_at DESC, session_id LIMIT 1",
            (parent_key, began),
        ).fetchone()
        return None if found is None else str(found[0])


@contextmanager
def open_agent(path: Path) -> Iterator[Agent]:
    """Open an agent's database for reading.

    Raise ImportRefused if it isn't one, or if it holds packed entries that can't be unpacked here.
    """
    with foreign.open_database(path) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        tables = foreign.tables(connection)
        if not tables.get("transcript_events", set()) >= _EVENTS:
            raise ImportRefused(
                f"{path} has no table transcript_events; name an agent's openclaw-agent.sqlite",
                file=str(path), line=0, expected="a database of an OpenClaw agent",
            )  # fmt: skip
        agent = Agent(path, connection, tables)
        if agent.holds_packed():  # now: without them it would be imported with holes
            require_zstandard(path)
        yield agent


def _size(given: object) -> int:
    return min(given, ENTRY_LIMIT) if isinstance(given, int) and given > 0 else ENTRY_LIMIT
