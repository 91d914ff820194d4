"""Hold a session for as long as work goes on in it, and no longer.

    with Hold(log, session, owner="gateway-1") as lease:
        ...

The lease is renewed in the background, so that a model that thinks for minutes doesn't lose it. A
process that is stopped or cut off doesn't renew: another takes over, and this one is fenced.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from onrecord.transcript.errors import LeaseLost, StorageError
from onrecord.transcript.leases import DEFAULT_TTL, Lease

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog

RENEWALS = 3
"""Renewals in the time that a lease lasts: two may fail before it is lost."""

_logger = logging.getLogger("onrecord.gateway")


class Hold:
    """A lease that is kept. A context manager; entering it raises LeaseHeld while another has it."""

    def __init__(
        self, log: TranscriptLog, session: str, owner: str, ttl: float = DEFAULT_TTL
    ) -> None:
        self._log, self._session, self._owner, self._ttl = log, session, owner, ttl
        self._lease: Lease | None = None
        self._done = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="onrecord-lease", daemon=True)

    def __enter__(self) -> Lease:
        self._lease = self._log.leases.acquire(self._session, self._owner, self._ttl)
        self._keeper.start()
        return self._lease

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._keeper.join()
        if self._lease is not None:
            self._log.leases.release(self._lease)

    def _keep(self) -> None:
        while not self._done.wait(self._ttl / RENEWALS):
            if not _renewed(self._log, self._lease, self._ttl):
                return


class AsyncHold:
    """As `Hold`, for an event loop."""

    def __init__(
        self, log: TranscriptLog, session: str, owner: str, ttl: float = DEFAULT_TTL
    ) -> None:
        self._log, self._session, self._owner, self._ttl = log, session, owner, ttl
        self._lease: Lease | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Lease:
        leases = self._log.leases
        self._lease = await asyncio.to_thread(leases.acquire, self._session, self._owner, self._ttl)
        self._keeper = asyncio.create_task(self._keep())
        return self._lease

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeper
        if self._lease is not None:
            await self._log.aio.leases.release(self._lease)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._ttl / RENEWALS)
            if not await asyncio.to_thread(_renewed, self._log, self._lease, self._ttl):
                return


def _renewed(log: TranscriptLog, lease: Lease | None, ttl: float) -> bool:
    """Renew; tell whether it is worth going on. Who lost it learns so at the next append or send."""
    if lease is None:
        return False
    try:
        log.leases.renew(lease, ttl)
    except LeaseLost as lost:
        _logger.warning("%s", lost)
        return False
    except StorageError as error:
        _logger.warning(
            "the lease of session %r could not be renewed now: %s", lease.session, error
        )
    return True
