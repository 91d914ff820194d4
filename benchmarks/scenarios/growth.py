"""W5: one more turn, and the messages for the next call of the model, in a session that has grown."""

from __future__ import annotations

import statistics
import time

from files import SESSION, filled
from measure import Figures, Task
from workload import turns


def run(task: Task) -> Figures:
    """Append turns to a session of `size` messages, and load it after some of them."""
    folder = filled(task, task.options["size"])
    store = task.open(folder)
    (warm, *others) = turns(1 + task.options["turns"], "more")
    store.append(SESSION, warm)
    messages = len(store.load(SESSION))
    appended: list[float] = []
    loaded: list[float] = []
    began = time.perf_counter()
    for number, turn in enumerate(others):
        start = time.perf_counter()
        store.append(SESSION, turn)
        done = time.perf_counter()
        appended.append(done - start)
        if number % task.options["loads_every"] == 0:
            store.load(SESSION)
            loaded.append(time.perf_counter() - done)
        if task.is_over(began):
            break
    store.close()
    return {
        "append_ms": statistics.median(appended) * 1e3,
        "next_call_ms": statistics.median(loaded) * 1e3,
        "messages": messages,
    }
