"""A process of a history: clients that append and read at random, or one that follows the whole log.

Each line of its file says what is begun or over, before anything else happens, so that a kill leaves a
true file. A worker that is started again tries some of what its predecessor left unfinished.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from onrecord.transcript.errors import OnRecordError, StorageError
from onrecord.transcript.events import UserMessageReceived
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.recorded import Recorded

SESSIONS = ("red", "green", "blue")
THREADS, TASKS = 2, 3
READS, RETRIES = 0.04, 0.7
"""How likely it is that a client reads, and tries again what failed."""
LONGEST_PAUSE = 0.004
BUSY_SECONDS = 0.2
"""Less than a process is stopped for: some appends fail."""
QUIET_SECONDS = 0.5

_numbers = itertools.count(1)
Append = Callable[[str, list[UserMessageReceived], bool], Awaitable[object]]
Read = Callable[[str], Awaitable[list[Recorded]]]


class Diary:
    """The file of a process, and of those that are started in its place."""

    def __init__(self, path: Path, name: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._name = name

    def write(self, *line: object) -> None:
        """Write a line at once."""
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def begin(self, client: str, kind: str, session: str, ids: list[str]) -> str:
        """Say that an operation begins; return its name."""
        number = f"{self._name}/{next(_numbers)}"
        self.write("begin", number, time.monotonic_ns(), client, kind, session, ids)
        return number

    def end(self, number: str, outcome: str, ids: list[str] | None = None) -> None:
        """Say how an operation went."""
        self.write("end", number, time.monotonic_ns(), outcome, ids)


def lines(path: Path) -> Iterator[list[Any]]:
    """Yield the lines of a diary."""
    if path.exists():
        for line in path.read_bytes().splitlines():
            yield json.loads(line)


class Client:
    """Appends and reads, one operation after another, until it is told to stop."""

    def __init__(self, name: str, diary: Diary, append: Append, read: Read, durable: float) -> None:
        self._name, self._diary, self._durable = name, diary, durable
        self._append, self._read = append, read
        self._source = random.Random(name)
        self._said = itertools.count(1)

    async def run(self, stopped: threading.Event, left: list[tuple[str, list[str]]]) -> None:
        """Try what was left, then go on at random."""
        for session, ids in left:
            await self._write(session, ids)
        while not stopped.is_set():
            session = self._source.choice(SESSIONS)
            if self._source.random() < READS:
                await self._look(session)
            else:
                count = self._source.choice((1, 1, 1, 3))
                await self._write(
                    session, [f"{self._name}.{next(self._said)}" for _ in range(count)]
                )
            await asyncio.sleep(self._source.uniform(0, LONGEST_PAUSE))

    async def _write(self, session: str, ids: list[str]) -> None:
        again = True
        while again:
            number = self._diary.begin(self._name, "append", session, ids)
            said = [UserMessageReceived(message=id, text=f"This is {id}.") for id in ids]
            try:
                await self._append(session, said, self._source.random() < self._durable)
            except OnRecordError as error:
                outcome = {"no": "fail", "unknown": "unclear"}[error.stored]
                self._diary.end(number, outcome)
                again = error.may_retry and self._source.random() < RETRIES
            else:
                self._diary.end(number, "ok")
                return

    async def _look(self, session: str) -> None:
        number = self._diary.begin(self._name, "read", session, [])
        try:
            records = await self._read(session)
        except StorageError:
            self._diary.end(number, "fail")
        else:
            self._diary.end(number, "ok", [_said(record) for record in records])


def work(url: str, name: str, diary: Path, stopped: threading.Event, durable: float) -> None:
    """Let threads and tasks of a loop share one log. `durable`: how likely an append asks for it."""
    with TranscriptLog.open(url, busy_timeout=BUSY_SECONDS) as log:
        left = unfinished(diary)
        book = Diary(diary, name)

        async def append(session: str, said: list[UserMessageReceived], durable: bool) -> object:
            return log.append(session, *said, durable=durable)

        async def read(session: str) -> list[Recorded]:
            return list(log.read(session))

        async def append_in_a_loop(
            session: str, said: list[UserMessageReceived], durable: bool
        ) -> object:
            return await log.aio.append(session, *said, durable=durable)

        async def read_in_a_loop(session: str) -> list[Recorded]:
            return [record async for record in log.aio.read(session)]

        async def tasks() -> None:
            clients = [
                Client(f"{name}.l{n}", book, append_in_a_loop, read_in_a_loop, durable)
                for n in range(TASKS)
            ]
            await asyncio.gather(*(client.run(stopped, []) for client in clients))

        def thread(number: int) -> None:
            client = Client(f"{name}.t{number}", book, append, read, durable)
            asyncio.run(client.run(stopped, left[number::THREADS]))

        with ThreadPoolExecutor(THREADS) as pool:
            running = [pool.submit(thread, number) for number in range(THREADS)]
            asyncio.run(tasks())
            for one in running:
                one.result()


def unfinished(diary: Path) -> list[tuple[str, list[str]]]:
    """Return half of the appends whose end isn't told: session and ids."""
    begun: dict[str, tuple[str, list[str]]] = {}
    for what, number, _, *rest in lines(diary):
        if what == "end":
            begun.pop(number, None)
        elif rest[1] == "append":
            begun[number] = (rest[2], rest[3])
    return list(begun.values())[::2]


def follow(url: str, name: str, diary: Path, stopped: threading.Event, _: float) -> None:
    """Follow the log from where the predecessor was, to the end."""
    after = max((position for _, position, *_ in lines(diary)), default=0)
    book = Diary(diary, name)
    with TranscriptLog.open(url, busy_timeout=BUSY_SECONDS) as log:
        while True:
            last = stopped.is_set()
            try:
                with log.subscribe(after=after) as subscription:
                    while (record := subscription.next(QUIET_SECONDS)) is not None:
                        after = record.position
                        book.write("saw", after, record.session, record.version, _said(record))
            except StorageError:
                continue  # from where it was
            if last:
                return


def _said(record: Recorded) -> str:
    assert isinstance(record.event, UserMessageReceived)
    return record.event.message


def main() -> None:
    """Work or follow until standard input is closed."""
    what, url, name, diary, durable = sys.argv[1:]
    stopped = threading.Event()
    run = {"work": work, "follow": follow}[what]
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, url, name, Path(diary), stopped, float(durable))
        sys.stdin.read()
        stopped.set()
        running.result()


if __name__ == "__main__":
    main()
