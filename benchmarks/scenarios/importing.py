"""What importing the package costs, beside importing the three libraries that it stands on."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from measure import Figures, Task

OURS = """
import onrecord
onrecord.TranscriptLog, onrecord.Agent, onrecord.Outbox
from onrecord.projections.stored import StoredProjections
"""
LIBRARIES = """
import eventsourcing.persistence, msgspec, sqlalchemy
"""
OPTIONAL = (
    "aiosqlite",
    "greenlet",
    "matplotlib",
    "psycopg",
    "pydantic",
    "pytest",
    "rich",
    "typer",
)
CODE = """
import sys, time
start = time.perf_counter()
{imports}
elapsed = time.perf_counter() - start
import json
print(json.dumps([elapsed, sorted({optional!r} & set(sys.modules))]))
"""


def run(task: Task) -> Figures:
    """Import each in `times` new processes, in turn, and compare the medians."""
    took: dict[str, list[float]] = {OURS: [], LIBRARIES: []}
    loaded: set[str] = set()
    for _ in range(task.options["times"]):
        for imports, seconds in took.items():
            code = CODE.format(imports=imports, optional=set(OPTIONAL))
            done = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, check=True, text=True
            )
            elapsed, found = json.loads(done.stdout)
            seconds.append(elapsed)
            if imports is OURS:
                loaded.update(found)
    ours, libraries = (statistics.median(seconds) * 1e3 for seconds in took.values())
    return {
        "ours_ms": ours,
        "libraries_ms": libraries,
        "times_libraries": ours / libraries,
        "optional_loaded": sorted(loaded),
    }
