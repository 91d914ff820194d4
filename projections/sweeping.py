"""Going through the sessions of a log, on several processes, in the log's order.

    for found in sweep(log, places, partial(audit_session, asked=asked), jobs=2): ...

What is asked of a session is a function of its log and its place, and gives any number of answers. A
process takes on a share of sessions at once and hands their answers back whole, so only so many shares
are under way; a session that is too long for that is asked here, answer by answer.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from onrecord.projections.stored.places import Place
from onrecord.transcript.bulk import uncollected
from onrecord.transcript.errors import OnRecordError
from onrecord.transcript.log import TranscriptLog

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

Ask = Callable[[TranscriptLog, Place], Iterable[T]]
"""What is asked of each session; other processes are sent it, so it is a module's function."""
Progress = Callable[[int, int], None]
"""Is told how many records of how many were gone through."""

SHARE = 4_000
"""Records, about, that a process takes on at once."""
SHARES_AHEAD = 4
"""Shares a process that are under way or wait to be taken."""
WORTHWHILE = 100_000
"""Records from which on other processes are begun: beginning one takes as long as 40,000 records."""


def sweep(
    log: TranscriptLog,
    places: Sequence[Place],
    ask: Ask[T],
    *,
    jobs: int = 1,
    in_parts: bool = False,
    progress: Progress | None = None,
) -> Iterator[T]:
    """Give the answers of all sessions, in order. Raise what `ask` raises.

    `jobs`: processes that share the work, this one among them; `in_parts`: a long session is asked in
    this one, so that its answers never are in memory all at once.
    """
    told = progress or _untold
    total = sum(place.version for place in places)
    done = 0
    told(done, total)
    url = log.database.url
    if jobs == 1 or total < WORTHWHILE or url is None:
        answered = _alone(log, places, ask, in_parts=in_parts)
    else:
        answered = _shared(log, url, places, ask, jobs, in_parts=in_parts)
    for share, answers in answered:
        yield from answers
        done += sum(place.version for place in share)
        told(done, total)


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_Answered = Iterator[tuple[Sequence[Place], Iterable[T]]]


def _alone(
    log: TranscriptLog, places: Sequence[Place], ask: Ask[T], *, in_parts: bool
) -> _Answered[T]:
    for share in _shares(places):
        apart = in_parts and share[0].is_long
        yield share, ask(log, share[0]) if apart else _all_answers(log, ask, share)


class _Share(Generic[T]):
    """Some sessions, and what came of them: in another process (`future`) or here."""

    def __init__(self, places: Sequence[Place], future: Future[list[T]] | None) -> None:
        self.places = places
        self.future = future
        self.answers: Iterable[T] | None = None

    def take_back(self) -> bool:
        """Tell whether no other process has begun with it; then none will."""
        return self.answers is None and self.future is not None and self.future.cancel()


def _shared(
    log: TranscriptLog,
    url: str,
    places: Sequence[Place],
    ask: Ask[T],
    jobs: int,
    *,
    in_parts: bool,
) -> _Answered[T]:
    # Loaded where processes are wanted: a short log needs none of it.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    waiting: deque[_Share[T]] = deque()
    with ProcessPoolExecutor(
        jobs - 1,  # and this one
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_open,
        initargs=(url,),
    ) as pool:
        try:
            for some in _shares(places):
                apart = in_parts and some[0].is_long
                waiting.append(_Share(some, None if apart else pool.submit(_ask_here, ask, some)))
                if len(waiting) > SHARES_AHEAD * jobs:
                    yield _next(log, ask, waiting)
            while waiting:
                yield _next(log, ask, waiting)
        finally:
            pool.shutdown(cancel_futures=True)


def _next(
    log: TranscriptLog, ask: Ask[T], waiting: deque[_Share[T]]
) -> tuple[Sequence[Place], Iterable[T]]:
    """Return the answers of the first share; while another process is at it, do those that wait."""
    first = waiting.popleft()
    if first.future is None:
        return first.places, ask(log, first.places[0])
    while first.answers is None and not first.future.done():
        mine = next((share for share in (first, *waiting) if share.take_back()), None)
        if mine is None:
            break
        mine.answers = _all_answers(log, ask, mine.places)
    return first.places, _result(first.future) if first.answers is None else first.answers


def _result(future: Future[list[T]]) -> list[T]:
    from concurrent.futures.process import BrokenProcessPool

    try:
        return future.result()
    except BrokenProcessPool as error:
        raise OnRecordError(
            "a process that shared the work ended before it was done (was it killed, or out of "
            "memory?); try again with --jobs 1"
        ) from error


def _shares(places: Iterable[Place]) -> Iterator[list[Place]]:
    """Give the places in portions; a long session is one of its own."""
    share: list[Place] = []
    size = 0
    for place in places:
        if share and (size + place.version > SHARE or share[0].is_long):
            yield share
            share, size = [], 0
        share.append(place)
        size += place.version
    if share:
        yield share


_here: dict[str, TranscriptLog] = {}
"""The log of a process that takes part."""


def _open(url: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asks: it ends this one
    _here["log"] = TranscriptLog.open(url, create=False)


def _ask_here(ask: Ask[T], places: Sequence[Place]) -> list[T]:
    return _all_answers(_here["log"], ask, places)


def _all_answers(log: TranscriptLog, ask: Ask[T], places: Sequence[Place]) -> list[T]:
    with uncollected():
        return [answer for place in places for answer in ask(log, place)]


def _untold(done: int, total: int) -> None:
    """Keep progress to oneself."""
