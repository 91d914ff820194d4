"""Projecting the whole log anew, beside what is read in the meantime."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onrecord.projections.stored import builds, tables
from onrecord.projections.stored.catching_up import Projector, Superseded
from onrecord.transcript.log import TranscriptLog

Progress = Callable[[int, int], None]
"""Is told how many records of how many are projected."""

SHARE = 2_000
"""Records, about, that a process takes on at once."""
COLLECT_EVERY = 50_000
"""Objects that a process that takes part makes before it looks for cycles."""
DROPPED_AT_ONCE = 50
"""Sessions of a replaced build that one transaction removes."""


def rebuild(log: TranscriptLog, code: int, progress: Progress, jobs: int) -> int:
    """Project all sessions into a build of its own and let it be the one that is read.

    Return how many records were projected. What is appended meanwhile is caught up when it is read.
    """
    database = log.database
    build = database.transact(
        lambda c: builds.new_build(c, code, live=False), doing="beginning a build"
    )
    sessions = database.read("listing sessions", lambda c: tables.behind(c, build))
    total = sum(count for _, count in sessions)
    done = 0
    progress(done, total)
    try:
        for count in _projected(log, build, sessions, jobs):
            done += count
            progress(done, total)
    except Superseded:
        return total  # by one that was begun later: there is nothing left to do

    def let_live(connection: Any) -> list[int]:
        live = builds.set_live(connection, build)
        return builds.others(connection, build, code) if live else []

    for number in database.transact(let_live, doing="letting a build be read"):
        _drop(log, number)
    return done


def _projected(
    log: TranscriptLog, build: int, sessions: Sequence[tuple[str, int]], jobs: int
) -> Iterator[int]:
    shares = list(_shares(sessions))
    if jobs == 1 or len(shares) == 1 or log.database.url is None:
        projector = Projector(log, build)
        for names, count in shares:
            _project(projector, names)
            yield count
        return
    # Loaded where processes are wanted: whoever only reads needs none of it.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    with ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_open,
        initargs=(log.database.url, build),
    ) as pool:
        waiting = {pool.submit(_project_here, names): count for names, count in shares}
        for future in as_completed(waiting):
            future.result()
            yield waiting[future]


def _shares(sessions: Sequence[tuple[str, int]]) -> Iterator[tuple[list[str], int]]:
    names: list[str] = []
    size = 0
    for name, count in sessions:
        names.append(name)
        size += count
        if size >= SHARE:
            yield names, size
            names, size = [], 0
    if names:
        yield names, size


def _project(projector: Projector, names: Sequence[str]) -> None:
    for name in names:
        projector.catch_up(name)
        projector.forget(name)


_here: dict[str, Any] = {}
"""The projector of a process that takes part."""


def _open(url: str, build: int) -> None:
    gc.set_threshold(COLLECT_EVERY)  # a fold makes no cycles, and is gone with its session
    _here["projector"] = Projector(TranscriptLog.open(url, create=False), build)


def _project_here(names: Sequence[str]) -> None:
    _project(_here["projector"], names)


def _drop(log: TranscriptLog, build: int) -> None:
    def drop_some(connection: Any) -> bool:
        numbers = builds.numbers_of(connection, build, DROPPED_AT_ONCE)
        for number in numbers:
            tables.drop_session(connection, number)
        if not numbers:
            builds.drop_build(connection, build)
        return bool(numbers)

    while log.database.transact(drop_some, durable=False, doing="removing a replaced build"):
        pass
