"""The promise: what was delivered stands in the transcript.

For every `answer` delivery, each text that was attempted and not definitely refused (or that it was
revised to) stands, in one piece, in an assistant row of the delivery's own turn; each once, and in
the order of first attempts. The check runs whenever a transcript is built. It knows nothing of the
fold that made the rows: what must stand comes from the events (`onrecord.projections.promised`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

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
    session: str,
    reading: Reading,
    rows: Sequence[Row],
    *,
    full: bool = False,
    turns: Collection[str] | None = None,
) -> None:
    """Check rows against a reading that was made before. `turns`: only what was said in these."""
    promised = [text for text in reading.texts(turns) if full or not reading.is_out(text.turn)]
    spoken: dict[str, _Spoken] = defaultdict(_Spoken)
    for row in rows:
        if row.role == "assistant" and row.origin != "synthetic":
            spoken[row.turn].add(row.text)
    missing = [t for t in promised if not spoken[t.turn].holds(t.text)]
    if missing:
        raise DeliveredNotProjected(session, (missing[0], "isn't in its turn"), rows, missing)
    for alike in _repeated(promised, spoken):
        if _twice(alike, reading, spoken):
            raise DeliveredNotProjected(session, (alike[0], "stands twice in its turn"), rows, ())
    if (late := _out_of_order(promised, reading, spoken)) is not None:
        raise DeliveredNotProjected(session, (late, "stands before an earlier one"), rows, ())


class _Spoken:
    """The assistant's texts of a turn, without blank space around them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: Counter[str] = Counter()

    def add(self, text: str) -> None:
        self.lines.append(text.strip())
        self.known[text.strip()] += 1

    def holds(self, text: str) -> bool:
        wanted = text.strip()
        return wanted in self.known or any(wanted in line for line in self.lines)

    def count(self, text: str) -> int:
        return self.known[text.strip()]

    def places(self, text: str) -> list[int]:
        wanted = text.strip()
        return [i for i, line in enumerate(self.lines) if wanted in line]


def check_texts(session: str, reading: Reading, texts: Sequence[str]) -> None:
    """Check the assistant's texts of a provider's request, where turns are no longer told apart."""
    spoken = _Spoken()
    for line in texts:
        spoken.add(line)
    missing = [t for t in reading.texts() if not (reading.is_out(t.turn) or spoken.holds(t.text))]
    if missing:
        raise DeliveredNotProjected(session, (missing[0], "isn't in the request"), (), missing)


def _repeated(
    promised: Sequence[Promised], spoken: Mapping[str, _Spoken]
) -> Iterable[list[Promised]]:
    """Return the texts that several rows of their turn read like, those with the same words as one."""
    found: dict[tuple[str, str], list[Promised]] = {}
    for text in promised:
        if spoken[text.turn].count(text.text) > 1:
            found.setdefault((text.turn, text.text.strip()), []).append(text)
    return found.values()


def _twice(alike: Sequence[Promised], reading: Reading, spoken: Mapping[str, _Spoken]) -> bool:
    """Tell whether more rows read like these texts than were produced or delivered."""
    text = alike[0]
    wanted = text.text.strip()
    sources = {
        ("message", message)
        for message, words in reading.produced.get(text.turn, {}).items()
        if _akin(words.strip(), wanted)
    }
    apart = not sources  # a delivery without a message is of a produced one where one fits
    for other in alike:
        if other.message is not None:
            sources.add(("message", other.message))
        elif apart or not other.lone:
            sources.add(("delivery", other.delivery))
    return spoken[text.turn].count(wanted) > len(sources)


def _akin(a: str, b: str) -> bool:
    return bool(a) and (a.startswith(b) or b.startswith(a))


def _out_of_order(
    promised: Sequence[Promised], reading: Reading, spoken: Mapping[str, _Spoken]
) -> Promised | None:
    """Return a text that stands before one of a delivery that began earlier.

    Only between deliveries of one turn whose place is the attempt's, not that of a message that was
    produced, nor of a row that they share; and only where it is plain which row is whose.
    """
    in_turn = Counter(text.turn for text in promised)
    promised = [text for text in promised if in_turn[text.turn] > 1]
    known: dict[tuple[str, str, str], str] = {}
    sharing: set[str] = set()
    for text in promised:
        for kind, key in (("text", text.text.strip()), ("message", text.message)):
            if key is None:
                continue
            other = known.setdefault((text.turn, kind, key), text.delivery)
            if other != text.delivery:
                sharing |= {other, text.delivery}
    last: dict[str, tuple[str, int]] = {}
    for text in sorted(promised, key=lambda text: (text.began, text.first)):
        if text.erased or text.delivery in sharing or _is_produced(text, reading):
            continue
        rows = spoken[text.turn].places(text.text)
        if len(rows) != 1:
            continue
        before = last.get(text.turn)
        if before is not None and before[0] != text.delivery and rows[0] < before[1]:
            return text
        last[text.turn] = (text.delivery, rows[0])
    return None


def _is_produced(text: Promised, reading: Reading) -> bool:
    """Tell whether a text may be of a produced message."""
    produced = reading.produced.get(text.turn, {})
    return bool(produced) if text.message is None else text.message in produced


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
