"""Which rows the exchanges of the gateway's log are about, and which of them have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from onrecord.transcript.events import Target
from onrecord.transcript.importers import codes, foreign
from onrecord.transcript.importers.hermes.answers import Answer, answers_before, whose
from onrecord.transcript.importers.hermes.cells import content_of
from onrecord.transcript.importers.hermes.ledger import Ledger
from onrecord.transcript.importers.hermes.log import PREVIEW, Exchange
from onrecord.transcript.importers.hermes.prompts import kind_of
from onrecord.transcript.importers.hermes.tables import Tables
from onrecord.transcript.importers.hermes.told import Delivery, Fault, LostMessage, Told

SECOND = 1_000_000
QUARTER = 900 * SECOND
"""µs: time zones differ by multiples of it."""
ZONES = 15 * 3600 * SECOND
"""µs that a machine's time differs at most from UTC."""
SUMMER = 3600 * SECOND
"""µs by which a zone may change within one log."""
BEFORE, AFTER = 300 * SECOND, 120 * SECOND
"""µs by which a message's row is stamped at most before and after the line of its arrival."""
EARLY = 10 * SECOND
"""µs by which a session may begin after the line of its first message."""
SAMPLES = 200
"""Lines from which the log's time zone is found."""
ROWS_LIMIT = 500
"""Rows near a line among which its message is looked for."""


class Home(NamedTuple):
    """A session of a chat, and its time (µs)."""

    session: str
    started: int
    ended: int | None

    def lives(self, since: int, until: int) -> bool:
        """Tell whether the session was open at some moment of a span of time."""
        return self.started <= until + EARLY and (self.ended is None or since <= self.ended + EARLY)


class Said(NamedTuple):
    """A row of the user's that may be the message of a line."""

    id: int
    session: str
    at: int
    text: str


class Exchanges:
    """Puts the log's exchanges to the sessions that they belong to."""

    def __init__(self, tables: Tables, ledger: Ledger, exchanges: list[Exchange]) -> None:
        self._tables = tables
        self._ledger = ledger
        self._homes: dict[tuple[str, str], list[Home]] = {}
        self._taken: set[int] = set()
        self._told: dict[str, Told] = {}
        self._lost: dict[str, list[tuple[int, LostMessage]]] = {}
        self._offset = self._zone(exchanges)
        for exchange in exchanges:
            self._place(exchange)

    def told(self, session: str) -> Told:
        """Return what the log says of a session, once; the ledger's word isn't in it."""
        told = self._told.pop(session, None) or Told()
        told.lost_at_end.extend(lost for _, lost in self._lost.pop(session, ()))
        return told

    # --- one exchange ----------------------------------------------------------------------------

    def _place(self, exchange: Exchange) -> None:
        row = self._row_of(exchange)
        if row is None:
            self._lose(exchange)
            return
        self._taken.add(row.id)
        self._offset = _rounded(row.at - exchange.came.at)
        told = self._told.setdefault(row.session, Told())
        # What was lost before this message came stands before its row.
        for _, lost in self._lost.pop(row.session, ()):
            told.before.setdefault(row.id, []).append(lost)
        self._answer(exchange, row, told)

    def _answer(self, exchange: Exchange, row: Said, told: Told) -> None:
        ready = exchange.ready
        at = row.at + BEFORE if ready is None else ready.at + self._offset
        answers, _ = answers_before(self._tables, row.session, at, row.at - SECOND)
        own = [answer for answer in answers if answer.id > row.id]
        if ready is None:
            own = [answer for answer in own if answer.asked == row.id]
            if exchange.cut and not own:
                told.put(None, row.id, _cut_off(exchange))
            self._partial(exchange, own, told)
            return
        self._partial(exchange, own[:-1], told)
        if exchange.held_back or not exchange.length or self._in_ledger(exchange, row.id):
            return
        if exchange.going_on and self._ledger.is_kept:
            return  # its word is still to come
        found = whose(own, lambda text: exchange.length in (len(text), len(text.strip())))
        target = Target(platform=exchange.platform, chat=exchange.chat)
        for n, answer in enumerate(found):
            key = ready.key + (f" part {n + 1}" if n else "")
            told.put(answer.id, None, Delivery(
                key, answer.text, at, ready.place, exchange.outcome, answer.id, target,
                exchange.reason, key,
            ))  # fmt: skip
        if not found and not exchange.going_on:
            told.put(None, row.id, _unrecoverable(exchange))

    def _partial(self, exchange: Exchange, answers: list[Answer], told: Told) -> None:
        """Say of answers that were broken off that the user may have read them.

        agent/conversation_loop.py stores what had streamed by then; whether the platform showed it as it
        streamed is logged nowhere.
        """
        target = Target(platform=exchange.platform, chat=exchange.chat)
        for answer in answers:
            if answer.broken_off:
                told.put(answer.id, None, Delivery(
                    f"streamed {answer.id}", answer.text, None, f"messages {answer.id}", "in_doubt",
                    answer.id, target, "the answer was broken off while it streamed",
                ))  # fmt: skip

    def _in_ledger(self, exchange: Exchange, asked: int | None) -> bool:
        """Tell whether the ledger has the text that was sent: then it is its word that counts."""
        if exchange.sending is None:
            return False
        at = exchange.sending.at + self._offset
        return self._ledger.knows(exchange.chat, exchange.shown, at, asked)

    def _lose(self, exchange: Exchange) -> None:
        """Keep a message that has no row; one that may still get its row isn't lost yet."""
        words = exchange.preview.strip()
        over = exchange.cut or (exchange.ready is not None and not exchange.going_on)
        if not words or kind_of(words) or not over:
            return
        at = exchange.came.at + self._offset
        home = next((h for h in reversed(self._of_chat(exchange)) if h.lives(at, at)), None)
        if home is None:
            return  # its session is gone as a whole, or is in another database
        cut = len(exchange.preview) >= PREVIEW
        came = exchange.came
        detail = "the user's message has no row; the gateway's log has " + (
            f"its first {PREVIEW} characters" if cut else "its text"
        )
        fault = Fault(codes.LOST if cut else codes.GAP, came.place, detail, came.key)
        lost = LostMessage(f"log {came.said}", exchange.preview, at, fault, exchange.user)
        if exchange.length and not exchange.held_back and not self._in_ledger(exchange, None):
            lost.after.append(_unrecoverable(exchange))
        self._lost.setdefault(home.session, []).append((at, lost))

    # --- which row -------------------------------------------------------------------------------

    def _row_of(self, exchange: Exchange) -> Said | None:
        """Return the row of an exchange's message: of those with its words the nearest in time."""
        for shift in (0, SUMMER, -SUMMER):
            at = exchange.came.at + self._offset + shift
            near = list(self._near(exchange, at - BEFORE, at + AFTER))
            same = [row for row in near if _same(row.text, exchange.preview)]
            if same:
                return min(same, key=lambda row: abs(row.at - at))
            if not shift and not exchange.preview.strip():
                # Without words, but a row that has some (of a picture): the only one that came then.
                then = [row for row in near if abs(row.at - at) < EARLY]
                if len(then) == 1:
                    return then[0]
        return None

    def _near(self, exchange: Exchange, since: int, until: int) -> Iterable[Said]:
        for home in self._of_chat(exchange):
            if not home.lives(since, until):
                continue
            try:
                rows = self._tables.said(home.session, since / SECOND, until / SECOND, ROWS_LIMIT)
            except foreign.Error:  # a text among them can't be read
                continue
            for id, role, content, _, at, _ in rows:
                if role == "user" and id not in self._taken:
                    yield Said(id, home.session, round(at * SECOND), content_of(content).text)

    def _of_chat(self, exchange: Exchange) -> list[Home]:
        """Return the sessions of an exchange's chat, in the order in which they began."""
        key = exchange.platform, exchange.chat
        if key not in self._homes:
            found = self._tables.sessions_where("source = ? AND chat_id = ?", *key)
            self._homes[key] = [Home(*session) for session in found]
        return self._homes[key]

    def _zone(self, exchanges: list[Exchange]) -> int:
        """Return what has to be added to the log's times: found by messages that have their row."""
        votes: Counter[int] = Counter()
        for exchange in exchanges[-SAMPLES:]:
            if len(exchange.preview) < 3:
                continue
            at = exchange.came.at
            found = {
                _rounded(row.at - at)
                for row in self._near(exchange, at - ZONES, at + ZONES)
                if _same(row.text, exchange.preview)
            }
            votes.update(found)
        if votes:
            return votes.most_common(1)[0][0]
        here = datetime.now().astimezone().utcoffset()
        return 0 if here is None else -round(here.total_seconds()) * SECOND


def _unrecoverable(exchange: Exchange) -> Fault:
    ready = exchange.ready
    assert ready is not None
    return Fault(
        codes.LOST, ready.place,
        f"an answer of {exchange.length} characters was ready, and no row has it", ready.key,
    )  # fmt: skip


def _cut_off(exchange: Exchange) -> Fault:
    came = exchange.came
    return Fault(
        codes.LOST, came.place,
        "the gateway stopped while it answered this; what the user had read by then is lost",
        came.key,
    )  # fmt: skip


def _rounded(difference: int) -> int:
    """Return the difference of two clocks that a time zone makes."""
    return round(difference / QUARTER) * QUARTER


def _same(text: str, preview: str) -> bool:
    """Tell whether a row may be the message that the log has the first characters of."""
    flat, words = text.replace("\n", " ").strip(), preview.strip()
    if not words or not flat:
        return words == flat
    # In a group the sender's name stands before the words, in a reply what it replies to.
    return flat.startswith(words) or words in flat
