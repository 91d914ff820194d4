"""Each model call's input rendered again, and held against the digest that the call kept.

A call says up to which version the transcript went that the model was given, and keeps the digest of
the messages. What renders otherwise today, does so because a rule has changed, because the call's
version isn't the one that was rendered (an event came in between), or because content was erased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from onrecord.projections.conversation import Conversation
from onrecord.projections.differences import Difference, compare_messages, messages_of
from onrecord.projections.profiles.rendering import PROFILES, render
from onrecord.projections.rows import Row
from onrecord.projections.telling import words_of
from onrecord.transcript.codec import digest
from onrecord.transcript.events import KNOWN, ModelCalled, UnknownEvent
from onrecord.transcript.recorded import Recorded

NEIGHBOURS = 32
"""Versions before the one that a call names, of which it is tried whether its input is theirs."""
EVENTS_TOLD = 5
"""Events that a cause names by their words."""

Read: TypeAlias = Callable[[], Iterable[Recorded]]


class Form(msgspec.Struct, frozen=True):
    """How an input was rendered. `whole`: the request, else its list of messages alone."""

    profile: str
    annotate: bool = False
    whole: bool = True


class Changed(msgspec.Struct, frozen=True):
    """A call whose input would differ now. `version`: where the call stands; `at`: up to which
    version its input went; `cause`: why, as far as that can be told; `events`: those that it names.
    `differences`: from what the model was given to what `at` renders, where that is known.
    """

    version: int
    call: str
    turn: str
    at: int
    profile: str
    cause: str
    events: tuple[int, ...] = ()
    differences: tuple[Difference, ...] = ()


class Rerendering(msgspec.Struct):
    """What came of a session: calls that render the same, calls without a digest or a known profile,
    and the first that differs, after which no other is looked at.
    """

    session: str
    calls: int = 0
    same: int = 0
    unverifiable: int = 0
    changed: Changed | None = None


def rerender(
    session: str, read: Read, told: Callable[[int, int], None] | None = None
) -> Rerendering:
    """Render the input of a session's calls again, until one differs.

    `read` gives the session's records from the first on, each time. `told` hears how many calls of
    how many are done. A call that names no profile is tried with each.
    """
    result = Rerendering(session)
    waiting: dict[int, list[tuple[int, ModelCalled]]] = {}
    for recorded in read():
        event = recorded.event
        if isinstance(event, ModelCalled):
            result.calls += 1
            if not event.digest or (event.profile and event.profile not in PROFILES):
                result.unverifiable += 1
            else:
                waiting.setdefault(event.version, []).append((recorded.version, event))
    known: list[Form] = []
    done = result.unverifiable
    for rows, at in _stands(read(), waiting):
        for version, event in waiting[at]:
            found = _form_of(rows, event, known)
            if found is None:
                result.changed = _changed(version, event, read, known)
                return result
            if found not in known:
                known.insert(0, found)
            result.same += 1
            done += 1
            if told is not None:
                told(done, result.calls)
    return result


def _stands(
    records: Iterable[Recorded], versions: Mapping[int, object]
) -> Iterator[tuple[list[Row], int]]:
    """Yield the rows as they stood at each of the versions, and the version."""
    conversation = Conversation()
    left = sorted(versions, reverse=True)
    while left and left[-1] <= 0:
        yield [], left.pop()
    for recorded in records:
        conversation.apply(recorded)
        while left and left[-1] <= recorded.version:
            yield conversation.rows(), left.pop()
        if not left:
            return
    while left:  # beyond the newest: nothing more is known of them
        yield conversation.rows(), left.pop()


def _form_of(rows: Sequence[Row], event: ModelCalled, known: Sequence[Form]) -> Form | None:
    """Return the form in which rows render to a call's digest, None without one."""
    profiles = [event.profile] if event.profile else list(PROFILES)
    first = [form for form in known if form.profile in profiles]
    for form in (*first, *_forms(profiles)):
        if digest(_input(rows, form)) == event.digest:
            return form
    return None


def _forms(profiles: Iterable[str]) -> Iterator[Form]:
    for profile in profiles:
        for annotate in (False, True):
            yield Form(profile, annotate, whole=True)
            yield Form(profile, annotate, whole=False)


def _input(rows: Sequence[Row], form: Form) -> Any:
    request = render(rows, form.profile, annotate=form.annotate)
    if form.whole:
        return request
    return next(request[name] for name in ("messages", "input", "contents") if name in request)


def _changed(version: int, event: ModelCalled, read: Read, known: Sequence[Form]) -> Changed:
    """Say why an input differs, as far as the log can tell."""
    told = Changed(version, event.call, event.turn, event.version, event.profile, "")
    records = [r for r in read() if r.version <= max(version, event.version)]
    erased = [r.version for r in records if r.version <= event.version and _is_erased(r)]
    if erased:
        cause = f"content that it was made of was erased since (version {_numbers(erased)})"
        return msgspec.structs.replace(told, cause=cause, events=tuple(erased))
    tried = [n for n in range(version - 1, event.version - NEIGHBOURS - 1, -1) if n >= 0]
    stands = {at: rows for rows, at in _stands(records, dict.fromkeys([*tried, event.version]))}
    for at in tried:
        form = _form_of(stands[at], event, known)
        if form is not None:
            return _late(told, at, form, stands, records)
    asked = f"profile {event.profile}" if event.profile else "any profile"
    cause = (
        f"neither version {event.version} nor one near it renders so under {asked}: a rule of the "
        "rows or of the profile has changed since, or the agent sent more, or less, than was rendered"
    )
    return msgspec.structs.replace(told, cause=cause)


def _late(
    told: Changed,
    at: int,
    form: Form,
    stands: Mapping[int, Sequence[Row]],
    records: Sequence[Recorded],
) -> Changed:
    """Say which events lie between the version that a call names and the one that it was given."""
    low, high = sorted((at, told.at))
    between = [r for r in records if low < r.version <= high]
    words = [f"{r.version} {words_of(r.event)}" for r in between[:EVENTS_TOLD]]
    more = [f"and {len(between) - EVENTS_TOLD} more"] if len(between) > EVENTS_TOLD else []
    if at < told.at:
        why = "what came in before the call was written isn't in it"
    else:
        why = "it holds what the version that the call names doesn't have yet"
    then, now = (
        messages_of(render(stands[n], form.profile, annotate=form.annotate)) for n in (at, told.at)
    )
    return msgspec.structs.replace(
        told,
        profile=form.profile,
        cause=f"the model was given version {at}, not {told.at}: {why}: {'; '.join(words + more)}",
        events=tuple(r.version for r in between),
        differences=tuple(one for one in compare_messages(then, now) if one.kind != "same"),
    )


def _is_erased(recorded: Recorded) -> bool:
    """Tell whether a record is there without what it said."""
    return isinstance(recorded.event, UnknownEvent) and recorded.type in KNOWN


def _numbers(versions: Sequence[int]) -> str:
    return ", ".join(map(str, versions[:EVENTS_TOLD])) + (" …" if versions[EVENTS_TOLD:] else "")
