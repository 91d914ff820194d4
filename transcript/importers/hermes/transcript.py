"""The messages of one Hermes session, row by row."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from onrecord.transcript.events import (
    SessionEnded,
    SessionStarted,
    ToolCall,
    TranscriptCompacted,
    TurnFinalized,
)
from onrecord.transcript.events import (
    Source as MessageSource,
)
from onrecord.transcript.importers import codes, foreign
from onrecord.transcript.importers.hermes import compaction
from onrecord.transcript.importers.hermes.cells import (
    Content,
    calls_of,
    content_of,
    microseconds,
)
from onrecord.transcript.importers.hermes.compaction import Compacted, compactions, summary_of
from onrecord.transcript.importers.hermes.prompts import EMPTY, INTERRUPTED, kind_of, without_notes
from onrecord.transcript.importers.hermes.tables import PAGE, Row, Tables
from onrecord.transcript.importers.hermes.told import NOTHING, Told
from onrecord.transcript.importers.rows import SourceRows
from onrecord.transcript.importers.source import Entry

FORMAT: str = "hermes"

REMEMBERED = 1_000
"""Messages of the platform whose ids are remembered, to know one that was stored twice."""

# gateway/run.py writes the tools of a session as its first row; prompts of the system are Hermes's own.
_NO_MESSAGES = frozenset(("session_meta", "system"))
# agent/tool_executor.py: a tool that was never run, and one of which nobody knows whether it ran
_NOT_DONE = frozenset(("none", "unknown"))


class Session(NamedTuple):
    """A session as its own row has it; of one without a row, only the id is known."""

    id: str
    platform: str = ""
    user: str = ""
    chat: str = ""
    chat_type: str = ""
    key: str = ""
    title: str | None = None
    parent: str | None = None
    started: int | None = None
    ended: int | None = None
    end_reason: str = ""

    @classmethod
    def of(cls, row: Row) -> Session:
        """Return the session of a row of `tables.SESSIONS`."""
        id, platform, user, chat, chat_type, key, title, parent, started, ended, reason = row
        return cls(
            _word(id), _word(platform), _word(user), _word(chat), _word(chat_type), _word(key),
            _word(title) or None, _word(parent) or None, microseconds(started), microseconds(ended),
            _word(reason),
        )  # fmt: skip


def _word(cell: object) -> str:
    return "" if cell is None else str(cell)


class Transcript:
    """Reads one session. `told`: what ledger and log say of it, by the rows that it belongs to."""

    def __init__(
        self, tables: Tables, session: Session, *, told: Told = NOTHING, stray: bool = False
    ) -> None:
        self._tables = tables
        self._session = session
        self._stray = stray
        self._told = told
        self._rows = SourceRows(FORMAT, session.id, check_keys=False)
        self._compacted: Compacted = compaction.NONE
        self._kept: set[int] = set()
        self._before: dict[int, tuple[str, str]] = {}  # kept row → its turn, and the one before
        self._turns = ("", "")  # the turn that a row was in last, and the one before
        self._taken_back: list[Any] = []  # turn, first and last row of what was rewound
        self._sources: deque[str] = deque(maxlen=REMEMBERED)
        self._calls: set[str] = set()  # of the turn
        self._at: int | None = None
        self._asked: int | None = None  # the user's row whose answers come now

    def entries(self) -> Iterator[Entry]:
        """Iterate over what the session's rows say, and what was told of them."""
        rows = self._rows
        self._start()
        ids = self._tables.ids(self._session.id)
        session = self._session
        self._compacted = compactions(self._tables, session.id, session.parent, ids)
        self._told.of_originals(self._compacted.copies)
        self._kept = {id for id in self._compacted.kept.values() if id is not None}
        for start in range(0, len(ids), PAGE):
            for row in self._page(ids[start : start + PAGE]):
                self._row(row)
            yield from rows.take()
        self._end_of_rewind()
        self._end_of_turn()
        for lost in self._told.lost_at_end:
            lost.tell(rows)
        rows.finish(self._at)
        self._end()
        yield from rows.take()

    def _start(self) -> None:
        session, place = self._session, f"sessions {self._session.id}"
        if self._stray:
            self._rows.fault(
                codes.GAP, place, "the session's own row is gone; its messages are there"
            )
            return
        self._rows.add(
            SessionStarted(
                platform=session.platform, chat=session.chat, user=session.user,
                title=session.title, parent=session.parent,
            ), session.started, place,
        )  # fmt: skip

    def _end(self) -> None:
        session = self._session
        if session.ended is None and not session.end_reason:
            return
        # A session can be opened again and end again: the time tells one end from another.
        place = f"sessions {session.id} ended_at {session.ended}"
        self._rows.add(SessionEnded(reason=session.end_reason), session.ended, place)

    def _page(self, ids: Sequence[int]) -> Iterator[Row]:
        try:
            yield from self._tables.messages(ids)
        except foreign.Error:
            yield from self._one_by_one(ids)

    def _one_by_one(self, ids: Sequence[int]) -> Iterator[Row]:
        """Read a page that holds something that can't be read as it should be."""
        for id in ids:
            try:
                row = self._tables.message(id)
            except foreign.Error as error:
                self._rows.fault(
                    codes.UNREADABLE, f"messages {id}", f"the row can't be read ({error})"
                )
                continue
            if row is not None:
                yield row

    # --- a row -----------------------------------------------------------------------------------

    def _row(self, row: Row) -> None:
        id, role = row[0], row[1]
        rows, place = self._rows, f"messages {id}"
        if id in self._compacted.again:
            first = self._compacted.again[id]
            rows.fault(
                codes.DUPLICATE, place, f"from here on the rows from {first} on are stored again"
            )
        gone = row[11] == 0 and not row[12]
        if self._taken_back and not gone:
            self._end_of_rewind()
        if id in self._compacted.copies and id not in self._compacted.kept:
            if gone:
                self._rewound(id, str(role), str(self._compacted.copies[id]))
            return
        at = microseconds(row[5])
        if at is None:
            rows.fault(codes.UNREADABLE, place, f"its time is {str(row[5])[:40]!r}, which is none")
        else:
            self._at = at
        content = content_of(row[2])
        if content.fault:
            rows.fault(codes.MALFORMED, place, content.fault)
        text = content.text
        if text.startswith("[") and role != "tool" and (summary := summary_of(text)):
            self._summary(id, summary, at, place)
        elif role == "user":
            self._user(row, content, at, place)
        elif role == "assistant":
            self._assistant(row, text, at, place)
        elif role == "tool":
            call = str(row[3] or f"result:{id}")
            rows.tool(call, text, at, place, is_error=row[14] in _NOT_DONE)
        elif role not in _NO_MESSAGES:
            rows.fault(codes.UNKNOWN, place, f"a row of the unknown role {str(role)[:40]!r}")
        if gone:
            self._rewound(id, str(role), rows.turn)
        if self._kept:
            self._remember(id)
        for delivery in self._told.after.get(id, ()):
            delivery.tell(rows)

    def _user(self, row: Row, content: Content, at: int | None, place: str) -> None:
        id, rows, text = row[0], self._rows, content.text
        kind = kind_of(text)
        sent = row[13]
        if not kind and isinstance(sent, str) and not text.strip():
            # What the model was sent in place of an empty message: a note after a restart.
            kind = kind_of(sent) or ("restart" if without_notes(sent)[1] else "")
            text = sent if kind else text
        if kind:
            rows.prompt(str(id), text, at, place, kind=kind)
            return
        observed = bool(row[10])
        if not observed:
            self._end_of_turn()
            for lost in self._told.before.get(id, ()):
                lost.tell(rows)
        source = self._source(row, at)
        if source is not None and source.message in self._sources:
            rows.fault(codes.DUPLICATE, place, "a second row of the same message of the platform")
            return
        text, noted = without_notes(text)
        if source is not None:
            self._sources.append(source.message)
        sender = self._session.user if self._session.chat_type in ("", "dm") else ""
        rows.user(
            str(id), text, at, place, sender=sender or None, source=source, parts=content.parts,
            observed=observed,
        )  # fmt: skip
        if noted:
            rows.fault(
                codes.SYNTHETIC, place, "a note of the program stands before the user's words"
            )
        if not observed:
            self._asked = id
            self._calls.clear()

    def _source(self, row: Row, at: int | None) -> MessageSource | None:
        """Return the platform's message; a copy in a child session isn't the message again."""
        session = self._session
        if not row[9]:
            return None
        if session.parent and (at is None or session.started is None or at < session.started):
            return None
        return MessageSource(platform=session.platform, chat=session.chat, message=str(row[9]))

    def _assistant(self, row: Row, text: str, at: int | None, place: str) -> None:
        if text.startswith(INTERRUPTED) and not row[6]:
            self._rows.close(at, "interrupted")
            return
        if text == EMPTY:
            text = ""
        calls: list[ToolCall] = []
        if row[4]:
            calls, fault = calls_of(row[4])
            if fault:
                self._rows.fault(codes.UNREADABLE, place, fault)
        if calls:
            names = {call.id for call in calls}
            if text.strip() and names <= self._calls:
                # agent/turn_finalizer.py fills the last row of calls with the final text and has it
                # stored again, beside the one that is there: the calls are the same, the text is new.
                detail = "a second row with the same tool calls, which has the answer's text"
                self._rows.fault(codes.DUPLICATE, place, detail)
                calls = []
            self._calls |= names
        self._rows.assistant(
            str(row[0]), text, at, place, calls=calls, finish_reason=row[6],
            reasoning=row[7] or row[8] or None,
        )  # fmt: skip

    # --- rewinds and compactions -----------------------------------------------------------------

    def _rewound(self, id: int, role: str, turn: str) -> None:
        if self._taken_back:
            self._taken_back[2] = id
        elif role == "user" and turn:
            self._taken_back = [turn, id, id]

    def _end_of_rewind(self) -> None:
        if not self._taken_back:
            return
        turn, first, last = self._taken_back
        self._taken_back = []
        self._end_of_turn()
        self._rows.rewound(turn, self._at, f"messages {first} to {last}")

    def _summary(self, id: int, summary: str, at: int | None, place: str) -> None:
        rows = self._rows
        if id in self._compacted.kept:
            kept = self._compacted.kept[id]
            turn, before = self._before.get(kept or 0, (rows.turn, rows.turn))
            through = before or turn
        else:
            # The rows that it stands for are in the parent session, or were deleted.
            through = f"before:{id}"
            rows.add(TurnFinalized(turn=through), at, place)
        rows.add(TranscriptCompacted(through_turn=through, summary=summary), at, place, 1)

    def _remember(self, id: int) -> None:
        turn = self._rows.turn
        if turn != self._turns[0]:
            self._turns = (turn, self._turns[0])
        if id in self._kept:
            self._before[id] = self._turns

    def _end_of_turn(self) -> None:
        """Say what was told of the turn that ends, and belongs to none of its rows."""
        asked, self._asked = self._asked, None
        if asked is not None:
            for told in self._told.at_end.get(asked, ()):
                told.tell(self._rows)
