"""After a restart, for an event loop: `onrecord.gateway.recovery`, awaited.

recovery = AsyncRecovery(log, owner="gateway-1")
for plan in await recovery.plans():
await recovery.decide(plan.close)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from onrecord.gateway.recovery import Plan, Recovery
from onrecord.transcript.leases import DEFAULT_TTL, Lease
from onrecord.transcript.recorded import Recorded

if TYPE_CHECKING:
    from onrecord.transcript.log import TranscriptLog


class AsyncRecovery:
    """As `Recovery`, awaited."""

    def __init__(
        self,
        log: TranscriptLog,
        owner: str,
        *,
        ttl: float = DEFAULT_TTL,
        held: Mapping[str, Lease] | None = None,
    ) -> None:
        self._log = log
        self._recovery = Recovery(log, owner, ttl=ttl, held=held)

    @property
    def leases(self) -> Mapping[str, Lease]:
        """Return the leases that `plans` took, by session."""
        return self._recovery.leases

    async def plans(self, sessions: Iterable[str] | None = None) -> list[Plan]:
        """Return what is to be decided. See `Recovery.plans`."""
        return await asyncio.to_thread(self._recovery.plans, sessions)

    async def decide(
        self, decision: Callable[..., Recorded], *arguments: str, **named: Any
    ) -> Recorded:
        """Carry out a decision of a plan: `decide(plan.confirm, "p1")`. Once begun it completes."""
        return await self._log.aio.write(partial(decision, *arguments, **named))

    async def release(self) -> None:
        """Give back the leases that `plans` took."""
        await self._log.aio.write(self._recovery.release)
