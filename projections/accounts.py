"""What each finding's paragraph tells of what happened, and what it advises: from the case's facts.

By code. What is wrong with a source is told by the import; what that means stands below it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from datetime import UTC
from types import MappingProxyType
from typing import NamedTuple

from onrecord.projections.case import Case
from onrecord.projections.telling import fault_words, quote, sentence, words_of
from onrecord.transcript import events as e

REASONS_TOLD = 3
"""Reasons of refused or unclear sends that an account names."""


class Account(NamedTuple):
    """What happened, and what to do about it."""

    happened: str
    advice: str


def account_of(case: Case) -> Account:
    """Return a finding's account."""
    return ACCOUNTS.get(case.finding.code, _unknown)(case)


def _undelivered(case: Case) -> Account:
    line = case.line
    made = {"recovered": "a recovery kept", "final": "the agent ended its turn with"}.get(
        line.origin, "the model produced"
    )
    refused = _refusals(case)
    tried = (
        f"It was attempted, and the platform took nothing of it: {refused}."
        if refused
        else "No attempt to send it is on record."
    )
    message = f" with message {line.message}" if line.message else ""
    return Account(
        sentence(f"at {case.at(line.anchor)} {made} {quote(line.text)}{case.place(line.anchor)}")
        + f" {tried} {sentence(case.ended())}",
        f"If it is still of use, send it now: a delivery{message}, attempted on record before it "
        "goes out. Else leave it, and render with `annotate`, so that the model doesn't count on it.",
    )


def _partly(case: Case) -> Account:
    line = case.line
    shown = line.shown
    final = case.view.facts.final if case.view is not None else None
    whole = line.core if len(line.core) > len(shown) else ((final and final[1].text) or "").strip()
    first = min((take.first for take in line.takes), default=line.anchor)
    refused = _refusals(case)
    why = f"What follows was refused: {refused}" if refused else "What follows was never attempted"
    return Account(
        f"The whole text has {len(whole)} characters: {sentence(quote(whole))} Only its first "
        f"{len(shown)} went out, beginning at {case.at(first)}{case.place(first)}. {why}; "
        f"{case.ended()}.",
        f"Send the rest, from character {len(shown)} on, as the next attempt of "
        f"{_named(case)}; or let the model answer again: it is given what the user got.",
    )


def _doubt(case: Case) -> Account:
    line = case.line
    unclear = [
        f"{event.reason or 'no answer'} at {case.at(version)}"
        for version, event in case.own(e.DeliveryFailed)
        if not event.definite
    ]
    attempts = [version for version, _ in case.own(e.DeliveryAttempted)]
    last = f"At {case.at(attempts[-1])} " if attempts else ""
    taken = max((take.taken for take in line.takes), default=0)
    what = (
        f"the rest of {quote(line.shown)}, from character {taken} on,"
        if taken
        else quote(line.shown)
    )
    why = (
        f"the send came to no clear end: {'; '.join(unclear[:REASONS_TOLD])}"
        if unclear
        else "and nothing more was heard of it, as when a process is killed"
    )
    return Account(
        f"{last}{what} was on its way{case.place(line.anchor)}, {why}. {sentence(case.ended())}",
        f"Look into {_where(case)} whether the text is there, and record what you find: "
        f"DeliveryConfirmed, or DeliveryFailed, for {_named(case)}. Don't send it again unseen: the "
        "user may read it twice.",
    )


def _differs(case: Case) -> Account:
    line = case.line
    shown = line.shown.strip()
    final = case.view.facts.final if case.view is not None else None
    if line.core and not line.core.startswith(shown):
        said, meant = "the model produced", line.core
    else:
        said, meant = "the agent ended its turn with", ((final and final[1].text) or "").strip()
    same = next(
        (n for n, (a, b) in enumerate(zip(meant, shown, strict=False)) if a != b),
        min(len(meant), len(shown)),
    )
    edits = [version for version, _ in case.own(e.DeliveryRevised)]
    how = f" The message was changed after it was sent, at {case.at(edits[-1])}." if edits else ""
    if same == len(meant):
        apart = f"what the user read goes on with {quote(shown[same:])}"
    elif same:
        apart = f"they differ after {same} characters that agree"
    else:
        apart = "they differ from the first character on"
    told = f"the user read {quote(shown)}{case.place(line.anchor)}, and {said} {quote(meant)}"
    return Account(
        f"{sentence(f'{told}: {apart}')}{how}",
        "Find what changes a text between the model and the platform (a footer, a filter, a second "
        "writer). Let it run before the message is recorded, or send its addition as a notice.",
    )


def _twice(case: Case) -> Account:
    line = case.line
    times = [take.first for take in line.takes if take.taken_text.strip() and not take.edit]
    told = ", ".join(f"{case.at(version)}{case.place(version)}" for version in times)
    ids = case.platform_ids()
    return Account(
        f"{quote(line.shown)} was sent and taken {len(times)} times, at {told}"
        f"{f', as messages {ids} of the platform' if ids else ''}.",
        "Delete one of them on the platform if it matters. Then find why it was sent again: a retry "
        "after an unclear end has to ask the platform first, and a Hold keeps a second process away.",
    )


def _unanswered(case: Case) -> Account:
    calls = [
        f"{call.name} [{call.id}]"
        for line in case.lines
        for call in line.calls
        if call.id not in line.results
    ]
    line = case.line
    return Account(
        f"At {case.at(line.anchor)} the model called {', '.join(calls)}{case.place(line.anchor)}. No "
        f"result came; {case.ended()}.",
        "Find out whether the tool ran before the model calls it again: what it did may be done. Let "
        "the agent record a result as soon as the tool answers, also a failure.",
    )


def _orphan(case: Case) -> Account:
    results = case.own(e.ToolResultReceived)
    told = [
        f"At {case.at(version)} the result {quote(event.text)} of call {event.tool_call} came "
        f"in{case.place(version)}"
        for version, event in results
    ]
    return Account(
        f"{'; '.join(told) or case.finding.detail}. No message of the session makes that call.",
        "Record the message with its calls before a tool runs. If it was imported, look in the source "
        "for the row before: it may have been cut or lost.",
    )


def _unclosed(case: Case) -> Account:
    begun = case.finding.versions[0]
    record = case.records.get(case.heard())
    said = (
        f"the last of it, at {case.at(record.version)}: {words_of(record.event)}" if record else ""
    )
    return Account(
        f"The turn began at {case.at(begun)}{case.place(begun)}, a later one began, and this one was "
        f"never finalised. {sentence(said) if said else ''}".rstrip(),
        "If the process died, `onrecord.Recovery` names such turns at a start and what is known of "
        "them. If it lives, let the agent leave its turn however it ends: `with agent.turn(name)`.",
    )


def _conflict(case: Case) -> Account:
    told = []
    for version in case.finding.versions:
        record = case.records.get(version)
        if record is None:
            continue
        first = next(
            (r for r in case.records.values() if r.id == record.event.conflicts_with), None
        )
        writer = record.event.writer or "a writer"
        told.append(
            f"At {case.at(version)} {writer} said: {words_of(record.event)}"
            + (f". Version {first.version} says: {words_of(first.event)}" if first else "")
        )
    return Account(
        f"{'. '.join(told) or case.finding.detail}. The first one counts for the rows.",
        "Two writers tell different things under one id, or an id is used twice: find out which of "
        "them, by `onrecord export`, and give each message, call and turn an id of its own.",
    )


def _set_aside(case: Case) -> Account:
    return Account(
        sentence(case.finding.detail),
        "`onrecord verify` says what is damaged. Once the record can be read again, `onrecord rebuild` "
        "takes it in.",
    )


def _not_in_source(case: Case) -> Account:
    line = case.line
    ids = case.platform_ids()
    known = f", as {ids} of the platform" if ids else ""
    name = shlex.quote(case.finding.session)
    return Account(
        f"The source says that {quote(line.shown)} went out at {case.at(line.anchor)}"
        f"{case.place(line.anchor)}{known}. Its transcript holds no row of it: the reply was lost "
        "between the platform and what was saved.",
        f"Go on from here instead of from the source: `onrecord show {name} --as PROFILE` holds the "
        "reply. A bot that goes on from its own transcript has forgotten what it said, and answers "
        "again.",
    )


def _of_source(means: str, advice: str) -> Callable[[Case], Account]:
    """Return the account of a fault of a source: the import's words, what they mean, and advice."""

    def account(case: Case) -> Account:
        faults = case.own(e.SourceFaultFound)
        told = "; ".join(fault_words(fault) for _, fault in faults)
        name = shlex.quote(case.finding.session)
        return Account(
            f"{sentence(told or case.finding.detail)} {means}", advice.replace("SESSION", name)
        )

    return account


_unknown = _of_source(
    "An import found this in its source.", "Look at that place in the source; its detail says what."
)

ACCOUNTS: Mapping[str, Callable[[Case], Account]] = MappingProxyType(
    {
        "delivered-not-in-source": _not_in_source,
        "duplicate-in-source": _of_source(
            "The source holds it twice; the first one makes the row.",
            "A bot that goes on from the source sends both: the model is told the same twice, and a "
            "provider may refuse two results of one call. Delete the later one there.",
        ),
        "alternation-broken-in-source": _of_source(
            "Rows of the source don't follow one another as providers ask for it.",
            "`onrecord show SESSION --as PROFILE` gives a request that a strict provider takes. If a "
            "message between them is missing, look at the turn before it.",
        ),
        "produced-not-delivered": _undelivered,
        "partly-delivered": _partly,
        "delivery-in-doubt": _doubt,
        "delivered-differs": _differs,
        "delivered-twice": _twice,
        "unanswered-tool-call": _unanswered,
        "orphan-tool-result": _orphan,
        "turn-unclosed": _unclosed,
        "conflicting-record": _conflict,
        "record-set-aside": _set_aside,
        "content-unrecoverable": _of_source(
            "Something was said there, and what it was can't be read any more.",
            "Ask the platform for the message, if it keeps one; its text is nowhere in the source.",
        ),
        "synthetic-in-source": _of_source(
            "Nobody said this: the program wrote it into the transcript in somebody's name.",
            "It makes no row here. A bot that goes on from the source takes it for the user's words: "
            "keep prompts of the program out of what is saved.",
        ),
        "unreadable-in-source": _of_source(
            "That record can't be read and was left out; what stands around it was taken.",
            "Look at that place in the source, or in an older copy of it, and import it again.",
        ),
        "malformed-in-source": _of_source(
            "What could be read of that record was taken.",
            "Look at that place in the source: what is wrong there may be missing from the row.",
        ),
        "unknown-in-source": _of_source(
            "It makes no row, because this version doesn't know what it says.",
            "See whether a newer onrecord knows it; import again, and only what is new is added.",
        ),
        "hidden-in-source": _of_source(
            "The program that wrote the source reaches these rows no more: it doesn't show them, and its "
            "model has forgotten them.",
            "They stand here as they were said. Let the program go on from a transcript that has them.",
        ),
        "torn-tail": _of_source(
            "The program was killed while it wrote, or is still writing.",
            "Import again once it has gone on. If it never does, its last record is lost.",
        ),
        "gap": _of_source(
            "Something stood there and is gone.",
            "Look for an older copy of the source. Rows on both sides of the gap stand as they are.",
        ),
    }
)
"""Code → what makes its account."""


def _refusals(case: Case) -> str:
    """Return why sends of the line were refused, each reason once, the newest last."""
    refused: dict[str, None] = {}
    for sent in case.deliveries:
        for version in sent.versions:
            event = case.records[version].event if version in case.records else None
            if isinstance(event, e.DeliveryFailed) and event.definite:
                wait = event.not_before
                until = f" (not before {wait.astimezone(UTC):%H:%M:%S})" if wait else ""
                refused[f"{event.reason or 'no reason given'} at {case.at(version)}{until}"] = None
    return "; ".join(list(refused)[-REASONS_TOLD:])


def _named(case: Case) -> str:
    return "delivery " + (", ".join(sent.id for sent in case.deliveries) or "of it")


def _where(case: Case) -> str:
    """Return the chat that it was sent to, as well as the events say it."""
    for _, event in case.own(e.DeliveryAttempted):
        if event.target is not None:
            return f"chat {event.target.chat} on {event.target.platform}"
    return "the user's chat"
