"""The table `delivery_obligations` (gateway/delivery_ledger.py): what is owed to whom, and its state."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from onrecord.transcript.events import Target
from onrecord.transcript.importers import codes, foreign
from onrecord.transcript.importers.hermes import log
from onrecord.transcript.importers.hermes.answers import Answer, answers_before, whose
from onrecord.transcript.importers.hermes.cells import microseconds
from onrecord.transcript.importers.hermes.tables import OBLIGATIONS, Row, Tables
from onrecord.transcript.importers.hermes.told import Delivery, Fault, Told
from onrecord.transcript.importers.rows import Outcome

OBLIGATIONS_LIMIT = 100_000
"""Rows of the ledger that are read; Hermes keeps 500."""
SAME_SEND = 5_000_000
"""µs between the ledger's and the log's word for one sending."""


class Owed(NamedTuple):
    """A final text that is owed to a chat; times in µs."""

    id: str
    key: str
    target: Target
    text: str
    state: str
    attempts: int
    created: int
    updated: int
    error: str

    @classmethod
    def of(cls, row: Row) -> Owed | None:
        """Return what a row of `tables.OBLIGATIONS` says, None if it doesn't say when."""
        id, key, platform, chat, thread, text, state, attempts, created, updated, error = row
        at = microseconds(created)
        if at is None:
            return None
        target = Target(
            platform=str(platform or ""), chat=str(chat or ""),
            thread=None if thread is None else str(thread),
        )  # fmt: skip
        return cls(
            str(id), str(key), target, str(text or ""), str(state or ""),
            attempts if isinstance(attempts, int) else 0, at, microseconds(updated) or at,
            str(error or ""),
        )  # fmt: skip

    @property
    def outcome(self) -> tuple[Outcome, str]:
        """Return what the state says, and why: nobody knows of a send that began and didn't end."""
        if self.state == "delivered":
            return "delivered", ""
        if self.state in ("failed", "abandoned") and self.error:
            return ("in_doubt" if log.is_timeout(self.error) else "failed"), self.error
        return "in_doubt", self.error or f"the ledger says {self.state or 'nothing'}"

    @property
    def place(self) -> str:
        """Return where it stands; a state that may still change makes another record than the next."""
        place = f"delivery_obligations {self.id}"
        if self.state == "delivered":
            return place
        return f"{place} {self.state}" + (f" {self.attempts}" if self.attempts else "")


class Ledger:
    """The ledger of one database. `faults`: what is wrong with it as a whole."""

    def __init__(self, tables: Tables) -> None:
        self.faults: list[Fault] = []
        self._tables = tables
        self._of_key: dict[str, list[Owed]] = defaultdict(list)
        self._of_length: dict[tuple[str, int], list[Owed]] = defaultdict(list)
        self._asked: dict[str, int] = {}
        if not tables.has("delivery_obligations", "obligation_id", "session_key", "content"):
            return
        order = f"ORDER BY created_at, obligation_id LIMIT {OBLIGATIONS_LIMIT}"
        try:
            rows = tables.select("delivery_obligations", OBLIGATIONS, order)
        except foreign.Error as error:
            detail = f"the ledger can't be read ({error}); what went out is known by the log alone"
            self.faults.append(Fault(codes.UNREADABLE, "delivery_obligations", detail))
            return
        for owed in filter(None, map(Owed.of, rows)):
            self._of_key[owed.key].append(owed)
            self._of_length[owed.target.chat, len(owed.text)].append(owed)

    @property
    def is_kept(self) -> bool:
        """Tell whether the gateway keeps a ledger, as far as can be seen."""
        return bool(self._of_key)

    def knows(self, chat: str, length: int, at: int, asked: int | None) -> bool:
        """Tell whether it has the text of a sending that the log tells of, to the user's row `asked`."""
        for owed in self._of_length.get((chat, length), ()):
            if abs(owed.created - at) < SAME_SEND and owed.id not in self._asked:
                if asked is not None:
                    self._asked[owed.id] = asked
                return True
        return False

    def tell(self, session: str, key: str, told: Told) -> None:
        """Say what the ledger has of a session."""
        if key not in self._of_key:
            return
        sessions = self._tables.sessions_where("session_key = ?", key)
        for owed in self._of_key[key]:
            current = next((id for id, began, _ in reversed(sessions) if began <= owed.created), "")
            if current == session:
                self._tell(session, owed, told)

    def _tell(self, session: str, owed: Owed, told: Told) -> None:
        answers, last = answers_before(self._tables, session, owed.created)
        asked = self._asked.get(owed.id, last)
        words = _squeezed(owed.text)
        found = whose(answers, lambda text: _squeezed(text) == words)
        texts = [answer.text for answer in found] if len(found) > 1 else [owed.text]
        if not found:
            found = _alike([answer for answer in answers if answer.asked == asked], words)
        outcome, reason = owed.outcome
        for n, text in enumerate(texts):
            part = f" part {n + 1}" if n else ""
            told.put(found[-1].id if found else None, asked, Delivery(
                f"{owed.id}{part}", text, owed.updated, f"{owed.place}{part}", outcome,
                found[n].id if found else None, owed.target, reason,
            ))  # fmt: skip


def _alike(answers: list[Answer], words: str) -> list[Answer]:
    """Return the last row of which the text is a beginning, or that is a beginning of it."""
    for answer in reversed(answers):
        own = _squeezed(answer.text)
        if words and (own.startswith(words) or words.startswith(own)):
            return [answer]
    return []


def _squeezed(text: str) -> str:
    return "".join(text.split())
