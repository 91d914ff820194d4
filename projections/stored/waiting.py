"""Stored projections for an event loop: the same questions, awaited, answered in a reading thread."""

from __future__ import annotations

import functools

from onrecord.projections.deliveries import DeliveryHistory
from onrecord.projections.findings import Finding
from onrecord.projections.stored.projections import StoredProjections
from onrecord.projections.transcript import Transcript
from onrecord.transcript.log import TranscriptLog


class AsyncStoredProjections:
    """The async twin of StoredProjections."""

    def __init__(self, log: TranscriptLog) -> None:
        self._log = log
        self._stored = StoredProjections(log)

    async def transcript(
        self, session: str, *, full: bool = False, last: int | None = None
    ) -> Transcript:
        """Return a session's transcript; see StoredProjections.transcript."""
        return await self._log.aio.reading(
            functools.partial(self._stored.transcript, session, full=full, last=last)
        )

    async def deliveries(self, session: str) -> list[DeliveryHistory]:
        """Return what was sent in a session; see StoredProjections.deliveries."""
        return await self._log.aio.reading(functools.partial(self._stored.deliveries, session))

    async def findings(self, session: str) -> list[Finding]:
        """Return what an audit finds in a session; see StoredProjections.findings."""
        return await self._log.aio.reading(functools.partial(self._stored.findings, session))
