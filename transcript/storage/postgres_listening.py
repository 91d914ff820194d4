"""Hearing of other processes' commits: a thread with a connection that it replaces when it breaks."""

from __future__ import annotations

import logging
import random
import selectors
import socket
import threading
from collections.abc import Callable

from onrecord.transcript.errors import StorageError
from onrecord.transcript.storage import postgres_driver as driver
from onrecord.transcript.storage.signal import Signal

HEARTBEAT = 1.0
"""Seconds of silence after which the server is asked whether it is there."""
LONGEST_BACK_OFF = 2.0
"""Seconds between two tries to connect, at most; there is no end of tries but close()."""

_logger = logging.getLogger("onrecord.transcript")


class Listener:
    """Counts what was heard, and rings the signal. Starts with the first look at the count."""

    def __init__(
        self,
        connect: Callable[[], driver.PostgresConnection],
        signal: Signal,
        is_own: Callable[[int], bool],
    ) -> None:
        self._connect = connect
        self._signal = signal
        self._is_own = is_own
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._wake: socket.socket | None = None
        self._count = 0
        self.connection: driver.PostgresConnection | None = None
        """The connection that listens now, None while there is none."""

    @property
    def count(self) -> int:
        """A number that changes when another process may have committed."""
        if self._thread is None:
            self._start()
        return self._count

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._ended.is_set():
                self._wake, woken = socket.socketpair()
                thread = threading.Thread(
                    target=self._run, args=(woken,), name="onrecord-listen", daemon=True
                )
                thread.start()
                self._thread = thread

    def _run(self, woken: socket.socket) -> None:
        pause = 0.01
        with woken:
            while not self._ended.is_set():
                try:
                    self._listen(woken)
                    pause = 0.01
                except (driver.Error, StorageError, OSError) as error:
                    _logger.warning("listening for commits: %s; trying again", driver.told(error))
                    # Followers look for themselves meanwhile.
                    self._heard()
                    self._ended.wait(random.uniform(pause / 2, pause))  # noqa: S311
                    pause = min(pause * 2, LONGEST_BACK_OFF)

    def _listen(self, woken: socket.socket) -> None:
        connection = self._connect()
        try:
            connection.several(f"LISTEN {driver.CHANNEL}")
            self.connection = connection
            self._heard()  # what was committed before
            with selectors.DefaultSelector() as selector:
                selector.register(connection.raw.fileno(), selectors.EVENT_READ)
                selector.register(woken, selectors.EVENT_READ)
                while not self._ended.is_set():
                    if not selector.select(HEARTBEAT):
                        connection.several("SELECT 1")
                    heard = connection.raw.notifies(timeout=0)
                    if [notice for notice in heard if not self._is_own(notice.pid)]:
                        self._heard()
        finally:
            self.connection = None
            connection.close()

    def _heard(self) -> None:
        self._count += 1
        self._signal.ring()

    def close(self) -> None:
        """End the thread. Idempotent."""
        with self._starting:
            self._ended.set()
            thread, wake = self._thread, self._wake
        if wake is not None:
            wake.close()  # which makes the other end readable
        if thread is not None and thread is not threading.current_thread():
            thread.join()
