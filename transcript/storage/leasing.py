"""The statements of leases. Time is the database's clock, never a process's."""

from __future__ import annotations

from typing import Any

from onrecord.transcript.errors import LeaseHeld, LeaseLost
from onrecord.transcript.leases import Lease, LeaseState
from onrecord.transcript.storage.dialect import per_dialect
from onrecord.transcript.storage.journal import head, moment

_NOW = per_dialect(lambda say: f"SELECT {say.clock}")
_STATE = per_dialect(
    lambda say: (
        f"SELECT l.owner, l.generation, l.expires_at, {say.clock} FROM leases l "
        "JOIN sessions s ON s.session_key = l.session_key WHERE s.name = ?"
    )
)
_TAKE = (
    "INSERT INTO leases VALUES (?, ?, ?, ?) ON CONFLICT (session_key) DO UPDATE SET "
    "owner = excluded.owner, generation = excluded.generation, expires_at = excluded.expires_at"
)


def state(connection: Any, session: str) -> LeaseState | None:
    """Return the session's lease, None if there never was one."""
    row = connection.execute(_STATE(connection.dialect), (session.encode(),)).fetchone()
    if row is None:
        return None
    owner, generation, expires_at, now = row
    return LeaseState(session, owner.decode(), generation, moment(expires_at), expires_at <= now)


def acquire(connection: Any, session: str, owner: str, ttl: float) -> Lease:
    """Take the lease with a new generation, or raise LeaseHeld."""
    held = state(connection, session)
    if held is not None and not held.free and held.owner != owner:
        raise LeaseHeld(
            f"session {session!r} is held by {held.owner!r} until {held.expires_at.isoformat()}; "
            "leave it alone until then",
            session=session, holder=held.owner, expires_at=held.expires_at,
        )  # fmt: skip
    return _take(connection, session, owner, 1 if held is None else held.generation + 1, ttl)


def renew(connection: Any, lease: Lease, ttl: float) -> Lease:
    """Prolong the lease, expired or not, unless another took it."""
    check(connection, lease, expired=True)
    return _take(connection, lease.session, lease.owner, lease.generation, ttl)


def release(connection: Any, lease: Lease) -> None:
    """End the lease now; its generation is never given again."""
    held = state(connection, lease.session)
    if held is not None and held.generation == lease.generation:
        _take(connection, lease.session, lease.owner, lease.generation, 0.0)


def check(connection: Any, lease: Lease, *, expired: bool = False) -> None:
    """Raise LeaseLost unless the lease is the newest and (or `expired`) runs."""
    held = state(connection, lease.session)
    if held is not None and held.generation == lease.generation and (expired or not held.free):
        return
    if held is None:
        why = "was never given by this log"
    elif held.generation == lease.generation:
        why = f"expired at {held.expires_at.isoformat()}"
    else:
        why = f"went to {held.owner!r} (generation {held.generation})"
    raise LeaseLost(
        f"the lease of session {lease.session!r}, generation {lease.generation}, {why}; "
        "don't send, don't retry",
        session=lease.session, generation=lease.generation, holder=held.owner if held else "",
    )  # fmt: skip


def _take(connection: Any, session: str, owner: str, generation: int, ttl: float) -> Lease:
    stands = head(connection, session, create=True)
    assert stands is not None
    now = connection.execute(_NOW(connection.dialect)).fetchone()[0]
    expires_at = now + int(ttl * 1_000_000)
    connection.execute(_TAKE, (stands.key, owner.encode(), generation, expires_at))
    return Lease(session, owner, generation, moment(expires_at))
