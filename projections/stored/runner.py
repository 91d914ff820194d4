"""Keeping stored projections up with the log, in the background or as a process of its own.

It follows the log through eventsourcing's subscription and keeps its place in eventsourcing's
tracking: one checkpoint a batch. A batch is claimed before it is projected, so that several runners
never do the same work; what one that died had claimed is found at the next start, and at the latest
when somebody reads the session.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from eventsourcing.persistence import (
    IntegrityError,
    Notification,
    OperationalError,
    Subscription,
    Tracking,
)

from onrecord.projections.promise import DeliveredNotProjected
from onrecord.projections.stored.projections import StoredProjections
from onrecord.transcript.errors import StorageError, StorageFailed
from onrecord.transcript.log import TranscriptLog
from onrecord.transcript.mapper import PlaceRecorder
from onrecord.transcript.storage.recorders import SQLTrackingRecorder

logger = logging.getLogger("onrecord.projections")

NAME = "onrecord.projections"
"""The name under which the place is tracked."""
BATCH = 1_000
"""Records that are claimed at once."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
"""Seconds between two tries after a failure: doubled each time."""
SWEEP = 60.0
"""Seconds after which sessions are looked for that nobody has projected: a runner that claimed them
died, or a crash of the database took what wasn't synced."""
TRIES = 8
"""How often a session is tried before the runner goes on with the others."""


class Runner:
    """Projects what is appended until it is stopped. Use it in a thread or process of its own.

    `failed`: sessions that could not be projected, and why; they are tried again when something is
    appended to them, when they are read, and at the next start.
    """

    def __init__(self, log: TranscriptLog) -> None:
        self.stored = StoredProjections(log)
        self.failed: dict[str, str] = {}
        self._places = PlaceRecorder(log)
        self._tracking = SQLTrackingRecorder(log.database)
        try:
            self._tracking.create_table()
        except OperationalError as error:
            raise StorageFailed(str(error)) from error
        self._stop = threading.Event()
        self._subscription: Subscription[Any] | None = None

    @property
    def position(self) -> int:
        """How far the log was claimed, by all runners together."""
        return self._tracking.max_tracking_id(NAME) or 0

    def run(self) -> None:
        """Project what is behind, then follow the log until `stop` is called."""
        pause = SHORTEST_PAUSE
        while not self._stop.is_set():
            try:
                self._project(self.stored.behind())
                self._follow()
                pause = SHORTEST_PAUSE
            except (OperationalError, StorageError) as error:
                logger.warning("following the log failed and goes on in %.1f s: %s", pause, error)
                self._stop.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def stop(self) -> None:
        """End `run`, from any thread, once the session at hand is projected."""
        self._stop.set()
        if self._subscription is not None:
            self._subscription.stop()

    def _follow(self) -> None:
        done = self.position
        with self._places.subscribe(gt=done) as subscription:
            self._subscription = subscription
            if self._stop.is_set():
                return  # before there was anything to stop
            sweep = threading.Timer(SWEEP, subscription.stop)
            sweep.start()
            try:
                for notification in subscription:
                    if notification.id > done:
                        done = self._step(notification.id)
            finally:
                sweep.cancel()

    def _step(self, start: int) -> int:
        """Claim and project a batch from a position on; return how far it goes."""
        batch: Sequence[Notification] = self._places.select_notifications(start, BATCH)
        if not batch:
            return start
        newest = batch[-1].id
        try:
            self._tracking.insert_tracking(Tracking(NAME, newest))
        except IntegrityError:
            return self.position  # another runner has claimed it
        self._project(dict.fromkeys(str(notification.originator_id) for notification in batch))
        return newest

    def _project(self, sessions: Iterable[str]) -> None:
        for session in sessions:
            if self._stop.is_set():
                return
            self._catch_up(session)

    def _catch_up(self, session: str) -> None:
        pause = SHORTEST_PAUSE
        for left in reversed(range(TRIES)):
            try:
                self.stored.catch_up(session)
                self.failed.pop(session, None)
                return
            except DeliveredNotProjected as error:
                # The error quotes what was said, which doesn't belong in a log of the program.
                logger.warning("session %r breaks the promise in %r", session, error.delivery)
                self.failed[session] = str(error)
                return
            except StorageError as error:
                logger.warning("session %r: %s; again in %.1f s", session, error, pause)
                self.failed[session] = str(error)
                if left == 0 or self._stop.wait(pause):
                    return
                pause = min(2 * pause, LONGEST_PAUSE)
