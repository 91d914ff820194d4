"""The promise: what was delivered stands in the transcript.

For every `answer` delivery, each text that was attempted and not definitely refused (or that it was
revised to) stands, in one piece, in an assistant row of the delivery's own turn; each once, and in
the order of first attempts. The check runs whenever a transcript is built. It knows nothing of the
fold that made the rows: what must stand comes from the events (`onrecord.projections.promised`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onrecord.projections.promised import Promised, Reading, read
from onrecord.projections.rows import Row
from onrecord.transcript.errors import OnRecordError
from onrecord.transcript.recorded import Recorded

MARK = "[delivered, but missing from the transcript] "


class DeliveredNotProjected(OnRecordError):
    """A delivered text isn't in the rows: a fault of onrecord, or rows that somebody changed.

    `session`, `delivery`, `missing` (the first text that isn't there, or stands twice or out of
    order), `rows` as they were built, and `marked`: the rows with every missing text put in, said
    to be so, for a caller who must go on talking.
    """

    def __init__(
        self,
        session: str,
        breach: tuple[Promised, str],
        rows: Sequence[Row],
        missing: Sequence[Promised],
    ) -> None:
        text, fault = breach
        self.session = session
        self.delivery = text.delivery
        self.missing = text.text
        self.rows = list(rows)
        self.marked = _mark(rows, missing)
        super().__init__(
            f"session {session!r}: the text of delivery {text.delivery!r} {fault}: "
            f"{text.text[:80]!r}. Report this with `onrecord export` of the session; "
            "the log itself is whole."
        )


def check(
    session: str, records: Iterable[Recorded], rows: Sequence[Row], *, full: bool = False
) -> None:
    """Check rows against the records that they were built from.

    Raises DeliveredNotProjected. `full`: the rows are the full view, which leaves no turn out.
    """
    check_reading(session, read(records), rows, full=full)


def check_reading(
    session: str, reading: Reading, rows: Sequence[Row], *, full: bool = False
) -> None:
    """Check rows against a reading that was made before."""
    out = set[str]() if full else reading.out()
    promised = [text for text in reading.texts() if text.turn not in out]
    spoken: dict[str, list[str]] = {}
    for row in rows:
        if row.role == "assistant" and row.origin != "synthetic":
            spoken.setdefault(row.turn, []).append(row.text)
    missing = [t for t in promised if not _stands(t.text, spoken.get(t.turn, ()))]
    if missing:
        raise DeliveredNotProjected(session, (missing[0], "isn't in its turn"), rows, missing)
    for text in promised:
        if _twice(text, promised, reading, spoken[text.turn]):
            raise DeliveredNotProjected(session, (text, "stands twice in its turn"), rows, ())
    if (late := _out_of_order(promised, reading, spoken)) is not None:
        raise DeliveredNotProjected(session, (late, "stands before an earlier one"), rows, ())


def check_texts(session: str, reading: Reading, texts: Sequence[str]) -> None:
    """Check the assistant's texts of a provider's request, where turns are no longer told apart."""
    out = reading.out()
    missing = [t for t in reading.texts() if t.turn not in out and not _stands(t.text, texts)]
    if missing:
        raise DeliveredNotProjected(session, (missing[0], "isn't in the request"), (), missing)


def _stands(text: str, spoken: Iterable[str]) -> bool:
    wanted = text.strip()
    return any(wanted in line for line in spoken)


def _twice(
    text: Promised, promised: Sequence[Promised], reading: Reading, spoken: Sequence[str]
) -> bool:
    """Tell whether more rows read so than were produced or delivered."""
    wanted = text.text.strip()
    standing = sum(line.strip() == wanted for line in spoken)
    if standing < 2:
        return False
    sources = {
        message
        for message, (turn, words) in reading.produced.items()
        if turn == text.turn and _akin(words.strip(), wanted)
    }
    apart = not sources  # a delivery without a message is of a produced one where one fits
    for other in promised:
        if other.turn == text.turn and other.text.strip() == wanted:
            if other.message is not None:
                sources.add(other.message)
            elif apart:
                sources.add(other.delivery)
    return standing > len(sources)


def _akin(a: str, b: str) -> bool:
    return bool(a) and (a.startswith(b) or b.startswith(a))


def _out_of_order(
    promised: Sequence[Promised], reading: Reading, spoken: dict[str, list[str]]
) -> Promised | None:
    """Return a text that stands before one of a delivery that began earlier.

    Only between deliveries of one turn whose place is the attempt's, not that of a message that
    was produced or of words that were delivered before; and only where it is plain which row is
    whose.
    """
    last: dict[str, tuple[str, int]] = {}
    known: dict[tuple[str, str], str] = {}
    for text in sorted(promised, key=lambda text: (text.began, text.first)):
        wanted = text.text.strip()
        keys = [(text.turn, wanted)] + ([(text.turn, text.message)] if text.message else [])
        repeats = any(known.setdefault(key, text.delivery) != text.delivery for key in keys)
        rows = [i for i, line in enumerate(spoken[text.turn]) if wanted in line]
        if len(rows) != 1 or repeats or _is_produced(text, reading):
            continue
        before = last.get(text.turn)
        if before is not None and before[0] != text.delivery and rows[0] < before[1]:
            return text
        last[text.turn] = (text.delivery, rows[0])
    return None


def _is_produced(text: Promised, reading: Reading) -> bool:
    if text.message is not None:
        return text.message in reading.produced
    return any(turn == text.turn for turn, _ in reading.produced.values())


def _mark(rows: Sequence[Row], missing: Sequence[Promised]) -> list[Row]:
    marked = list(rows)
    for text in missing:
        turns = [i for i, row in enumerate(marked) if row.turn == text.turn]
        at = turns[-1] + 1 if turns else len(marked)
        row = Row(
            role="assistant",
            id=f"missing{text.first}",
            text=MARK + text.text,
            origin="delivered",
            turn=text.turn,
            versions=(text.first,),
        )
        marked.insert(at, row)
    return marked
