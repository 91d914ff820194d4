"""What one streamed reply takes on the disk, and of the processor."""

from __future__ import annotations

import time
from pathlib import Path

from files import SESSION, size
from measure import Figures, Task
from workload import chunks, turns

REPLY = 4_000
"""Characters of a reply."""


def run(task: Task) -> Figures:
    """Stream a reply of REPLY characters in chunks of `chunk` characters."""
    count = REPLY // task.options["chunk"]
    task.open().close()
    empty = size(Path(task.folder))
    store = task.open()
    (turn,) = turns(1, "stream")
    pieces = chunks(count, task.options["chunk"])
    computed, start = time.process_time(), time.perf_counter()
    store.stream(SESSION, turn.question, pieces)
    took, computed = time.perf_counter() - start, time.process_time() - computed
    store.close()
    return {
        "bytes": size(Path(task.folder)) - empty,
        "chunks": count,
        "chunks_per_second": count / took,
        "cpu_ms": computed * 1e3,
    }
