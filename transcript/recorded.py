"""The event as the log says it: what was said, where it stands and since when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from onrecord.transcript.events import Event


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """An event in the log.

    `version`: its place in the session (1, 2, 3 … without gaps). `position`: its place in the whole
    log (growing, with gaps). `recorded_at`: when the log took it, UTC. `generation`: the lease under
    which it was written, 0 for none. `payload`: the stored bytes, None once erased. `commitment`,
    `leaf` and `chain` (32 bytes each) are its evidence.
    """

    session: str
    version: int
    position: int
    id: UUID
    type: str
    event: Event
    recorded_at: datetime
    generation: int = 0
    event_version: int = 1
    payload: bytes | None = None
    commitment: bytes = b""
    leaf: bytes = b""
    chain: bytes = b""


class Step(msgspec.Struct, frozen=True, gc=False):
    """What a fold needs of a record, and no more: reading many of these is cheaper. `at`: µs, UTC."""

    version: int
    event: Event
    generation: int
    at: int

    @property
    def recorded_at(self) -> datetime:
        """When the log took it."""
        return _EPOCH + timedelta(microseconds=self.at)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
