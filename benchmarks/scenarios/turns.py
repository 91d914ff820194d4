"""W1: turns in one session, one after the other."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from files import SESSION, size
from measure import Figures, Task
from workload import MESSAGES_A_TURN, turns

SOME = 100
"""Turns at each end of the run whose medians are compared."""


def run(task: Task) -> Figures:
    """Append `turns` turns; the processor's time is that of all threads."""
    store = task.open()
    took: list[float] = []
    before, began = time.process_time(), time.perf_counter()
    for turn in turns(task.options["turns"], "t"):
        start = time.perf_counter()
        store.append(SESSION, turn)
        took.append(time.perf_counter() - start)
        if task.is_over(began):
            break
    elapsed, computed = time.perf_counter() - began, time.process_time() - before
    found = len(store.load(SESSION))
    store.close()
    return {
        **latencies(took, elapsed),
        "cpu_ms": computed / len(took) * 1e3,
        "bytes": size(Path(task.folder)) / len(took),
        "first_ms": statistics.median(took[:SOME]) * 1e3,
        "last_ms": statistics.median(took[-SOME:]) * 1e3,
        "missing": MESSAGES_A_TURN * len(took) - found,
    }


def latencies(took: list[float], elapsed: float) -> Figures:
    """Return the rate, and the spread of how long a turn took."""
    return {
        "turns": len(took),
        "turns_per_second": len(took) / elapsed,
        "p50_ms": quantile(took, 0.5) * 1e3,
        "p99_ms": quantile(took, 0.99) * 1e3,
        "longest_ms": max(took) * 1e3,
    }


def quantile(values: list[float], part: float) -> float:
    """Return the value below which that part of them lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]
