"""A log of many events, replayed into all projections."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from measure import MEBIBYTE_OF_KIBIBYTES, Figures, Task, finish, peak_memory, spawn
from onrecord.projections.stored import StoredProjections
from onrecord.transcript.log import TranscriptLog
from stores.onrecord_log import TURNS_A_BATCH, batches, turn_events
from workload import turns

EVENTS_A_TURN = 5
JOBS = 2


def run(task: Task) -> Figures:
    """Fill a log with `events` events in `sessions` sessions, and replay it in a new process."""
    filled = finish(spawn(task.with_options("scenarios.replay:fill")))
    return {**filled, **finish(spawn(task.with_options("scenarios.replay:rebuild")))}


def fill(task: Task) -> Figures:
    """Append the events, a batch a transaction."""
    sessions = task.options["sessions"]
    each = task.options["events"] // sessions // EVENTS_A_TURN
    said = list(turns(each, "t"))
    start = time.perf_counter()
    with TranscriptLog.open(Path(task.folder, "log.db")) as log:
        for number in range(sessions):
            for batch in batches(said, TURNS_A_BATCH):
                log.append(f"s{number}", *(e for turn in batch for e in turn_events(turn)))
        events = log.last_position()
    return {"filled_per_second": events / (time.perf_counter() - start)}


def rebuild(task: Task) -> Figures:
    """Replay, and say what was needed."""
    with TranscriptLog.open(Path(task.folder, "log.db"), create=False) as log:
        events = log.last_position()
        start = time.perf_counter()
        StoredProjections(log).rebuild(jobs=JOBS)
        elapsed = time.perf_counter() - start
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / MEBIBYTE_OF_KIBIBYTES
    return {
        "events": events,
        "events_per_second": events / elapsed,
        "seconds": elapsed,
        "memory_mb": peak_memory(),
        "largest_child_mb": children,
    }
