"""Following the log: no gap between what is read and what comes, across processes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from onrecord.transcript.recorded import Recorded
from onrecord.transcript.storage.signal import Signal

POLL = 0.005
"""Seconds between two looks for what other processes wrote (a pragma, no query)."""
LONGEST_WAIT = 1.0
"""Seconds after which the log is read even if nothing seems to have come."""
BATCH = 500
"""Records that one read fetches."""


class Subscription:
    """Iterates over the records after a position and then over those to come, until it is stopped.

    Positions are committed in order, so a reader that goes by position misses none.
    """

    def __init__(
        self,
        fetch: Callable[[int, int], list[Recorded]],
        data_version: Callable[[], int],
        signal: Signal,
        *,
        after: int = 0,
        stop: threading.Event | None = None,
    ) -> None:
        self._fetch = fetch
        self._data_version = data_version
        self._signal = signal
        self._stop = stop if stop is not None else threading.Event()
        self._closed = threading.Event()
        self._ready: deque[Recorded] = deque()
        self.position = after

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Recorded:
        record = self.next(None)
        if record is None:
            raise StopIteration
        return record

    def next(self, timeout: float | None) -> Recorded | None:
        """Return the next record; None after the timeout (seconds), or once stopped."""
        waited = 0.0
        while not self._ended():
            if self._ready:
                record = self._ready.popleft()
                self.position = record.position
                return record
            # What is seen before the read can't be missed by it.
            seen, version = self._signal.count, self._data_version()
            self._ready.extend(self._fetch(self.position, BATCH))
            if self._ready:
                continue
            waited += self._wait(seen, version, timeout, waited)
            if timeout is not None and waited >= timeout:
                return None
        return None

    def _wait(self, seen: int, version: int, timeout: float | None, before: float) -> float:
        waited = 0.0
        while waited < LONGEST_WAIT and not self._ended():
            self._signal.wait(seen, POLL)
            waited += POLL
            if self._signal.count != seen or self._data_version() != version:
                break
            if timeout is not None and before + waited >= timeout:
                break
        return waited

    def _ended(self) -> bool:
        return self._closed.is_set() or self._stop.is_set()

    def close(self) -> None:
        """End the iteration, also from another thread."""
        self._closed.set()
        self._signal.ring()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
