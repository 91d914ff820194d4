"""Who may act for a session: a lease with a generation, by the database's clock.

A lease that was taken over by another is stale: its holder's intents are refused (`LeaseLost`), its
outcomes are still stored, under the old generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from onrecord.transcript.errors import BadEvent

DEFAULT_TTL = 30.0
"""Seconds that a lease lasts if it isn't renewed."""
LONGEST_TTL = 86_400.0
"""Seconds that a lease may last at most: a dead process must not hold a session for good."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to act for a session, until `expires_at` (UTC, the database's clock)."""

    session: str
    owner: str
    generation: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class LeaseState:
    """What the log knows of a session's lease; `free` once released or expired."""

    session: str
    owner: str
    generation: int
    expires_at: datetime
    free: bool


class LeaseStore(Protocol):
    """What a storage does for leases."""

    def acquire_lease(self, session: str, owner: str, ttl: float) -> Lease: ...
    def renew_lease(self, lease: Lease, ttl: float) -> Lease: ...
    def release_lease(self, lease: Lease) -> None: ...
    def check_lease(self, lease: Lease) -> None: ...
    def lease_state(self, session: str) -> LeaseState | None: ...


class Leases:
    """The leases of a log."""

    def __init__(self, store: LeaseStore) -> None:
        self._store = store

    def acquire(self, session: str, owner: str, ttl: float = DEFAULT_TTL) -> Lease:
        """Take the session for `ttl` seconds, with a new generation.

        An owner who holds it already fences its own earlier self. Raise LeaseHeld while another
        holds it.
        """
        if not owner:
            raise BadEvent("a lease needs an owner; name the process")
        return self._store.acquire_lease(session, owner, _checked(ttl))

    def renew(self, lease: Lease, ttl: float = DEFAULT_TTL) -> Lease:
        """Prolong the lease to `ttl` seconds from now. Raise LeaseLost if another took it."""
        return self._store.renew_lease(lease, _checked(ttl))

    def release(self, lease: Lease) -> None:
        """Give the lease back; one that was lost is let be."""
        self._store.release_lease(lease)

    def check(self, lease: Lease) -> None:
        """Raise LeaseLost if the lease expired or another took it."""
        self._store.check_lease(lease)

    def held(self, session: str) -> LeaseState | None:
        """Return the session's lease, None if there never was one."""
        return self._store.lease_state(session)

    def is_free(self, session: str, owner: str = "") -> bool:
        """Tell whether `owner` may act: nobody holds the session, or the owner itself does."""
        state = self._store.lease_state(session)
        return state is None or state.free or bool(owner and state.owner == owner)


def _checked(ttl: float) -> float:
    if not 0 < ttl <= LONGEST_TTL:
        raise BadEvent(f"a lease of {ttl} seconds; give more than 0 and at most {LONGEST_TTL:.0f}")
    return ttl
