"""The machine that the figures are of."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from onrecord.transcript.storage import dbapi

SYNCS = 200


def machine(folder: Path) -> dict[str, Any]:
    """Describe the machine, and the disk that `folder` is on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "file_system": _file_system(folder),
        "fsync_us": round(_sync(folder) * 1e6),
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.version.partition(" ")[0],
        "sqlite": ".".join(map(str, dbapi.VERSION)),
        "measured": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def line(about: dict[str, Any]) -> str:
    """Return the description as one line."""
    return (
        "{processor}, {cores} cores, {file_system}, fsync {fsync_us} µs, {system}, "
        "Python {python}, SQLite {sqlite}, {measured}".format(**about)
    )


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    for entry in known.read_text().splitlines() if known.exists() else ():
        if entry.startswith("model name"):
            return entry.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _file_system(folder: Path) -> str:
    """Return the type of the file system that holds the folder."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown file system"
    points = (entry.split()[1:3] for entry in mounts.read_text().splitlines())
    around = [str(path) for path in (folder.resolve(), *folder.resolve().parents)]
    return max((p for p in points if p[0] in around), key=lambda point: len(point[0]))[1]


def _sync(folder: Path) -> float:
    """Return the median seconds of writing and syncing a block."""
    path = folder / "sync"
    took = []
    with path.open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            file.write(bytes(4096))
            start = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - start)
    path.unlink()
    return statistics.median(took)
