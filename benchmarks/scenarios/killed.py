"""W6: a process is killed in the middle of a reply; what does the next one find of it?"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from files import SESSION
from measure import Figures, Task, finish, spawn
from workload import chunks, chunks_in, turns

PAUSE = 0.002
"""Seconds that the model needs for a chunk."""


def run(task: Task) -> Figures:
    """Kill a process half way through a reply of `chunks` chunks, then let one run to its end."""
    half = task.options["chunks"] // 2
    writer = spawn(task.with_options("scenarios.killed:reply", pause=PAUSE))
    assert writer.stdout is not None
    sent = -1
    for line in writer.stdout:
        sent = int(line) if line.strip().isdecimal() else sent
        if sent == half:
            os.kill(writer.pid, signal.SIGKILL)
            break
    rest, errors = writer.communicate()
    assert writer.returncode == -signal.SIGKILL, errors
    # Some were shown between the kill and its effect, and are in the pipe.
    sent = max([sent, *(int(line) for line in rest.split() if line.isdecimal())])
    shown = set(range(sent + 1))

    whole = Path(task.folder, "whole")
    whole.mkdir()
    speed = finish(spawn(task.with_options("scenarios.killed:reply", pause=0.0, to=str(whole))))
    left = finish(spawn(task.with_options("scenarios.killed:look")))
    return {
        "sent": len(shown),
        "lost": len(shown - set(left["chunks"])),
        "found": len(left["chunks"]),
        "roles": left["roles"],
        "chunks_per_second": speed["chunks_per_second"],
    }


def reply(task: Task) -> Figures:
    """Stream a reply, and say which chunk was shown when the store asks for the next."""
    store = task.open(task.options.get("to"))
    pause = task.options["pause"]

    def shown() -> Iterator[str]:
        for number, chunk in enumerate(chunks(task.options["chunks"])):
            yield chunk
            if pause:
                os.write(1, b"%d\n" % number)
                time.sleep(pause)

    (turn,) = turns(1, "stream")
    start = time.perf_counter()
    store.stream(SESSION, turn.question, shown())
    elapsed = time.perf_counter() - start
    store.close()
    return {"chunks_per_second": task.options["chunks"] / elapsed}


def look(task: Task) -> Figures:
    """Say which chunks a new process finds."""
    store = task.open()
    messages = store.load(SESSION)
    found = {
        "roles": [store.role(message) for message in messages],
        "chunks": sorted(chunks_in(store.text(message) for message in messages)),
    }
    store.close()
    return found
