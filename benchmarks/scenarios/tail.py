"""The last messages of a long session, in a process that has the store open."""

from __future__ import annotations

import statistics
import time

from files import SESSION, filled
from measure import Figures, Task


def run(task: Task) -> Figures:
    """Read the last `last` messages of a session of `size`, first and again."""
    folder = filled(task, task.options["size"])
    store = task.open(folder)
    took: list[float] = []
    found = 0
    for _ in range(task.options["times"]):
        start = time.perf_counter()
        found = len(store.tail(SESSION, task.options["last"]))
        took.append(time.perf_counter() - start)
    store.close()
    return {"tail_ms": statistics.median(took[1:]) * 1e3, "first_ms": took[0] * 1e3, "found": found}
