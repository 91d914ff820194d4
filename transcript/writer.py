"""One writer for a log: whoever finds nobody writing writes at once, for all who came meanwhile.

A thread that appends leads: it writes in its own thread, with no one else's help and no wait. Those
who come while it writes queue up; then the first of them leads, and takes all that wait into one
transaction. For event loops one thread leads, started when it is first needed. There is one queue, so
what a process appends reaches the log in the order of the calls. Who waits there for longer than the
log's busy_timeout is told so, and nothing of it is written.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from onrecord.transcript.append import Append, Outcome
from onrecord.transcript.batch import Batches
from onrecord.transcript.errors import StorageBusy, StorageFailed

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

BATCH_EVENTS = 256
"""Events that one transaction takes from several appends."""
BATCH_BYTES = 4 << 20
"""Bytes of text (as UTF-8, about) that one transaction takes from several appends."""
WAITING = 65_536
"""Appends that may wait for the writer."""

_writers: weakref.WeakSet[Writer] = weakref.WeakSet()


class Job:
    """Something that waits for its turn: an append, or a call that is made while nobody writes."""

    __slots__ = ("append", "call", "error", "future", "gate", "leads", "queued", "result",
                 "timer")  # fmt: skip

    def __init__(self, append: Append | None = None, call: Callable[[], Any] | None = None) -> None:
        self.append = append
        self.call = call
        self.result: Any = None
        self.error: BaseException | None = None
        self.future: asyncio.Future[Any] | None = None
        self.gate: threading.Lock | None = None  # where a thread waits for it
        self.leads = False
        self.queued = 0.0  # when, by the monotonic clock
        self.timer: asyncio.TimerHandle | None = None  # of an event loop: how long it waits

    def answer(self) -> None:
        """Resolve the future, in its loop."""
        if self.timer is not None:
            self.timer.cancel()
        future, error = self.future, self.error
        assert future is not None
        if future.done():
            return  # nobody waits any more
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(self.result)


class Writer:
    """Gathers the appends of threads and event loops for one log."""

    def __init__(self, batches: Batches, busy_timeout: float) -> None:
        self._batches = batches
        self._busy_timeout = busy_timeout
        self._last: Job | None = None
        self._reset()
        _writers.add(self)

    def _reset(self) -> None:
        self._mutex = threading.Lock()
        self._queue: deque[Job] = deque()
        self._leading = False
        self._leader = 0  # the thread that leads
        self._pool: ThreadPoolExecutor | None = None

    def _after_fork(self) -> None:
        """Begin anew: what waited is the parent's to write, its threads aren't here."""
        self._batches.forget()
        self._reset()

    @property
    def waiting(self) -> int:
        """How many appends and calls wait for their turn."""
        return len(self._queue)

    # --- what callers do -------------------------------------------------------------------------

    def append(self, append: Append) -> Outcome:
        """Append; return once it is committed."""
        self._do(Job(append))
        return append.answer()

    def call(self, call: Callable[[], Any]) -> Any:
        """Make a call in this thread, in its turn, while nobody writes; it may append itself."""
        job = Job(call=call)
        self._do(job)
        if job.error is not None:
            raise job.error
        return job.result

    def submit(self, job: Job) -> None:
        """Queue a job with a future, in its loop, without blocking.

        Cancelling the future takes nothing back.
        """
        assert job.future is not None
        starts = False
        try:
            with self._mutex:
                self._enqueue(job)
                if not self._leading:
                    starts = self._leading = True
            job.timer = job.future.get_loop().call_later(self._busy_timeout, self._tell_busy, job)
        finally:
            if starts:
                self._lead_elsewhere()

    def close(self) -> None:
        """Take no more, and return once all that waited is written. Idempotent."""
        with self._mutex:
            if self._last is not None:
                return
            self._last = last = Job(call=_nothing)
        self._do(last)
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=self._leader != threading.get_ident())

    # --- the queue -------------------------------------------------------------------------------

    def _admit(self, job: Job) -> None:
        if self._last is not None and job is not self._last:
            raise StorageFailed("the log is closed; open it again", may_retry=False)

    def _enqueue(self, job: Job) -> None:
        self._admit(job)
        if len(self._queue) >= WAITING:
            raise StorageBusy(f"{WAITING} appends wait for the writer; try again", waited=0.0)
        job.queued = time.monotonic()
        self._queue.append(job)

    def _do(self, job: Job) -> None:
        if self._leader == threading.get_ident():
            self._run([job])  # from within a call of ours: it is this thread's turn
            return
        starts, gate = False, threading.Lock()
        try:
            with self._mutex:
                if self._leading:
                    job.gate = gate
                    gate.acquire()
                    self._enqueue(job)
                else:
                    self._admit(job)
                    starts = self._leading = True
        except BaseException:
            if starts:
                self._pass_on()  # interrupted: who comes later must not wait for us
            raise
        if starts:
            self._lead([job])  # nobody waits, so there is nobody to take along
            return
        self._wait(job, gate)
        if job.leads:
            self._lead()

    def _wait(self, job: Job, gate: threading.Lock) -> None:
        try:
            if job is self._last:
                gate.acquire()
            elif not gate.acquire(timeout=self._busy_timeout):
                if self._take_back(job):
                    raise self._busy(job)
                gate.acquire()  # it was begun, or is to lead: what becomes of it is on the way
        except BaseException:
            # Interrupted. An append is written all the same, by the next to lead; a call isn't made.
            with self._mutex:
                job.gate = None
                if job.call is not None and job in self._queue:
                    self._queue.remove(job)
            if job.leads:
                self._pass_on()
            raise

    def _take_back(self, job: Job) -> bool:
        """Return True if the job waited still, and doesn't any more: it isn't begun."""
        with self._mutex:
            if job.leads or job not in self._queue:
                return False
            self._queue.remove(job)
            return True

    def _tell_busy(self, job: Job) -> None:
        """Raise StorageBusy in the task that awaits the job, unless it is begun."""
        if self._take_back(job):
            job.error = self._busy(job)
            job.answer()

    def _busy(self, job: Job) -> StorageBusy:
        waited = time.monotonic() - job.queued
        doing = "writing" if job.append is None else f"appending to session {job.append.session!r}"
        return StorageBusy(
            f"{doing}: an earlier append of this process was under way for {waited:.1f} s; try again, "
            "with the same events, or open the log with a longer busy_timeout",
            waited=waited,
        )

    def _take(self) -> list[Job]:
        """Return the jobs for the next transaction: a call, or appends."""
        with self._mutex:
            if not self._queue:
                return []  # who waited gave up
            jobs = [self._queue.popleft()]
            if jobs[0].append is None:
                return jobs
            events, size = _measure(jobs[0].append)
            while self._queue:
                append = self._queue[0].append
                if append is None:
                    break
                more, length = _measure(append)
                events, size = events + more, size + length
                if events > BATCH_EVENTS or size > BATCH_BYTES:
                    break
                jobs.append(self._queue.popleft())
            return jobs

    # --- leading ---------------------------------------------------------------------------------

    def _lead(self, jobs: list[Job] | None = None, *, elsewhere: bool = False) -> bool:
        """Write, once: jobs, or those that wait. Return whether the thread for loops leads next."""
        try:
            self._leader = threading.get_ident()
            if jobs is None:
                jobs = self._take()
            self._run(jobs)
        except BaseException:
            if not elsewhere:
                raise
            # All who wait for it are told below; those who come later have nothing to do with it.
        finally:
            self._leader = 0
            jobs = jobs or []
            if elsewhere:
                self._answer(jobs)
                again = self._pass_on(elsewhere=True)
            else:
                again = self._pass_on()
                if len(jobs) > 1:
                    self._answer(jobs[1:])  # the first is the leader's own
        return again

    def _lead_on(self) -> None:
        while self._lead(elsewhere=True):
            pass

    def _lead_elsewhere(self) -> None:
        if self._pool is None:
            # By name: who writes in threads of its own loads none of this.
            futures = import_module("concurrent.futures")
            self._pool = futures.ThreadPoolExecutor(1, thread_name_prefix="onrecord-write")
        assert self._pool is not None
        try:
            self._pool.submit(self._lead_on)
        except RuntimeError:
            self._lead_on()  # the interpreter is ending and starts no threads: here, then

    def _pass_on(self, *, elsewhere: bool = False) -> bool:
        """Let the first who waits lead; return True if that is this thread, for event loops."""
        with self._mutex:
            if not self._queue:
                self._leading = False
                return False
            job = self._queue[0]
            if job.gate is not None:
                # It waits there no more: were it interrupted now, the next would be asked anew.
                gate, job.gate, job.leads = job.gate, None, True
                gate.release()
                return False
        if not elsewhere:
            self._lead_elsewhere()
        return elsewhere

    def _run(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        if jobs[0].append is None:
            job = jobs[0]
            assert job.call is not None
            try:
                job.result = job.call()
            except BaseException as error:  # noqa: BLE001 - whoever waits for the call raises it
                job.error = error
            return
        self._batches.commit([job.append for job in jobs if job.append is not None])

    def _answer(self, jobs: Sequence[Job]) -> None:
        """Tell everyone; each loop is called once."""
        loops: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        for job in jobs:
            append = job.append
            if job.future is not None:
                if append is not None and append.done:
                    job.error, job.result = append.error, append.outcome
                loops.setdefault(job.future.get_loop(), []).append(job)
            elif (gate := job.gate) is not None:
                gate.release()
        for loop, theirs in loops.items():
            try:
                loop.call_soon_threadsafe(_answer_all, theirs)
            except RuntimeError:
                if not loop.is_closed():
                    raise
                # A loop that is closed has nobody left who could be told.


def _answer_all(jobs: list[Job]) -> None:
    for job in jobs:
        job.answer()


def _measure(append: Append) -> tuple[int, int]:
    """Return how many events an append has, and about how many bytes of text."""
    events = append.events
    if append.drafts is not None:
        return len(append.drafts), sum(len(draft.payload) for draft in append.drafts)
    return len(events), sum(len(getattr(event, "text", None) or "") for event in events)


def _nothing() -> None:
    """Do nothing: the turn is what is waited for."""


def _forked() -> None:
    for writer in list(_writers):
        writer._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
