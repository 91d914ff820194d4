"""Which of the model's rows a text, or the length of one, belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from onrecord.transcript.importers import foreign
from onrecord.transcript.importers.hermes.cells import content_of
from onrecord.transcript.importers.hermes.compaction import summary_of
from onrecord.transcript.importers.hermes.prompts import EMPTY, INTERRUPTED, kind_of
from onrecord.transcript.importers.hermes.tables import Tables

BACK = 24 * 3600.0
"""Seconds before a delivery in which its turn began."""
SKEW = 0.05
"""Seconds by which a row may be stamped later than the delivery of its text: clocks are cut off."""
ROWS_LIMIT = 200
"""Rows before a delivery among which its text is looked for."""
JOINED_LIMIT = 8
"""Responses that are sent as one text: those that were continued."""


class Answer(NamedTuple):
    """A row of the model's. `asked`: the user's row before it, None where that is too far back.

    `broken_off`: it has no finish_reason and no calls: Hermes stored what there was of it.
    """

    id: int
    text: str
    asked: int | None
    broken_off: bool


def answers_before(
    tables: Tables, session: str, until: int, since: int | None = None
) -> tuple[list[Answer], int | None]:
    """Return the answers of a session before a moment (µs), in order, and the user's last row."""
    moment = until / 1_000_000
    begin = moment - BACK if since is None else since / 1_000_000
    try:
        rows = tables.said(session, begin, moment + SKEW, ROWS_LIMIT)
    except foreign.Error:  # a text among them can't be read
        return [], None
    found: list[Answer] = []
    asked: int | None = None
    seen = set()
    for id, role, content, observed, at, whole in rows:
        if (role, at, content) in seen:
            continue  # a copy that a compaction left
        seen.add((role, at, content))
        text = content_of(content).text
        if role == "assistant":
            if _is_an_answer(text, whole):
                found.append(Answer(id, text, asked, not whole))
        elif not observed and not kind_of(text):
            asked = id
    return found, asked


def _is_an_answer(text: str, whole: bool) -> bool:
    if not text.strip() or text == EMPTY or summary_of(text):
        return False
    return whole or not text.startswith(INTERRUPTED)


def whose(answers: Sequence[Answer], fits: Callable[[str], bool]) -> list[Answer]:
    """Return the row that has the text, or those that have it together; none if no row does."""
    fitting = [answer for answer in answers if fits(answer.text)]
    if fitting:
        # The first of its turn: a second row with the text of an earlier one is no message.
        return [next(answer for answer in fitting if answer.asked == fitting[-1].asked)]
    if not answers:
        return []
    last = [answer for answer in answers if answer.asked == answers[-1].asked]
    for count in range(2, min(JOINED_LIMIT, len(last)) + 1):
        if fits("".join(answer.text for answer in last[-count:])):
            return last[-count:]
    return []
