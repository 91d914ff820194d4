"""A store's files: how large they are, and copies of stores that were filled once."""

from __future__ import annotations

import shutil
from pathlib import Path

from measure import Task
from workload import MESSAGES_A_TURN, turns

SESSION = "s0"


def size(folder: Path) -> int:
    """Return the bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def filled(task: Task, messages: int) -> Path:
    """Return a new folder with a store of one session that has so many messages."""
    seed = Path(task.seeds, f"{task.store}-{task.variant}-{messages}")
    if not seed.exists():
        making = Path(task.folder, "seed")
        making.mkdir()
        store = task.open(making)
        store.seed(SESSION, turns(messages // MESSAGES_A_TURN, "seed"))
        store.close()
        seed.parent.mkdir(parents=True, exist_ok=True)
        making.rename(seed)
    copy = Path(task.folder, "filled")
    shutil.copytree(seed, copy)
    return copy
