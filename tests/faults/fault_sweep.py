"""Let each write and sync call of a log fail, once and from then on: `make faults`.

Turns run once undisturbed to count the calls on the log's files. Then they run again for each call, for
EIO and for ENOSPC, while that call fails: alone, with all of its kind after it, or with all calls after
it. After each run a new process judges what is left and tries again what wasn't acknowledged.
`--points N` takes N of them: half at writes and half at the few syncs, each spread evenly.
"""

from __future__ import annotations

import argparse
import errno
import gc
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import injection
from failing_turns import ALL
from fault_run import Run, run

AT_ONCE = 2
SAID_EVERY = 250
FAULTS_SHOWN = 20
ERRORS = (errno.EIO, errno.ENOSPC)
Reach = Literal["alone", "with its kind", "with all"]
REACHES: tuple[Reach, ...] = ("alone", "with its kind", "with all")


@dataclass(frozen=True)
class Point:
    """A call that fails, by its place among the run's calls (from 1), and which fail after it."""

    number: int
    call: str
    error: int
    reach: Reach

    def __str__(self) -> str:
        return f"{errno.errorcode[self.error]} at call {self.number} ({self.call}), {self.reach}"


@dataclass(frozen=True)
class Verdict:
    """What came of a point. `calls`: all that were made; `failed`: how many were made to fail."""

    point: Point | None
    calls: list[str]
    failed: int
    run: Run


class Disk:
    """Notes the calls on the files of a folder, and lets those of a point fail."""

    def __init__(self, folder: Path, point: Point | None) -> None:
        self._folder, self._point = str(folder), point
        self.calls: list[str] = []
        self.failed = 0

    def decide(self, call: str, path: str) -> int:
        """Return the errno of a call, 0 where it goes on."""
        if not path.startswith(self._folder):
            return 0
        self.calls.append(call)
        number, point = len(self.calls), self._point
        if point is None or number < point.number:
            return 0
        kind = self.calls[point.number - 1]
        if number > point.number and (
            point.reach == "alone" or (point.reach == "with its kind" and call != kind)
        ):
            return 0
        self.failed += 1
        return point.error


def try_point(point: Point | None) -> Verdict:
    """Take turns while calls fail, and judge; without a point nothing fails."""
    # What the system's memory holds outlives a process, so files in memory show as much as on disk.
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="onrecord-fault-", dir=where) as name:
        folder = Path(name) / "disk"
        folder.mkdir()
        disk = Disk(folder, point)
        done = run(folder, Path(name), disk.decide)
        return Verdict(point, disk.calls, disk.failed, done)


def points(calls: Sequence[str], at_most: int | None) -> list[Point]:
    """Return the points of calls; at most so many, half of them at syncs."""
    every = [
        Point(number, call, error, reach)
        for number, call in enumerate(calls, 1)
        for error in ERRORS
        for reach in REACHES
    ]
    if at_most is None:
        return every
    syncs = [point for point in every if "sync" in point.call]
    writes = [point for point in every if "sync" not in point.call]
    return [*_spread(syncs, at_most // 2), *_spread(writes, at_most // 2)]


def _spread(some: Sequence[Point], count: int) -> list[Point]:
    """Return as many of them, evenly far apart."""
    return [some[number * len(some) // count] for number in range(min(count, len(some)))]


def sweep(at_most: int | None) -> int:
    """Try the points, show how far it is, say what came of them; return 0 if nothing is wrong."""
    began = time.monotonic()
    whole = try_point(None)
    if whole.run.faults or whole.run.acked != len(ALL):
        print(f"undisturbed turns fail: {whole}", file=sys.stderr)
        return 1
    todo = points(whole.calls, at_most)
    print(f"calls: {dict(Counter(whole.calls))}, points: {len(todo)}", flush=True)
    verdicts: list[Verdict] = []
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(AT_ONCE, mp_context=context) as pool:
        for verdict in pool.map(try_point, todo, chunksize=4):
            verdicts.append(verdict)
            if len(verdicts) % SAID_EVERY == 0:
                spent = time.monotonic() - began
                print(f"{len(verdicts)} of {len(todo)}, {spent:.0f} s", flush=True)
    return _close(verdicts, time.monotonic() - began)


def _close(verdicts: Sequence[Verdict], seconds: float) -> int:
    wrong = [verdict for verdict in verdicts if verdict.run.faults]
    for verdict in wrong[:FAULTS_SHOWN]:
        print(f"{verdict.point}: {verdict.run.faults}", file=sys.stderr)
    errors: Counter[str] = sum((verdict.run.errors for verdict in verdicts), Counter())
    # How many calls a run makes differs a little: one that doesn't come fails for nobody.
    hit = [verdict for verdict in verdicts if verdict.failed]
    print(f"errors that callers got: {dict(errors.most_common())}")
    print(
        f"faulty disks: {len(hit)}, calls that failed: {sum(v.failed for v in hit)}, appends "
        f"acknowledged: {sum(v.run.acked for v in hit)}, at fault: {len(wrong)}, {seconds:.0f} s"
    )
    return 1 if wrong or not errors or len(hit) < len(verdicts) * 0.9 else 0


def main() -> int:
    """Sweep, and say what was lost; 0 if nothing was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, help="how many points to try; all of them without it")
    given = parser.parse_args()
    why = injection.missing()
    if why is not None:
        print(f"make faults: {why}", file=sys.stderr)
        return 1
    gc.collect()
    gc.freeze()
    return sweep(given.points)


if __name__ == "__main__":
    sys.exit(main())
