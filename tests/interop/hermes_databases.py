"""Small databases with Hermes's real schema, and what an import makes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from onrecord.projections.findings import findings
from onrecord.projections.transcript import build
from onrecord.transcript.importers import hermes
from onrecord.transcript.importers.running import Imported, import_source
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage import dbapi

SCHEMAS = Path(__file__).parents[1] / "transcript" / "importers" / "fixtures"
BEGAN = 1_796_000_000.0
"""Seconds since 1970 at which everything here begins."""

SUMMARY = (
    "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted into the summary below. "
    "The current session state may reflect work described here — avoid repeating it:\n"
    "They spoke of a house.\n\n"
    "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
)
"""A summary as agent/context_compressor.py writes it."""


class HermesHome:
    """A HERMES_HOME with a state.db. Each row is a second later than the one before."""

    def __init__(self, path: Path, schema: str = "hermes-0.19.0") -> None:
        path.mkdir(exist_ok=True)
        self.path = path
        self.now = BEGAN
        self.database: Any = dbapi.connect(str(path / "state.db"), isolation_level=None)
        self.database.executescript(SCHEMAS.joinpath(f"{schema}.sql").read_text("utf-8"))

    def session(self, name: str = "s", **columns: Any) -> None:
        self._insert("sessions", **{
            "id": name, "source": "telegram", "started_at": BEGAN, **columns,
        })  # fmt: skip

    def row(self, role: str, content: Any, *, session: str = "s", **columns: Any) -> int:
        self.now += 1
        return self._insert("messages", **{
            "session_id": session, "role": role, "content": content, "timestamp": self.now,
            **columns,
        })  # fmt: skip

    def user(self, text: Any, **columns: Any) -> int:
        return self.row("user", text, **columns)

    def assistant(self, text: Any, *calls: str, **columns: Any) -> int:
        if calls:
            said = [{"id": c, "function": {"name": "look", "arguments": "{}"}} for c in calls]
            columns["tool_calls"] = json.dumps(said)
        return self.row("assistant", text, **columns)

    def tool(self, call: str, text: str, **columns: Any) -> int:
        return self.row("tool", text, tool_call_id=call, **columns)

    def compacts(
        self,
        head: Sequence[int],
        tail: Sequence[int],
        summary: str = SUMMARY,
        role: str = "assistant",
        *,
        times: bool = True,
    ) -> None:
        """Do what hermes_state.py's archive_and_compact does: archive, copy and summarise.

        `times`: whether the copies bring their times; else they get that of the summary.
        """
        self.run(
            "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = 's' AND active = 1"
        )
        self.now += 1
        for id in head:
            self._copy(id, times)
        if summary:
            self.now -= 1  # a row moves the time on
            self.row(role, summary)
        for id in tail:
            self._copy(id, times)

    def _copy(self, id: int, times: bool) -> None:
        names = "session_id, role, content, tool_calls, tool_call_id, finish_reason"
        self.run(
            f"INSERT INTO messages ({names}, timestamp)"
            f" SELECT {names}, iif(?, timestamp, ?) FROM messages WHERE id = ?", times, self.now, id,
        )  # fmt: skip

    def owes(self, text: str, state: str = "delivered", **columns: Any) -> None:
        self.now += 1
        self._insert("delivery_obligations", **{
            "obligation_id": f"o{self.now:.0f}", "session_key": "key", "platform": "telegram",
            "chat_id": "c", "content": text, "state": state, "created_at": self.now,
            "updated_at": self.now, **columns,
        })  # fmt: skip

    def run(self, sql: str, *values: Any) -> None:
        self.database.execute(sql, values)

    def logs(self, text: str, *, at: float | None = None, file: str = "gateway.log") -> None:
        """Add a line to the gateway's log, a second after what was before; the zone is UTC."""
        if at is None:
            self.now += 1
            at = self.now
        said = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        folder = self.path / "logs"
        folder.mkdir(exist_ok=True)
        with folder.joinpath(file).open("a", encoding="utf-8") as log:
            log.write(f"{said} INFO {text}\n")

    def came_in(self, text: str, **when: Any) -> None:
        preview = repr(text[:80].replace("\n", " "))
        self.logs(
            f"gateway.run: inbound message: platform=telegram user=Ada chat=c msg={preview} "
            "reply_to_id=None reply_to_text=''", **when,
        )  # fmt: skip

    def ready(self, length: int, took: float = 1.0, **when: Any) -> None:
        self.logs(
            f"gateway.run: response ready: platform=telegram chat=c time={took}s api_calls=1 "
            f"response={length} chars", **when,
        )  # fmt: skip

    def sending(self, length: int, **when: Any) -> None:
        line = f"gateway.platforms.base: [Telegram] Sending response ({length} chars) to c"
        self.logs(line, **when)

    def started(self, **when: Any) -> None:
        self.logs("gateway.run: Starting Hermes Gateway...", **when)

    def _insert(self, table: str, **columns: Any) -> int:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
        return int(self.database.execute(sql, list(columns.values())).lastrowid)


class Told(NamedTuple):
    """What an import into a log came to, of one session."""

    imported: Imported
    records: list[Recorded]
    rows: list[tuple[str, str]]
    view: list[tuple[str, str]]
    deliveries: list[str | None]
    found: list[tuple[str, str]]

    def of(self, type: str) -> list[Any]:
        """Return the events of a type."""
        return [record.event for record in self.records if record.type == type]


def imported(path: Path, log: TranscriptLog | None = None, session: str = "s") -> Told:
    """Import a home, or a database; return what a session is then: all rows, the model's view."""
    if log is None:
        with TranscriptLog.open("sqlite://") as log:
            return imported(path, log, session)
    done = import_source(log, hermes, path)
    records = list(log.read(session))
    full = build(log, session, full=True).rows
    return Told(
        done, records, [(row.role, row.text) for row in full],
        [(row.role, row.text) for row in build(log, session).rows],
        [row.delivery for row in full if row.role == "assistant"],
        [(one.code, one.detail.rpartition("(")[2].rstrip(")")) for one in findings(session, records)],
    )  # fmt: skip
