"""An audit of a log of many events: folded from its records, and read from what is stored of it."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path

from measure import MEBIBYTE_OF_KIBIBYTES, Figures, Task, finish, peak_memory, spawn
from onrecord.projections.auditing import Asked, Tally, audit
from onrecord.projections.stored import StoredProjections
from onrecord.transcript.events import (
    AssistantMessageProduced,
    DeliveryAttempted,
    DeliveryConfirmed,
    DeliveryFailed,
    Event,
    Target,
    TurnFinalized,
    UserMessageReceived,
)
from onrecord.transcript.log import TranscriptLog
from stores.onrecord_log import TURNS_A_BATCH, batches
from workload import SaidTurn, turns

EVENTS_A_TURN = 5
IN_DOUBT_EVERY = 100
"""Turns of which one's delivery stays in doubt."""
JOBS = 2
TAG = "t"
TO = Target(platform="telegram", account="bot", chat="c1")


def run(task: Task) -> Figures:
    """Fill a log with `events` events in `sessions` sessions; audit it cold, and once it is stored."""
    filled = finish(spawn(task.with_options("scenarios.audit:fill")))
    cold = finish(spawn(task.with_options("scenarios.audit:audited")))
    finish(spawn(task.with_options("scenarios.audit:project")))
    stored = finish(spawn(task.with_options("scenarios.audit:audited")))
    return {
        **filled,
        **{f"cold_{key}": value for key, value in cold.items()},
        **{f"stored_{key}": value for key, value in stored.items()},
    }


def fill(task: Task) -> Figures:
    """Append the events, a batch a transaction."""
    sessions = task.options["sessions"]
    each = task.options["events"] // sessions // EVENTS_A_TURN
    with TranscriptLog.open(Path(task.folder, "log.db")) as log:
        for number in range(sessions):
            for batch in batches(turns(each, TAG), TURNS_A_BATCH):
                log.append(f"s{number}", *(event for turn in batch for event in _events(turn)))
        return {"events": log.last_position()}


def project(task: Task) -> Figures:
    """Bring what is stored up to the log."""
    with TranscriptLog.open(Path(task.folder, "log.db"), create=False) as log:
        return {"projected": StoredProjections(log).rebuild(jobs=JOBS)}


def audited(task: Task) -> Figures:
    """Audit, and say what was needed: by the clock, of processors, and of memory."""
    with TranscriptLog.open(Path(task.folder, "log.db"), create=False) as log:
        events = log.last_position()
        tally = Tally()
        start = time.perf_counter()
        for one in audit(log, Asked(), jobs=JOBS):
            tally.take(one)
        elapsed = time.perf_counter() - start
    assert not tally.failed, tally.failed
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "per_second": events / elapsed,
        "cpu_us": sum(one.ru_utime + one.ru_stime for one in used) / events * 1e6,
        "found": tally.found,
        "memory_mb": peak_memory(),
        "child_mb": used[1].ru_maxrss / MEBIBYTE_OF_KIBIBYTES,
    }


def _events(turn: SaidTurn) -> Iterator[Event]:
    name = turn.name
    number = int(name.removeprefix(f"{TAG}-"))
    answer, delivery = f"{name}/1", f"{name}/d"
    yield UserMessageReceived(message=name, text=turn.question, sender="u1")
    yield AssistantMessageProduced(turn=name, message=answer, text=turn.answer)
    yield DeliveryAttempted(
        delivery=delivery, turn=name, message=answer, text=turn.answer, target=TO
    )
    if number % IN_DOUBT_EVERY:
        yield DeliveryConfirmed(delivery=delivery, platform_messages=[str(number)])
    else:
        yield DeliveryFailed(delivery=delivery, definite=False, reason="timed out")
    yield TurnFinalized(turn=name)
