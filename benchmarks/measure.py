"""One measure in one process: `python measure.py TASK`, which prints its figures as JSON.

A store runs in the Python that it is installed in, so this is standard library only, and stores and
scenarios are loaded by name.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from store import Store

Figures = dict[str, Any]
MEBIBYTE_OF_KIBIBYTES = 1024


class MeasureFailed(Exception):
    """A measure ended without figures, or took longer than it may."""


@dataclass(frozen=True)
class Task:
    """What to measure. `call`: scenario module and function; `folder`: an empty one to work in.

    `cap`: seconds after which a loop may end early, 0 for none. `seeds`: where stores that were
    filled once are kept. `started`: when the process was started, by time.time().
    """

    call: str
    folder: str
    store: str = ""
    variant: str = ""
    cap: float = 0.0
    seeds: str = ""
    started: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)

    def open(self, folder: str | os.PathLike[str] | None = None) -> Store:
        """Open the store, in `folder` instead of the task's where one is given."""
        made = import_module(f"stores.{self.store}").open_store(
            Path(folder or self.folder), self.variant
        )
        return cast(Store, made)

    def is_over(self, began: float) -> bool:
        """Tell whether a loop that began then (perf_counter) has used up its time."""
        return bool(self.cap) and time.perf_counter() - began > self.cap

    def with_options(self, call: str, **options: Any) -> Task:
        """Return a task for another process of the same store."""
        return replace(self, call=call, options={**self.options, **options})


def spawn(
    task: Task, python: str = sys.executable, *, group: bool = False
) -> subprocess.Popen[str]:
    """Start a measure. `group`: with all that it starts it is a group, which can be ended as one."""
    told = json.dumps(asdict(replace(task, started=time.time())))
    return subprocess.Popen(
        [python, __file__, told], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=group,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> Figures:
    """Return the figures of a measure that was started; raise MeasureFailed."""
    out, err = process.communicate()
    lines = out.strip().splitlines()
    if process.returncode or not lines:
        said = err.strip().splitlines() or [f"exit {process.returncode}"]
        raise MeasureFailed(said[-1][:300])
    return cast(Figures, json.loads(lines[-1]))


def finish_within(process: subprocess.Popen[str], seconds: float) -> Figures:
    """As `finish`, for a group: end it where it takes longer, or where this process is stopped."""
    late = threading.Timer(seconds, os.killpg, (process.pid, signal.SIGKILL))
    late.start()
    start = time.monotonic()
    try:
        return finish(process)
    except MeasureFailed as failed:
        if time.monotonic() - start >= seconds:
            raise MeasureFailed(f"not finished in {seconds:.0f} s") from failed
        raise
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        late.cancel()


def peak_memory() -> float:
    """Return the highest resident set of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBIBYTE_OF_KIBIBYTES


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    module, _, function = task.call.partition(":")
    figures = getattr(import_module(module), function)(task)
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
