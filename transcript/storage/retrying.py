"""Trying again while another process holds SQLite's lock."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from onrecord.transcript.errors import OnRecordError, StorageBusy
from onrecord.transcript.storage import dbapi

T = TypeVar("T")

SHORTEST_PAUSE, LONGEST_PAUSE = 0.0002, 0.002
"""Seconds between two tries for the lock: random, and no longer for who waited longer."""


def retry(run: Callable[[], T], doing: str, timeout: float, began: float | None = None) -> T:
    """Return what `run` returns, once the lock is free.

    `timeout`: seconds since `began` (by the monotonic clock; None: now) after which StorageBusy is
    raised. Other errors of the driver become ours at once.
    """
    start = time.monotonic() if began is None else began
    while True:
        try:
            return run()
        except NoConnectionFree as raised:
            waited = time.monotonic() - start
            raise StorageBusy(
                f"{doing}: too many reads were under way for {waited:.1f} s; try again",
                waited=waited,
            ) from raised
        except UnicodeDecodeError as raised:
            # The driver's own message, or a text, holds bytes that nobody wrote.
            raise dbapi.damaged(doing, str(raised)) from raised
        except (dbapi.Error, DBAPIError, StorageBusy) as raised:
            error = raised.orig if isinstance(raised, DBAPIError) else raised
            assert error is not None
            waited = time.monotonic() - start
            busy = isinstance(error, StorageBusy) or dbapi.code(error) in (
                dbapi.BUSY, dbapi.LOCKED
            )  # fmt: skip
            if not busy or waited >= timeout:
                if isinstance(error, OnRecordError):
                    raise
                raise dbapi.translate(error, doing, waited) from error
        time.sleep(random.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))  # noqa: S311 - no secret
