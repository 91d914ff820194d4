"""W3: many sessions, a turn of each in turn."""

from __future__ import annotations

import time
from itertools import product
from pathlib import Path

from files import size
from measure import Figures, Task, peak_memory
from scenarios.turns import latencies
from workload import turns


def run(task: Task) -> Figures:
    """Append `turns` turns to each of `sessions` sessions, round robin."""
    store = task.open()
    before_mb = peak_memory()
    took: list[float] = []
    began = time.perf_counter()
    for number, session in product(range(task.options["turns"]), range(task.options["sessions"])):
        name = f"s{session}"
        (turn,) = turns(1, name, first=number)
        start = time.perf_counter()
        store.append(name, turn)
        store.release(name)
        took.append(time.perf_counter() - start)
        if task.is_over(began):
            break
    # The texts are made between the turns, so the rate is that of the turns alone.
    figures = latencies(took, sum(took))
    store.close()
    figures["bytes"] = size(Path(task.folder)) / len(took)
    figures["memory_mb"] = peak_memory()
    figures["grown_mb"] = peak_memory() - before_mb
    return figures
