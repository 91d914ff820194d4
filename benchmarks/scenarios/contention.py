"""W4: several processes at one store, each in a session of its own (a) or all in one (b)."""

from __future__ import annotations

import statistics
import sys
import time
from collections import Counter

from measure import Figures, Task, finish, spawn
from scenarios.turns import quantile
from workload import MARK, broken_roles, turns

SHARED = "shared"
GO = "go"


def run(task: Task) -> Figures:
    """Let `processes` processes append `turns` turns each, and count what is there in the end."""
    processes = range(task.options["processes"])
    sessions = [SHARED if task.options["shared"] else f"c{number}" for number in processes]
    store = task.open()
    for session in sorted(set(sessions)):
        store.prepare(session)
    store.close()
    writers = [
        spawn(task.with_options("scenarios.contention:write", session=session, tag=f"p{number}"))
        for number, session in enumerate(sessions)
    ]
    for writer in writers:
        assert writer.stdout is not None
        while (said := writer.stdout.readline()) and said.strip() != GO:
            pass
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(f"{GO}\n")
        writer.stdin.flush()
    told = [finish(writer) for writer in writers]
    return {**_rates(told), **_what_is_there(task, sorted(set(sessions)), told)}


def write(task: Task) -> Figures:
    """Be one of the writers: wait for the word, then append; a refused turn is counted."""
    session, tag = task.options["session"], task.options["tag"]
    store = task.open()
    print(GO, flush=True)
    sys.stdin.readline()
    written: list[str] = []
    errors: Counter[str] = Counter()
    took: list[float] = []
    begun, began = time.time(), time.perf_counter()
    for turn in turns(task.options["turns"], tag):
        start = time.perf_counter()
        try:
            store.refresh(session)
            store.append(session, turn)
            written.append(turn.name)
        except Exception as error:  # noqa: BLE001  whatever a store refuses with is counted
            errors[type(error).__name__] += 1
        took.append(time.perf_counter() - start)
        if task.is_over(began):
            break
    ended = time.time()
    store.close()
    return {"written": written, "errors": errors, "took": took, "begun": begun, "ended": ended}


def _rates(told: list[Figures]) -> Figures:
    elapsed = max(one["ended"] for one in told) - min(one["begun"] for one in told)
    return {
        "turns_per_second": sum(len(one["written"]) for one in told) / elapsed,
        "p50_ms": statistics.median(quantile(one["took"], 0.5) for one in told) * 1e3,
        "p99_ms": max(quantile(one["took"], 0.99) for one in told) * 1e3,
        "longest_ms": max(max(one["took"]) for one in told) * 1e3,
        "tried": sum(len(one["took"]) for one in told),
        "errors": sum(sum(one["errors"].values()) for one in told),
        "kinds": sorted({kind for one in told for kind in one["errors"]}),
    }


def _what_is_there(task: Task, sessions: list[str], told: list[Figures]) -> Figures:
    acknowledged = {f"{name}.{part}" for one in told for name in one["written"] for part in "qcra"}
    found: Counter[str] = Counter()
    broken = 0
    store = task.open()
    for session in sessions:
        messages = store.load(session)
        broken += broken_roles([store.role(message) for message in messages])
        for message in messages:
            found.update(set(MARK.findall(store.text(message))))
    store.close()
    return {
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - set(found)),
        "duplicated": sum(count - 1 for count in found.values()),
        "broken": broken,
    }
