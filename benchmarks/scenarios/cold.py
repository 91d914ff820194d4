"""W2: a session of many messages, read by a new process, as messages for the model."""

from __future__ import annotations

import time
from importlib import import_module

from files import SESSION, filled
from measure import Figures, Task, finish, peak_memory, spawn


def run(task: Task) -> Figures:
    """Return what a new process needs to open the store and to load `messages` messages."""
    folder = filled(task, task.options["messages"])
    return finish(spawn(task.with_options("scenarios.cold:load", filled=str(folder))))


def load(task: Task) -> Figures:
    """Open and load. Importing, with the start of Python, is told apart."""
    import_module(f"stores.{task.store}")
    imported, start = time.time(), time.perf_counter()
    store = task.open(task.options["filled"])
    opened = time.perf_counter()
    messages = store.load(SESSION)
    loaded = time.perf_counter()
    store.close()
    return {
        "open_and_load_ms": (loaded - start) * 1e3,
        "open_ms": (opened - start) * 1e3,
        "load_ms": (loaded - opened) * 1e3,
        "import_ms": (imported - task.started) * 1e3,
        "memory_mb": peak_memory(),
        "messages": len(messages),
    }
