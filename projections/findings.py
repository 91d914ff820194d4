"""What an audit finds in a session: differences between what was said, sent and seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from onrecord.projections.conversation import Conversation
from onrecord.projections.lines import Line, akin, says
from onrecord.projections.telling import fault_words
from onrecord.projections.turn_rows import TurnView
from onrecord.transcript.recorded import Recorded


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding. `versions`: the events concerned, ascending; `detail`: one sentence."""

    code: str
    session: str
    turn: str
    versions: tuple[int, ...]
    detail: str


def findings(session: str, records: Iterable[Recorded]) -> list[Finding]:
    """Return what an audit finds in a session's records, turn by turn."""
    conversation = Conversation()
    for recorded in records:
        conversation.apply(recorded)
    return findings_of(session, conversation)


def findings_of(session: str, conversation: Conversation) -> list[Finding]:
    """Return what an audit finds in a folded session."""
    found: list[Finding] = []
    later = False
    for shown in reversed(conversation.views()):
        found += findings_of_turn(session, shown, later=later)
        later = later or shown.facts.counts
    return in_order(found + session_findings(session, conversation))


def findings_of_turn(session: str, shown: TurnView, *, later: bool) -> list[Finding]:
    """Return what is found in one turn. `later`: one that counts began after it."""
    return [
        _finding(session, shown.facts.name, code, versions, detail)
        for code, versions, detail in _in_turn(shown, later=later)
    ]


def session_findings(session: str, conversation: Conversation) -> list[Finding]:
    """Return what is found beside a session's turns: orphans, contradictions, faults of a source."""
    found: list[Finding] = []
    for version, turn, call in conversation.orphans():
        detail = f"no call {call!r} is in the session"
        found.append(_finding(session, turn, "orphan-tool-result", [version], detail))
    for version, event in conversation.conflicts:
        detail = f"a {event.type} contradicts the record {event.conflicts_with}"
        turn = conversation.turn_of_event(event)
        found.append(_finding(session, turn, "conflicting-record", [version], detail))
    for version, fault in conversation.source_faults:
        turn = conversation.turn_of_event(fault)
        found.append(_finding(session, turn, fault.code, [version], fault_words(fault)))
    return found


def set_aside(session: str, version: int, reason: str) -> Finding:
    """Return the finding of a record that a projection goes on without."""
    detail = (
        f"the record can't be projected and was left out: {reason}; `onrecord verify` says what is "
        "damaged, `onrecord rebuild` takes in what can be read again"
    )
    return _finding(session, "", "record-set-aside", [version], detail)


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """Return findings by the events concerned, as an audit tells them."""
    return sorted(found, key=lambda finding: (finding.versions, finding.code))


def _finding(session: str, turn: str, code: str, versions: Iterable[int], detail: str) -> Finding:
    numbers = tuple(sorted(set(versions)))
    return Finding(code=code, session=session, turn=turn, versions=numbers, detail=detail)


_Found = tuple[str, Iterable[int], str]


def _in_turn(shown: TurnView, *, later: bool) -> Iterator[_Found]:
    facts = shown.facts
    over = facts.closed or later
    for line in shown.lines:
        if shown.place.tracked or line.deliveries:
            yield from _of_delivery(line, closed=facts.closed, over=over)
        if facts.closed:
            for call in line.calls:
                if call.id not in line.results:
                    yield "unanswered-tool-call", line.versions, f"no result of call {call.id!r}"
    yield from _of_final(shown)
    if later and not facts.closed:
        yield "turn-unclosed", [facts.begun], "a later turn began and this one was never finalised"


def _of_delivery(line: Line, *, closed: bool, over: bool) -> Iterator[_Found]:
    if closed and line.status == "undelivered" and not line.calls:
        yield "produced-not-delivered", line.versions, "the user never got this text"
    if over and line.status == "partial" and line.whole:
        yield "partly-delivered", line.versions, "the user got a beginning of this text"
    if over and line.status == "in_doubt":
        yield "delivery-in-doubt", line.versions, "nobody knows whether the user got this text"
    if line.shown.strip() and any(delivery.imported for delivery in line.deliveries):
        yield from _of_source(line)
    if _differs(line):
        yield "delivered-differs", line.versions, "the user read another text than was produced"
    if len(line.takes) > 1:
        sent = [take for take in line.takes if not take.edit]
        whole = Counter(t.text.strip() for t in sent if t.taken_text.strip() == t.text.strip())
        for text, times in whole.items():
            if text and times > 1:
                yield "delivered-twice", line.versions, "the user got this text more than once"


def _of_source(line: Line) -> Iterator[_Found]:
    """Find what an imported transcript lacks of what it says was delivered."""
    detail = ""
    if line.origin == "delivered":
        detail = "the user read this text, and the source has no row of it"
    elif line.core and _differs(line) and line.shown.strip().startswith(line.core):
        detail = "the user read more than the source's row has"
    if detail:
        yield "delivered-not-in-source", line.versions, detail


def _of_final(shown: TurnView) -> Iterator[_Found]:
    """Compare the final text with what was shown after the last tool call."""
    final = shown.facts.final
    text = (final[1].text or "") if final else ""
    words = text.strip()
    if final is None or not words or any(says(line, words) for line in shown.lines):
        return
    calls = max((i for i, line in enumerate(shown.lines) if line.calls), default=-1)
    seen = [line for line in shown.lines[calls + 1 :] if line.shown.strip()]
    if not seen or any(akin(line.shown, text) for line in seen):
        return
    if not _differs(seen[-1]):  # which is found already
        versions = {*seen[-1].versions, final[0]}
        yield "delivered-differs", versions, "the user read another text than the final one"


def _differs(line: Line) -> bool:
    """Tell whether the user saw another text than the produced one or a beginning of it."""
    shown = line.shown.strip()
    return bool(shown and line.core) and not line.core.startswith(shown)
