"""The evidence of a record: commitment, leaf and chain. The format never changes.

    commitment = SHA-256(salt ‖ payload)                                  salt: 16 random bytes
    leaf       = SHA-256(0x00 ‖ "onrecord/1" ‖ F(session_key) ‖ F(version) ‖ F(id) ‖ F(type)
                         ‖ F(event_version) ‖ F(recorded_at) ‖ F(generation) ‖ F(commitment))
    chain      = SHA-256(0x01 ‖ chain of the version before ‖ leaf)       before version 1: 32 × 0x00

F(x) is the length of x as 4 bytes, big-endian, then x. Integers are 8 bytes, big-endian, signed;
recorded_at is microseconds since 1970 UTC; id is its 16 bytes; type is UTF-8. The salt goes with the
payload when content is erased, so that a commitment tells nothing of a text that is gone.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from struct import Struct

FORMAT = b"onrecord/1"
START = bytes(32)
"""The chain before the first version."""
SALT_BYTES = 16

_LENGTH = Struct(">I")
_VERSION = Struct(">IqI")
_REST = Struct(">IqIqIqI")


def commit(salt: bytes, payload: bytes) -> bytes:
    """Return the commitment to a payload."""
    return sha256(salt + payload).digest()


def leaf(
    session_key: bytes,
    version: int,
    id: bytes,
    type: str,
    event_version: int,
    recorded_at: int,
    generation: int,
    commitment: bytes,
) -> bytes:
    """Return the leaf of a record; recorded_at in microseconds since 1970 UTC."""
    return sha256(
        b"".join(
            (
                b"\x00",
                FORMAT,
                _LENGTH.pack(len(session_key)),
                session_key,
                _VERSION.pack(8, version, len(id)),
                id,
                _field(type),
                _REST.pack(8, event_version, 8, recorded_at, 8, generation, len(commitment)),
                commitment,
            )
        )
    ).digest()


@lru_cache
def _field(type: str) -> bytes:
    name = type.encode()
    return _LENGTH.pack(len(name)) + name


def link(before: bytes, leaf: bytes) -> bytes:
    """Return the chain of a version from the chain before it and its leaf."""
    return sha256(b"\x01" + before + leaf).digest()
