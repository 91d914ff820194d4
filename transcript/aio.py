"""The log for an event loop: the same verbs, awaitable, never blocking, not torn by cancellation.

The log's writer does the writes, in the order of the calls; a few threads read.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from onrecord.transcript.append import ANY, Outcome
from onrecord.transcript.events import Event
from onrecord.transcript.leases import DEFAULT_TTL, Lease, LeaseState
from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage.journal import SessionHead
from onrecord.transcript.subscription import BATCH, Subscription
from onrecord.transcript.writer import Job

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog

T = TypeVar("T")

READERS = 4
"""Threads that read at the same time."""
LOOK = 0.25
"""Seconds between two looks whether a subscription was given up."""


class AsyncTranscriptLog:
    """The async twin of a TranscriptLog (`log.aio`)."""

    def __init__(self, log: TranscriptLog) -> None:
        self._log = log
        self._start()
        self.leases = AsyncLeases(self)

    def _start(self) -> None:
        self._pid = os.getpid()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="onrecord-read")

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            self._start()  # threads don't survive a fork

    def _submit(self, job: Job) -> asyncio.Future[Any]:
        job.future = future = asyncio.get_running_loop().create_future()
        self._log.writer.submit(job)
        return future

    async def write(self, run: Callable[[], T]) -> T:
        """Run in the writing thread, in call order. Once called it completes, cancelled or not."""
        result: T = await self._submit(Job(call=run))
        return result

    async def reading(self, run: Callable[[], T]) -> T:
        """Run in a reading thread."""
        self._after_fork()
        return await asyncio.wrap_future(self._readers.submit(run))

    async def append(
        self,
        session: str,
        *events: Event,
        expected_version: int = ANY,
        durable: bool = True,
        lease: Lease | None = None,
    ) -> tuple[Recorded, ...]:
        """Append as TranscriptLog.append does. Cancelled, it still completes."""
        if not events:
            return await self.reading(
                functools.partial(self._log.append, session, expected_version=expected_version)
            )
        given = self._log.appending(session, events, expected_version, durable=durable, lease=lease)
        outcome: Outcome = await self._submit(Job(given))
        return tuple(outcome.records)

    async def read(
        self, session: str, *, after: int = 0, limit: int | None = None
    ) -> AsyncIterator[Recorded]:
        """Iterate over a session's records after a version."""
        left = limit
        while left is None or left > 0:
            count = BATCH if left is None else min(BATCH, left)
            batch = await self.reading(
                functools.partial(_fetch_session, self._log, session, after, count)
            )
            for record in batch:
                yield record
            if len(batch) < count:
                return
            after = batch[-1].version
            left = None if left is None else left - len(batch)

    async def read_all(
        self, *, after: int = 0, limit: int | None = None
    ) -> AsyncIterator[Recorded]:
        """Iterate over the records of all sessions after a position."""
        left = limit
        while left is None or left > 0:
            count = BATCH if left is None else min(BATCH, left)
            batch = await self.reading(functools.partial(_fetch_all, self._log, after, count))
            for record in batch:
                yield record
            if len(batch) < count:
                return
            after = batch[-1].position
            left = None if left is None else left - len(batch)

    def subscribe(self, *, after: int = 0) -> AsyncSubscription:
        """Follow the log after a position: an async iterator and context manager."""
        return AsyncSubscription(self._log, after)

    async def sessions(self) -> list[SessionHead]:
        """Return all sessions with at least one record."""
        return await self.reading(self._log.sessions)

    async def version(self, session: str) -> int:
        """Return the number of records of a session."""
        return await self.reading(functools.partial(self._log.version, session))

    async def find(self, id: UUID) -> Recorded | None:
        """Return the record of an event's id."""
        return await self.reading(functools.partial(self._log.find, id))

    def shutdown(self) -> None:
        """End the threads that read."""
        if self._pid == os.getpid():
            self._readers.shutdown(wait=True)

    async def close(self) -> None:
        """Close the log without blocking the loop."""
        await asyncio.get_running_loop().run_in_executor(None, self._log.close)

    async def __aenter__(self) -> AsyncTranscriptLog:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class AsyncLeases:
    """The async twin of Leases."""

    def __init__(self, log: AsyncTranscriptLog) -> None:
        self._log = log

    async def acquire(self, session: str, owner: str, ttl: float = DEFAULT_TTL) -> Lease:
        """Take the session; see Leases.acquire."""
        leases = self._log._log.leases
        return await self._log.write(functools.partial(leases.acquire, session, owner, ttl))

    async def renew(self, lease: Lease, ttl: float = DEFAULT_TTL) -> Lease:
        """Prolong the lease; see Leases.renew."""
        return await self._log.write(functools.partial(self._log._log.leases.renew, lease, ttl))

    async def release(self, lease: Lease) -> None:
        """Give the lease back; see Leases.release."""
        await self._log.write(functools.partial(self._log._log.leases.release, lease))

    async def check(self, lease: Lease) -> None:
        """Raise LeaseLost if the lease expired or another took it."""
        await self._log.reading(functools.partial(self._log._log.leases.check, lease))

    async def held(self, session: str) -> LeaseState | None:
        """Return the session's lease, None if there never was one."""
        return await self._log.reading(functools.partial(self._log._log.leases.held, session))

    async def is_free(self, session: str, owner: str = "") -> bool:
        """Tell whether `owner` may act for the session."""
        leases = self._log._log.leases
        return await self._log.reading(functools.partial(leases.is_free, session, owner))


class AsyncSubscription:
    """Follows the log in a thread of its own, so that readers are never held up by it."""

    def __init__(self, log: TranscriptLog, after: int) -> None:
        self._stop = threading.Event()
        self._subscription: Subscription = log.subscribe(after=after, stop=self._stop)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="onrecord-follow")
        self._pending: Future[Recorded | None] | None = None

    def __aiter__(self) -> AsyncSubscription:
        return self

    async def __anext__(self) -> Recorded:
        while not self._stop.is_set():
            if self._pending is None:
                self._pending = self._thread.submit(self._subscription.next, LOOK)
            # Shielded and kept: a record that was fetched while the wait was cancelled comes next.
            record = await asyncio.shield(asyncio.wrap_future(self._pending))
            self._pending = None
            if record is not None:
                return record
        raise StopAsyncIteration

    async def close(self) -> None:
        """End the iteration."""
        self._stop.set()
        self._subscription.close()
        pending, self._pending = self._pending, None
        if pending is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(asyncio.wrap_future(pending))
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncSubscription:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _fetch_session(log: TranscriptLog, session: str, after: int, count: int) -> list[Recorded]:
    return list(log.read(session, after=after, limit=count))


def _fetch_all(log: TranscriptLog, after: int, count: int) -> list[Recorded]:
    return list(log.read_all(after=after, limit=count))
