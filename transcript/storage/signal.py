"""Wakes whoever follows a database in the process that writes to it."""

from __future__ import annotations

import threading


class Signal:
    """Counts commits, and wakes those who wait for the next."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0
        self._waiting = 0

    @property
    def count(self) -> int:
        """The number of commits so far."""
        return self._count

    def ring(self) -> None:
        """Say that something was committed."""
        with self._condition:  # who commits and who hears of others' commits may ring at once
            self._count += 1
            if self._waiting:
                self._condition.notify_all()

    def wait(self, seen: int, timeout: float) -> None:
        """Return once the count isn't `seen` any more, or after the timeout (seconds)."""
        with self._condition:
            self._waiting += 1  # before the look: a ring from now on notifies
            try:
                if self._count == seen:
                    self._condition.wait(timeout)
            finally:
                self._waiting -= 1
