"""Make a history: processes that append to one log, while some are killed and some are stopped."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from elle import History, Operation, Seen
from elle_worker import lines
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.verify import verify

WORKERS, FOLLOWERS = 3, 2
DURABLE = 0.8
"""How likely it is that an append asks for durability."""
BETWEEN_HARMS = (0.2, 0.6)
STOPPED_FOR = (0.3, 0.8)
"""Seconds."""
BEGIN_SECONDS, END_SECONDS = 60, 120


@dataclass
class Process:
    """One place of the history, with the processes that stand in it one after another."""

    what: str
    url: str
    name: str
    folder: Path
    durable: float
    started: int = 0
    running: subprocess.Popen[bytes] = field(init=False)
    _size: int = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    @property
    def diary(self) -> Path:
        """The file of the place."""
        return self.folder / f"{self.name}.jsonl"

    def start(self) -> None:
        """Start a process."""
        self.started += 1
        self._size = self._diary_size()
        worker = Path(__file__).with_name("elle_worker.py")
        self.running = subprocess.Popen(
            [sys.executable, str(worker), self.what, self.url, f"{self.name}g{self.started}",
             str(self.diary), str(self.durable)],
            stdin=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip

    def has_begun(self) -> bool:
        """Tell whether the process has written anything."""
        return self._diary_size() > self._size

    def _diary_size(self) -> int:
        return self.diary.stat().st_size if self.diary.exists() else 0

    def kill(self) -> None:
        """Kill the process, and start another in its place."""
        self.running.kill()
        self.running.communicate()
        self.start()

    def stop(self, seconds: float) -> None:
        """Stop the process for some time, wherever it is."""
        self.running.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.running.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Let the process end. Raise RuntimeError if it fails."""
        self.running.communicate(timeout=END_SECONDS)
        if self.running.returncode != 0:
            raise RuntimeError(f"{self.name} ended with {self.running.returncode}")


@dataclass
class Made:
    """A history, and what was done to make it one worth looking at."""

    history: History
    harms: Counter[str]
    verified: bool


def make(
    url: str, folder: Path, harms: int, seed: int, crash: Callable[[], None] | None = None
) -> Made:
    """Let processes work on the log at `url`, and kill or stop one of them, so many times.

    `crash`: ends the database and begins it again, in between; then all appends are durable.
    """
    source, done = random.Random(seed), Counter[str]()
    durable = 1.0 if crash else DURABLE
    TranscriptLog.open(url).close()
    workers = [Process("work", url, f"w{n}", folder, durable) for n in range(WORKERS)]
    followers = [Process("follow", url, f"f{n}", folder, durable) for n in range(FOLLOWERS)]
    deadline = time.monotonic() + BEGIN_SECONDS
    try:
        while done.total() < harms:
            time.sleep(source.uniform(*BETWEEN_HARMS))
            crashes = crash is not None and done.total() % 3 == 2
            harmed = source.choice([*workers, *workers, *followers])
            if not all(
                one.has_begun() for one in ([*workers, *followers] if crashes else [harmed])
            ):
                if time.monotonic() > deadline:
                    raise TimeoutError("a process doesn't begin")
                continue  # it would never begin if it were always hit
            deadline = time.monotonic() + BEGIN_SECONDS
            if crash is not None and crashes:
                crash()
                done["crashed"] += 1
            elif done.total() % 5 in (0, 3):
                harmed.kill()
                done["killed"] += 1
            else:
                harmed.stop(source.uniform(*STOPPED_FOR))
                done["stopped"] += 1
        for process in (*workers, *followers):
            process.end()
    finally:
        for process in (*workers, *followers):
            process.running.kill()
            process.running.communicate()
    history = History()
    for worker in workers:
        history.operations += operations(worker.diary)
    for follower in followers:
        seen = [Seen(*values) for _, *values in lines(follower.diary)]
        history.followed[follower.name] = seen
    with TranscriptLog.open(url) as log:
        history.everything = [_seen(record) for record in log.read_all()]
        for head in log.sessions():
            history.sessions[head.name] = [_seen(record) for record in log.read(head.name)]
        return Made(history, done, verify(log).faults == [])


def operations(diary: Path) -> list[Operation]:
    """Return the operations of a diary; those whose end isn't told are unclear."""
    begun, ended = {}, {}
    for what, name, at, *rest in lines(diary):
        if what == "begin":
            begun[name] = (at, *rest)
        else:
            ended[name] = (at, *rest)
    done = []
    for name, (invoked, client, kind, session, ids) in begun.items():
        finished, outcome, found = ended.get(name, (None, "unclear", None))
        told = tuple(ids if found is None else found)
        done.append(Operation(client, kind, session, told, invoked, finished, outcome))
    return done


def _seen(record: Recorded) -> Seen:
    assert isinstance(record.event, UserMessageReceived)
    return Seen(record.position, record.session, record.version, record.event.message)
